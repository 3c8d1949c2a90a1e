"""Clearing old tool output without a model: what ran, how it ended and how to get it back stays in one line.

Rules:
- A cleared result begins with `CLEARED` and is never cleared again. Ids and order stay; only content changes.
- Of equal results the newest copy stays, and the older ones say so.
- Nothing after `protect_from` changes. The input is never changed; a message that needs nothing is the same object.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from watchkeeper.context.core.cutting import Count, cut_call, without_media
from watchkeeper.context.core.messages import Message, call_arguments, call_name, calls_of, content_text

CLEARED: Final = "[Old tool output cleared to save context space]"
RERUN: Final = "run the call again if it is needed"
STUB_FROM: Final = 200
"""Characters above which a result becomes a stub."""
LONG_ARGUMENTS: Final = 1_500
"""Characters above which old arguments lose their middle."""
KEPT_ARGUMENTS: Final = 200
"""Tokens that long arguments keep."""

_FAILED = re.compile(
    r"^\s*(?:<error>|error\b|fatal\b|traceback \(|exception\b|command failed|ошибка|错误|錯誤|エラー)"
    r"|\bexit(?:ed with)?(?: code| status)?[: ]+[1-9]\d*\b|^Traceback \(most recent call last\)",
    re.IGNORECASE | re.MULTILINE,
)

Recover = Callable[[int], str]
"""How the original of message `index` is got back, in a few words."""


def _rerun(index: int) -> str:
    return RERUN


@dataclass(frozen=True, slots=True)
class Pruned:
    """The pruned list, the indices whose content changed, and why: `stub`, `duplicate`, `arguments`, `media`."""

    messages: list[Message]
    changed: Mapping[int, str]


def prune(
    messages: Sequence[Message],
    *,
    start: int = 0,
    stop: int,
    longer_than: int = STUB_FROM,
    count: Count | None = None,
    recover: Recover = _rerun,
) -> Pruned:
    """The list with the tool results in `start:stop` that are longer than `longer_than` characters made stubs.

    With `count`, long arguments and media in the range are shortened too.
    """
    calls: dict[str, Mapping[str, Any]] = {}
    newest: dict[bytes, int] = {}
    for index, message in enumerate(messages):
        if message["role"] == "tool" and len(text := content_text(message.get("content"))) > longer_than:
            newest[_digest(text)] = index
    out = list(messages)
    changed: dict[int, str] = {}
    for index, message in enumerate(messages[:stop]):
        for call in calls_of(message):
            calls[call["id"]] = call
        if index < start:
            continue
        if message["role"] == "tool":
            text = content_text(message.get("content"))
            if len(text) > longer_than and not text.startswith(CLEARED):
                same = newest[_digest(text)]
                out[index] = stub(message, text, calls.get(message["tool_call_id"]), recover(index), newer=same > index)
                changed[index] = "duplicate" if same > index else "stub"
                continue
        if count is None:
            continue
        smaller = without_media(message)
        if smaller is not message:
            changed[index] = "media"
        if message["role"] == "assistant" and any(len(call_arguments(c)) > LONG_ARGUMENTS for c in calls_of(message)):
            smaller = {**smaller, "tool_calls": [cut_call(c, KEPT_ARGUMENTS, count) for c in calls_of(message)]}
            changed[index] = "arguments"
        out[index] = smaller
    return Pruned(out, changed)


def stub(
    message: Message, text: str, call: Mapping[str, Any] | None, recover: str = RERUN, *, newer: bool = False
) -> Message:
    """The message with its content replaced by one line."""
    what = describe_call(call) if call is not None else "a call"
    lines = text.count("\n") + 1
    size = f"{lines:,} lines, {len(text):,} characters" if lines > 1 else f"{len(text):,} characters"
    ended = "failed: " + _first_failure(text) if _failed(message, text) else "ok"
    back = "a newer call below has the same output" if newer else recover
    return {**message, "content": f"{CLEARED} {what} -> {ended}; {size}; {back}"}


def describe_call(call: Mapping[str, Any], longest: int = 120) -> str:
    """A call in one line: `read_file(path=src/app.py, limit=200)`."""
    arguments = call_arguments(call)
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = arguments
    if isinstance(value, dict):
        shown = ", ".join(f"{k}={_inline(v, 80)}" for k, v in value.items())
    else:
        shown = _inline(value, longest)
    return f"{call_name(call)}({_inline(shown, longest)})"


def _inline(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _failed(message: Mapping[str, Any], text: str) -> bool:
    return (
        message.get("is_error") is True
        or _FAILED.search(text[:400]) is not None
        or _FAILED.search(text[-200:]) is not None
    )


def _first_failure(text: str) -> str:
    match = _FAILED.search(text[:400]) or _FAILED.search(text, max(0, len(text) - 200))
    start = text.rfind("\n", 0, match.start()) + 1 if match else 0
    return _inline(text[start:].lstrip().split("\n", 1)[0], 100)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


__all__ = [
    "CLEARED",
    "RERUN",
    "STUB_FROM",
    "Pruned",
    "Recover",
    "describe_call",
    "prune",
    "stub",
]
