"""The tree of a page as columns, all frames in one, and how it is read from what a frame's script gives.

Rules: data only. Columns of strings and numbers instead of an object per node: a page of 100,000 nodes stays small and
the garbage collector has nothing to walk.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FrameTreePart:
    """What one frame gave, with the frames of its origin in it.

    ``owners``: node index of an iframe -> its element number; ``inlined``: those whose content is here, below them.
    """

    title: str
    url: str
    next_number: int
    candidates: int
    modal: bool
    cut: bool
    unread: int
    ready: bool
    scroll: tuple[int, int, int]
    """Scrolled to, height of the view, height of the document, in CSS pixels."""
    depths: list[int]
    roles: list[str]
    numbers: list[int]
    names: list[str]
    states: dict[int, str]
    values: dict[int, str]
    descriptions: dict[int, str]
    links: dict[int, str]
    owners: dict[int, int]
    inlined: frozenset[int]


def decode(encoded: str) -> FrameTreePart:
    """Read what ``snapshot`` of our script gives: a line of JSON, then the names, one a line."""
    head, _, rest = encoded.partition("\n")
    facts: dict[str, Any] = json.loads(head)
    role_names: list[str] = facts["roles"]
    depths: list[int] = facts["depths"]
    names = rest.split("\n") if depths else []
    if len(names) != len(depths):
        raise ValueError(f"{len(names)} names for {len(depths)} nodes")
    return FrameTreePart(
        facts["title"],
        facts["url"],
        facts["next"],
        facts["candidates"],
        facts["modal"],
        facts["cut"],
        facts["unread"],
        facts["state"] == "complete",
        tuple(facts["scroll"]),
        depths,
        [role_names[index] for index in facts["indexes"]],
        facts["numbers"],
        names,
        _sparse(facts["states"]),
        _sparse(facts["values"]),
        _sparse(facts["descriptions"]),
        _sparse(facts["links"]),
        _sparse(facts["frames"]),
        frozenset(facts["inlined"]),
    )


def _sparse(pairs: list[Any]) -> dict[int, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class FrameSpan:
    """Nodes ``start`` to ``end`` are the content of a frame; ``start - 1`` is its iframe, except for the top frame."""

    short: str
    frame_id: str
    url: str
    start: int
    end: int
    note: str = ""


@dataclass(slots=True)
class Tree:
    """All frames in reading order. ``refs`` has "" where a node has none."""

    depths: list[int] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    refs: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)
    descriptions: dict[int, str] = field(default_factory=dict)
    links: dict[int, str] = field(default_factory=dict)
    spans: list[FrameSpan] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.depths)

    def extend(self, part: FrameTreePart, start: int, end: int, depth: int, prefix: str) -> None:
        """Append nodes ``start`` to ``end`` of a frame, ``depth`` deeper; refs begin with ``prefix``."""
        offset = len(self.depths) - start
        whole = start == 0 and end == len(part.depths)
        self.depths.extend([d + depth for d in part.depths[start:end]] if depth else part.depths[start:end])
        self.roles.extend(part.roles[start:end])
        self.refs.extend([f"{prefix}{number}" if number else "" for number in part.numbers[start:end]])
        self.names.extend(part.names[start:end])
        for own, theirs in (
            (self.states, part.states),
            (self.values, part.values),
            (self.descriptions, part.descriptions),
            (self.links, part.links),
        ):
            items: Iterable[tuple[int, str]] = theirs.items()
            own.update((i + offset, text) for i, text in items if whole or start <= i < end)
