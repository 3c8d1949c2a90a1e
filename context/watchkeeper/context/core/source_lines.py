"""Messages as source lines: who said what, in pieces short enough to quote.

Rules this module keeps:

- Text is only ever trimmed, split and stripped of blanks; what remains is found in the original.
- A long line is split where a sentence or a word ends, so that each piece can stand alone.
- Tool-call arguments count as much as results: their values are read, unescaped, without the JSON around them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from watchkeeper.context.core.messages import call_arguments, call_name, calls_of, content_text

Speaker = Literal["user", "host", "assistant", "call", "result"]

PIECE = 220
"""Characters of a piece; a line up to half again as long stays whole."""
MAX_LINE = 200_000
"""Characters of one line that are read; what is longer is data, not text."""

_NUMBERED = re.compile(r"\s*\d+(?:→|\t)")
_BREAK = re.compile(r"[.!?;。！？；]\s+|\\n|[。！？；]|, |\s")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text by one speaker in one message; `tool` names the tool of a call or a result."""

    index: int
    speaker: Speaker
    text: str
    tool: str = ""


def argument_text(arguments: str) -> str:
    """The values inside tool-call arguments, one a line; arguments that are not JSON are taken as they are."""
    try:
        return "\n".join(_values(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def parts_of(messages: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """The parts of all messages in order; system messages have none. User turns are all `user` here."""
    tools: dict[str, str] = {}
    for index, message in enumerate(messages):
        role = message.get("role")
        if role in ("system", "developer"):
            continue
        text = content_text(message.get("content"))
        if role == "tool":
            yield Part(index, "result", text, tools.get(str(message.get("tool_call_id")), ""))
            continue
        if text:
            yield Part(index, "assistant" if role == "assistant" else "user", text)
        for call in calls_of(message):
            tools[str(call.get("id"))] = name = call_name(call)
            if values := argument_text(call_arguments(call)):
                yield Part(index, "call", values, name)


def pieces(text: str) -> Iterator[str]:
    """The text's lines without surplus blanks and line numbers, long ones split at the ends of sentences or words."""
    for raw in text.split("\n"):
        line = " ".join(raw[:MAX_LINE].split())
        if (numbered := _NUMBERED.match(raw)) is not None:
            line = " ".join(raw[numbered.end() : MAX_LINE].split())
        if len(line) <= PIECE + PIECE // 2:
            if line:
                yield line
            continue
        at = 0
        while len(line) - at > PIECE + PIECE // 2:
            end = _break_before(line, at + PIECE, at + PIECE // 2)
            yield line[at:end].strip()
            at = end
        yield line[at:].strip()


def _break_before(line: str, limit: int, least: int) -> int:
    """Where to split: after the last sentence that ends before the limit, else after the last word."""
    sentence = word = 0
    for match in _BREAK.finditer(line, least, limit):
        if len(match[0]) > 1 or not match[0].isspace():
            sentence = match.end()
        word = match.end()
    return sentence or word or limit
