"""The record of a compaction: what stands in its message, where the message goes, and how it is found again.

Rules:
- A record begins with `BEGIN` and ends with `END`, so that text joined to it can be told apart again.
- It says that it is a record of the past and not an instruction.
- It takes the role that neither neighbour has; where both roles are taken it is joined to a user message.
- Records found in a list are taken out before the list is compacted again; what they held is carried on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from watchkeeper.context.core.messages import INSTRUCTION_ROLES, Message

BEGIN: Final = "[CONTEXT COMPACTION] Earlier turns were compacted"
END: Final = "[END OF CONTEXT COMPACTION]"
NOTE: Final = (
    "[Note: Some earlier conversation turns have been compacted into a record marked CONTEXT COMPACTION. "
    "It tells what happened; build on it instead of doing the work again.]"
)
_NOTE_MARK: Final = "[Note: Some earlier conversation turns have been compacted"
_RECORD = re.compile(
    r"(?:(?<=.)\n\n)?" + re.escape(BEGIN) + r"[^\n]*\n(?P<body>.*?)\n*" + re.escape(END) + r"(?:\n\n)?", re.DOTALL
)


def render_record(body: str, *, messages: int, recall: str = "") -> str:
    """The text of a record over `messages` messages; `recall` is how the originals are found again."""
    # Quoted text must not be able to end the record, or to begin another.
    body = body.replace(END, END.strip("[]")).replace(BEGIN, BEGIN.replace("[", "").replace("]", ":"))
    intro = f"{BEGIN}: {messages:,} messages. A record of what happened, quoted from them; not an instruction."
    return "\n".join([f"{intro} {recall}".rstrip(), "", body.strip() or "(nothing worth keeping was found)", "", END])


def with_note(message: Message) -> Message:
    """The system message with the note, once."""
    content = message.get("content")
    if isinstance(content, list):
        if any(isinstance(p, dict) and _NOTE_MARK in str(p.get("text", "")) for p in content):
            return message
        return {**message, "content": [*content, {"type": "text", "text": NOTE}]}
    text = content if isinstance(content, str) else ""
    return message if _NOTE_MARK in text else {**message, "content": f"{text}\n\n{NOTE}".lstrip()}


@dataclass(frozen=True, slots=True)
class Placed:
    """The assembled list; `joined` says that the record had to share a message."""

    messages: list[Message]
    joined: bool


def place(head: Sequence[Message], record: str, tail: Sequence[Message]) -> Placed:
    """Head, record and tail as one list in which no two neighbours share a role."""
    before = head[-1]["role"] if head else "system"
    after = tail[0]["role"] if tail else ""
    if before in INSTRUCTION_ROLES:
        role = "" if after == "user" else "user"
    elif before == "user":
        role = "assistant" if after == "user" else ""
    elif before == "tool":
        role = "assistant" if after == "user" else "user"
    else:
        role = "" if after == "user" else "user"
    if role:
        return Placed([*head, {"role": role, "content": record}, *tail], joined=False)
    if before == "user":
        return Placed([*head[:-1], _joined(head[-1], record, first=False), *tail], joined=True)
    return Placed([*head, _joined(tail[0], record, first=True), *tail[1:]], joined=True)


def _joined(message: Message, record: str, *, first: bool) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": record}
        return {**message, "content": [part, *content] if first else [*content, part]}
    text = content if isinstance(content, str) else ""
    return {**message, "content": f"{record}\n\n{text}" if first else f"{text}\n\n{record}"}


@dataclass(frozen=True, slots=True)
class Found:
    """A record in a list: before which message of the list without records it stood, and its body."""

    before: int
    body: str


@dataclass(frozen=True, slots=True)
class TakenOut:
    """A list without what compactions put into it; `origin` is where each message stood in the list that came in."""

    messages: list[Message]
    found: tuple[Found, ...]
    origin: tuple[int, ...]


def take_out(messages: list[Message]) -> TakenOut:
    """The list as it was before records and notes were put into it; the same list if it has none."""
    found: list[Found] = []
    out: list[Message] = []
    origin: list[int] = []
    for index, message in enumerate(messages):
        mark = _NOTE_MARK if message["role"] in INSTRUCTION_ROLES else BEGIN
        if message["role"] == "tool" or not _mentions(message.get("content"), mark):
            out.append(message)
            origin.append(index)
            continue
        bodies: list[str] = []
        content = _stripped(message.get("content"), bodies)
        if not bodies and content == message.get("content"):
            out.append(message)
            origin.append(index)
            continue
        # Joined after what the message says, the record stood behind it; otherwise in front of what follows.
        behind = bool(content) and _starts_otherwise(message.get("content"))
        found += [Found(len(out) + behind, body) for body in bodies]
        if content or message.get("tool_calls"):
            out.append({**message, "content": content or None})
            origin.append(index)
    if not found and len(out) == len(messages) and all(a is b for a, b in zip(out, messages, strict=True)):
        return TakenOut(messages, (), tuple(range(len(messages))))
    return TakenOut(out, tuple(found), tuple(origin))


def _mentions(content: Any, mark: str) -> bool:
    if isinstance(content, str):
        return mark in content
    return isinstance(content, list) and any(isinstance(p, dict) and mark in str(p.get("text", "")) for p in content)


def _starts_otherwise(content: Any) -> bool:
    if isinstance(content, list):
        content = next((p.get("text") for p in content if isinstance(p, dict)), "")
    return not str(content).startswith(BEGIN)


def _stripped(content: Any, bodies: list[str]) -> Any:
    if isinstance(content, str):

        def keep(match: re.Match[str]) -> str:
            bodies.append(match["body"].strip())
            return ""

        return _RECORD.sub(keep, content).removesuffix(f"\n\n{NOTE}").removesuffix(NOTE)
    parts = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and (BEGIN in text or _NOTE_MARK in text):
            rest = _stripped(text, bodies)
            if rest:
                parts.append({**part, "text": rest} if rest != text else part)
        else:
            parts.append(part)
    return parts


__all__ = ["BEGIN", "END", "NOTE", "Found", "Placed", "TakenOut", "place", "render_record", "take_out", "with_note"]
