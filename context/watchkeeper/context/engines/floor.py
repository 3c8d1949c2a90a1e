"""The extractive floor of a record: what the harvest keeps, and a share of it for what the agent concluded.

Rules:
- Everything in it is quoted from the messages, in their order.
- Where tools gave many numbers, which look like identifiers and drown words, the agent's own conclusions have a share
  that no table can take. Elsewhere words compete on equal terms, and the harvest finds them by itself.
- Reading ends as soon as the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, overload

from watchkeeper.context.core.cutting import Count
from watchkeeper.context.core.evidence import Harvest, SourceLine, harvest, render_evidence
from watchkeeper.context.core.messages import Message, content_text
from watchkeeper.context.errors import Cancelled
from watchkeeper.context.tokens import estimate

SAID_SHARE: Final = 0.10
"""Of the floor's tokens, what the agent's own conclusions have to themselves where tools gave many numbers."""
NUMBERS: Final = 0.2
"""Share of digits in the letters and digits of tool output from which they drown words; source code has about 0.07."""
CONCLUSION: Final = 40
"""Tokens (estimated) from which a text of the agent is more than an announcement of the next step."""


def floor(
    hidden: Sequence[Message], visible: Sequence[Message], *, room: int, count: Count, focus_topic: str | None
) -> Harvest:
    """What of the `hidden` messages is kept in `room` tokens, given what the `visible` ones show."""
    quietly = hidden[:]  # only the main reading tells its progress
    said = _said(quietly, visible, int(room * SAID_SHARE), count, focus_topic) if _many_numbers(quietly) else ()
    left = room - count(render_evidence(said))
    shown = [*visible, *({"role": "assistant", "content": line.text} for line in said)]
    kept = harvest(hidden, budget=left, count=count, focus_topic=focus_topic, visible=shown)
    return replace(kept, evidence=tuple(sorted([*said, *kept.evidence], key=lambda line: line.index)))


def _said(
    hidden: Sequence[Message], visible: Sequence[Message], room: int, count: Count, focus_topic: str | None
) -> tuple[SourceLine, ...]:
    """Lines of the agent's longer texts."""
    texts: list[Message] = [
        {"role": "assistant", "content": m.get("content")}
        if m["role"] == "assistant" and estimate(content_text(m.get("content"))) >= CONCLUSION
        else {"role": "system", "content": ""}  # keeps the places of the others; a harvest does not read it
        for m in hidden
    ]
    if not any(m["role"] == "assistant" for m in texts):
        return ()
    return harvest(texts, budget=room, count=count, focus_topic=focus_topic, visible=visible).evidence


class Watched(Sequence[Message]):
    """Messages whose reading tells its progress, and ends with `Cancelled` as soon as the caller asks for it."""

    def __init__(
        self,
        messages: Sequence[Message],
        cancelled: Callable[[], bool],
        progress: Callable[[float, str], None] | None = None,
    ) -> None:
        self._messages = messages
        self._cancelled = cancelled
        self._progress = progress
        self._told = 0.7

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __iter__(self) -> Iterator[Message]:
        for index, message in enumerate(self._messages):
            if self._cancelled():
                raise Cancelled
            done = 0.7 + 0.2 * index / len(self._messages)
            if self._progress is not None and done >= self._told + 0.02:
                self._told = done
                self._progress(done, f"keeping what will be needed: {index:,} of {len(self._messages):,} messages")
            yield message


def _many_numbers(messages: Sequence[Message]) -> bool:
    digits = letters = 0
    for message in messages:
        if message["role"] == "tool":
            sample = content_text(message.get("content"))[:1_000]
            numeric = sum(map(sample.count, "0123456789"))
            digits += numeric
            letters += sum(map(str.isalnum, sample)) - numeric
    return digits > NUMBERS * (digits + letters)


__all__ = ["Watched", "floor"]
