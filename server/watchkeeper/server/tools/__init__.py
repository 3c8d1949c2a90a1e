"""All tools, one family per module."""

from . import actions, browser, context, dialog, observe, surroundings, tabs, transfer
from .spec import ToolSpec

ALL_TOOLS: tuple[ToolSpec, ...] = (
    *browser.TOOLS[:2],
    *dialog.TOOLS,
    *browser.TOOLS[2:],
    *actions.TOOLS,
    *tabs.TOOLS,
    *observe.TOOLS,
    *transfer.TOOLS,
    *surroundings.TOOLS,
    *context.TOOLS,
)

__all__ = ["ALL_TOOLS", "ToolSpec"]
