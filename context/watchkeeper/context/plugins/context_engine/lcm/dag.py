"""Which messages to condense, and which summaries. Pure.

Rules:
- The active context is: instructions, the root summaries in order, then every message after the last root.
- A leaf begins where the one before ended and ends before an assistant message, so that what follows the summaries
  begins with an assistant turn and no call is parted from its results.
- The newest messages stay raw: at least `fresh` tokens of them, from an assistant message on.
- Of roots of one depth, `fanout` neighbours become one of the next depth, the oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watchkeeper.context.store import Node


@dataclass(frozen=True)
class Item:
    """A message as planning sees it: its place, its role and its size in tokens."""

    position: int
    role: str
    tokens: int


def fresh_start(items: Sequence[Item], fresh: int) -> int:
    """The position at which the fresh tail begins: the last assistant message with at least `fresh` tokens from it on.

    If there are fewer, the first assistant message; -1 if there is none.
    """
    total, found = 0, -1
    for item in reversed(items):
        total += item.tokens
        if item.role == "assistant":
            found = item.position
            if total >= fresh:
                break
    return found


def leaves(items: Sequence[Item], end: int, leaf_tokens: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of about `leaf_tokens` over the items before the position `end`; the last may be smaller.

    `end` must be the position of an assistant message, or behind the last item.
    """
    out: list[tuple[int, int]] = []
    first, total, last = -1, 0, -1
    for item in items:
        if item.position >= end:
            break
        if item.role == "assistant" and total >= leaf_tokens:
            out.append((first, last))
            first, total = -1, 0
        if first < 0:
            first = item.position
        total += item.tokens
        last = item.position
    if first >= 0:
        out.append((first, last))
    return out


def to_condense(roots: Sequence[Node], fanout: int) -> tuple[Node, ...]:
    """The oldest run of `fanout` neighbouring roots of the lowest depth that has one; empty if there is none."""
    for depth in sorted({root.depth for root in roots}):
        run: list[Node] = []
        for root in roots:
            run = [*run, root] if root.depth == depth else []
            if len(run) == fanout:
                return tuple(run)
    return ()
