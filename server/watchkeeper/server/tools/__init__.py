"""All tools, one family per module."""

from . import actions, browser, context, dialog, observe, tabs
from .spec import ToolSpec

ALL_TOOLS: tuple[ToolSpec, ...] = (
    *browser.TOOLS[:2],
    *dialog.TOOLS,
    *browser.TOOLS[2:],
    *actions.TOOLS,
    *tabs.TOOLS,
    *observe.TOOLS,
    *context.TOOLS,
)

__all__ = ["ALL_TOOLS", "ToolSpec"]
