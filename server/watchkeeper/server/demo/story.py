"""Telling the demo: what is called, what comes back, and whether each claim holds."""

import json
import sys
import textwrap
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

WIDTH = 100
SHOWN_LINES = 24


class Story:
    """``failed`` counts the claims that did not hold."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._chapter = 0
        self.held = 0
        self.failed = 0

    def chapter(self, title: str) -> None:
        self._chapter += 1
        say(f"\n{self._chapter}. {title}\n{'-' * (len(title) + 3)}")

    async def call(self, tool: str, *, show: int = SHOWN_LINES, **arguments: Any) -> CallToolResult:
        """Call a tool; show what was asked, and the first ``show`` lines of what came back (0: nothing)."""
        if show:
            written = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
            say("")
            _say_wrapped(f"> {tool}({written})", "    ")
        result = await self._client.call_tool(tool, arguments)
        lines = text_of(result).splitlines()
        for line in lines[:show]:
            _say_wrapped(f"  {line}", "      ")
        if 0 < show < len(lines):
            say(f"  … {len(lines) - show} more lines")
        return result

    async def evaluate(self, expression: str, *, show: int = SHOWN_LINES, **where: str) -> Any:
        """The value of JavaScript in a page or a frame, through ``browser_cdp``."""
        params = {"expression": expression, "returnByValue": True}
        result = await self.call("browser_cdp", show=show, method="Runtime.evaluate", params=params, **where)
        return structured(result).get("result", {}).get("result", {}).get("value")

    def claim(self, what: str, holds: bool, got: object = None) -> None:
        """Say that something is so, and whether it is."""
        if holds:
            self.held += 1
            say(f"  [ok] {what}")
        else:
            self.failed += 1
            say(f"  [FAILED] {what}; got {got!r}")


def structured(result: CallToolResult) -> dict[str, Any]:
    return result.structured_content if isinstance(result.structured_content, dict) else {}


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _say_wrapped(line: str, indent: str) -> None:
    for part in textwrap.wrap(line, WIDTH, subsequent_indent=indent, drop_whitespace=False) or [""]:
        say(part.rstrip())


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
