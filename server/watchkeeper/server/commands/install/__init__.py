"""``watchkeeper install``: the entries of clients that start Watchkeeper, written and taken out again.

Rules: what will change is shown before anything is written. A file that is not understood is left alone, and what
belongs into it is printed. Nothing but our own entry changes: other keys, their order, comments and indentation stay.
"""

from .command import install_command

__all__ = ["install_command"]
