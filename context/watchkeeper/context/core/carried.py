"""What an earlier record held, as messages again, so that the next harvest can weigh it like everything else.

Rules:
- Where the originals are still known (the state of a session) they are used instead; this reads the record's own form.
- Quotes become user messages, quoted lines messages of their speaker, the rest text of the agent. Nothing is added.
- What is made here feeds a harvest; it never appears in a conversation as messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from watchkeeper.context.core.messages import Message

_HEADING = re.compile(r"^##+ (?P<title>.+)$", re.MULTILINE)
_SPOKEN = re.compile(r"(?:(?P<who>[UHA]): |(?P<tool>[\w./-]{1,64})(?P<kind>> |: ))")


def carried_messages(body: str) -> list[Message]:
    """The messages that a record's body quotes."""
    out: list[Message] = []
    for title, text in _sections(body):
        if title == "User Messages":
            out += _quotes(text)
        elif title == "Evidence":
            out += _lines(text)
        else:
            out.append({"role": "assistant", "content": text})
    return out


def _sections(body: str) -> Iterator[tuple[str, str]]:
    title, start = "", 0
    for match in _HEADING.finditer(body):
        if text := body[start : match.start()].strip():
            yield title, text
        title, start = match["title"].strip(), match.end()
    if text := body[start:].strip():
        yield title, text


def _quotes(text: str) -> Iterator[Message]:
    quoted: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(">"):
            # A quote's first line begins at its mark; the rendering puts one blank line or none between two.
            quoted.append(line[2:] if line.startswith("> ") else line[1:])
        elif quoted:
            yield {"role": "user", "content": "\n".join(quoted)}
            quoted = []


def _lines(text: str) -> Iterator[Message]:
    speaker: tuple[str, str] = ("A", "")
    spoken: list[str] = []
    number = 0
    for line in text.split("\n"):
        match = _SPOKEN.match(line)
        if match is None:
            spoken.append(line)
            continue
        yield from _spoken(speaker, spoken, number)
        number += 1
        speaker = (match["who"], "") if match["who"] else (match["kind"][0], match["tool"])
        spoken = [line[match.end() :]]
    yield from _spoken(speaker, spoken, number)


def _spoken(speaker: tuple[str, str], lines: list[str], number: int) -> Iterable[Message]:
    text = "\n".join(lines).strip()
    if not text:
        return
    who, tool = speaker
    if who == "U":
        yield {"role": "user", "content": text}
    elif who == "A":
        yield {"role": "assistant", "content": text}
    else:
        call_id = f"carried_{number}"
        function = {"name": tool or "host", "arguments": text if who == ">" else ""}
        call = {"id": call_id, "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        if who in (":", "H"):  # what a host put in is nobody's words
            yield {"role": "tool", "tool_call_id": call_id, "content": text}


__all__ = ["carried_messages"]
