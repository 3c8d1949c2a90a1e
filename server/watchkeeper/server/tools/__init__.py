"""All tools, one family per module."""

from . import browser, context, dialog
from .spec import ToolSpec

ALL_TOOLS: tuple[ToolSpec, ...] = (*browser.TOOLS[:2], *dialog.TOOLS, *browser.TOOLS[2:], *context.TOOLS)

__all__ = ["ALL_TOOLS", "ToolSpec"]
