"""The tool that compresses conversations."""

from .spec import ToolSpec

TOOLS: tuple[ToolSpec, ...] = ()
