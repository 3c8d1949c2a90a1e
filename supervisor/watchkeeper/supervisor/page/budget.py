"""Which lines of a page are shown when not all of them fit.

Rules: frames share the budget fairly, and within a frame its regions do: what is small is shown whole, what is large is
cut to an equal share. Of a run of many alike the beginning and the end are shown. What is left out is counted, and a
cursor leads to it. Pure.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from .lines import Lines, subtree_ends

MARKER_SIZE = 70
"""Characters that the note about left-out lines takes, roughly."""
SMALLEST_SHARE = 160
"""Characters below which a share is not worth having: then fewer regions are shown, and those better."""
MAIN_WEIGHT = 3
"""How many shares the main region of a page gets beside its other regions."""
TAIL_PART = 0.15
"""Part of a cut run's budget that goes to its end."""


def fair_level(sizes: Sequence[int], budget: int, weights: Sequence[int] | None = None) -> int:
    """The share L with which ``sum(min(size, L * weight))`` just fits the budget; every weight is 1 by default."""
    weights = weights or [1] * len(sizes)
    left, heft = budget, sum(weights)
    for size, weight in sorted(zip(sizes, weights, strict=True), key=lambda pair: pair[0] / pair[1]):
        share = left // heft
        if size > share * weight:
            return share
        left -= size
        heft -= weight
    return max(sizes, default=0)


class Selection:
    """``kept[i]`` says whether line i is shown; ``shortened`` how many characters of a long line are."""

    def __init__(self, lines: Lines, start: int, end: int) -> None:
        self._lines = lines
        self.start, self.end = start, end
        self.kept = bytearray(end - start)
        self.shortened: dict[int, int] = {}
        self._ends = subtree_ends(lines.depths[start:end])
        base = min(lines.depths[start:end], default=0)
        self._sizes = [
            len(text) + 2 + depth - base
            for text, depth in zip(lines.texts[start:end], lines.depths[start:end], strict=True)
        ]
        self._acc: list[int] = []

    def choose(self, budget: int) -> None:
        """Choose for a budget in characters."""
        if sum(self._sizes) <= budget:
            self.kept = bytearray(b"\x01") * len(self.kept)
            return
        self.kept = bytearray(len(self.kept))
        self.shortened = {}
        owner = self._lines.frames[self.start : self.end]
        frames: dict[int, int] = {}
        for frame, size in zip(owner, self._sizes, strict=True):
            frames[frame] = frames.get(frame, 0) + size
        level = fair_level(list(frames.values()), budget)
        for frame, size in frames.items():
            # Lines of other frames weigh nothing here; they are chosen for their own frame.
            own = [size if f == frame else 0 for f, size in zip(owner, self._sizes, strict=True)]
            self._acc = [0, *accumulate(own)]
            first, last = self._range_of(frame)
            self._fill(first, last, min(size, level), frame)

    def _range_of(self, frame: int) -> tuple[int, int]:
        first, last = self._lines.frame_starts.get(frame, (self.start, self.end))
        return max(first - self.start, 0), min(last, self.end) - self.start

    def _weight(self, first: int, last: int) -> int:
        return self._acc[last] - self._acc[first]

    def _fill(self, first: int, last: int, budget: int, frame: int) -> None:
        """Choose among the sibling regions in [first, last)."""
        while True:
            if self._weight(first, last) <= budget:
                self._keep(first, last, frame)
                return
            regions = self._regions(first, last, frame)
            if not regions:
                return
            if len(regions) > 1:
                break
            # One region: its head, and then what is in it.
            first, last = regions[0]
            head = self._weight(first, first + 1)
            self.kept[first] = 1
            if head > budget:
                self.shortened[first] = max(budget - MARKER_SIZE, SMALLEST_SHARE // 2)
                return
            if last == first + 1:
                return
            first, budget = first + 1, budget - head
        sizes = [self._weight(*region) for region in regions]
        kinds = self._lines.kinds
        weights = [MAIN_WEIGHT if kinds[self.start + first] == "main" else 1 for first, _ in regions]
        level = fair_level(sizes, budget, weights)
        if level >= SMALLEST_SHARE or level >= max(sizes):
            for region, size, weight in zip(regions, sizes, weights, strict=True):
                self._fill(*region, min(size, level * weight), frame)
            return
        self._ends_of_run(regions, sizes, budget - MARKER_SIZE, frame)

    def _ends_of_run(self, regions: list[tuple[int, int]], sizes: list[int], budget: int, frame: int) -> None:
        """Too many regions to show something of each: the first ones and the last."""
        cap = max(SMALLEST_SHARE, budget // 3)
        tail_left = int(budget * TAIL_PART)
        tail = len(regions)
        while tail > 1 and min(sizes[tail - 1], cap) <= tail_left:
            tail -= 1
            tail_left -= min(sizes[tail], cap)
            self._fill(*regions[tail], min(sizes[tail], cap), frame)
        left = int(budget * (1 - TAIL_PART)) + tail_left
        for number in range(tail):
            size = min(sizes[number], cap)
            if size > left and sum(sizes[number:tail]) > left + MARKER_SIZE:
                break
            left -= size
            self._fill(*regions[number], size, frame)

    def _regions(self, first: int, last: int, frame: int) -> list[tuple[int, int]]:
        found = []
        while first < last:
            end = min(self._ends[first], last)
            if self._weight(first, end):
                found.append((first, end))
            first = end
        return found

    def _keep(self, first: int, last: int, frame: int) -> None:
        frames = self._lines.frames
        for i in range(first, last):
            if frames[self.start + i] == frame:
                self.kept[i] = 1


def left_out(kinds: Sequence[str]) -> str:
    """What lines that are not shown hold, in few words: ``1,985 lines: 1,985 link``."""
    counts = Counter(kinds)
    most = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common(3))
    return f"{len(kinds):,} more line{'s' if len(kinds) != 1 else ''} ({most})"
