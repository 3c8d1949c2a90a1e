"""What can be done to a page: by pointer, by keyboard, to forms.

Rules: every action checks first, acts, and says what it started (``Done``). No fixed sleeps.
"""

from .forms import check, select, upload
from .keyboard import fill, press, type_text
from .pointer import click, drag, hover, scroll
from .result import Done

__all__ = ["Done", "check", "click", "drag", "fill", "hover", "press", "scroll", "select", "type_text", "upload"]
