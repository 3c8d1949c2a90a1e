"""Where the messages of a host's list stand among those that the archive holds. Pure.

Rules:
- A list is a part of the conversation, in order, and new messages after it. Some of the old ones may be missing.
- Equal messages are told apart by their neighbours: "go on" is said more than once, and each time is a message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

_LOST = 16  # so many of the last messages a host may have dropped


def align(
    digests: Sequence[str], held: Sequence[str], gap: tuple[int, int] | None, known: Mapping[int, int]
) -> list[int | None]:
    """For each message its place among those held, or None if it is new. Places grow."""
    where: dict[str, list[int]] = {}
    for place, digest in enumerate(held):
        where.setdefault(digest, []).append(place)
    out: list[int | None] = []
    free = 0
    old = _old_part(digests, held, gap, known)
    for at, digest in enumerate(digests[:old]):
        if gap is not None and at == gap[0]:
            free = max(free, gap[1] + 1)
        places = where.get(digest, [])
        places = places[bisect_left(places, free) :]
        if known.get(at, -1) >= free:
            chosen = known[at]
        elif places:
            after = digests[at + 1] if at + 1 < len(digests) else None
            # Of equal messages the one whose neighbour fits too: "ok" is said more than once.
            chosen = next((p for p in places if p + 1 == len(held) or held[p + 1] == after), places[0])
        else:
            out.append(None)
            continue
        out.append(chosen)
        free = chosen + 1
    return [*out, *[None] * (len(digests) - old)]


def _old_part(
    digests: Sequence[str], held: Sequence[str], gap: tuple[int, int] | None, known: Mapping[int, int]
) -> int:
    """How many messages come before the new ones: up to the last held one that stands next to its neighbour."""
    for end in range(len(held) - 1, max(-1, len(held) - 1 - _LOST), -1):
        for at in range(len(digests) - 1, -1, -1):
            if known.get(at) == end:
                return at + 1
            if digests[at] != held[end] or at in known:
                continue
            follows_gap = gap is not None and at == gap[0] and end == gap[1] + 1
            first = at == 0 and end == 0
            if first or follows_gap or (at > 0 and end > 0 and digests[at - 1] == held[end - 1]):
                return at + 1
    return len(digests)
