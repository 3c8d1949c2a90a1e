"""Which messages to condense, and which summaries. Pure.

Rules:
- The active context is: instructions, the root summaries in order, then every message after the last root.
- A leaf begins where the one before ended and ends before an assistant message, so that what follows the summaries
  begins with an assistant turn and no call is parted from its results.
- In the newest turn, if it thinks, such a place is only before a message that thinks itself, or where no thinking
  follows: a provider takes a thinking loop whole, from a thinking block on, or not at all.
- The newest messages stay raw: at least `fresh` tokens of them, from such a place on.
- Of roots of one depth, `fanout` neighbours become one of the next depth, the oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from watchkeeper.context.store import Node


@dataclass(frozen=True)
class Item:
    """A message as planning sees it: its place, its role, its size in tokens, whether it thinks."""

    position: int
    role: str
    tokens: int
    thinks: bool = False


def cuts(items: Sequence[Item]) -> frozenset[int]:
    """The positions before which a conversation may be cut."""
    out: list[int] = []
    newest, thinking_follows = True, False
    for item in reversed(items):
        thinking_follows = thinking_follows or item.thinks
        newest = newest and item.role != "user"
        if item.role == "assistant" and (not newest or item.thinks or not thinking_follows):
            out.append(item.position)
    return frozenset(out)


def fresh_start(items: Sequence[Item], fresh: int) -> int:
    """The position at which the fresh tail begins: the last possible one with at least `fresh` tokens from it on.

    If there are fewer, the first possible one; -1 if there is none.
    """
    possible = cuts(items)
    total, found = 0, -1
    for item in reversed(items):
        total += item.tokens
        if item.position in possible:
            found = item.position
            if total >= fresh:
                break
    return found


def leaves(items: Sequence[Item], end: int, leaf_tokens: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of about `leaf_tokens` over the items before the position `end`; the last may be smaller.

    `end` must be a possible cut, or behind the last item.
    """
    possible = cuts(items)
    out: list[tuple[int, int]] = []
    first, total, last = -1, 0, -1
    for item in items:
        if item.position >= end:
            break
        if item.position in possible and total >= leaf_tokens:
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
