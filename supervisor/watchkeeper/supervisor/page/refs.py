"""Refs: which frame an element's ref belongs to.

Rules: a ref is ``e`` and a number in the top frame, ``f2e`` and a number in frame f2. A number is given once in a task,
over all its tabs and documents, so an old ref can be stale but never means another element. The number itself is kept
by the frame's own script; here is only which frame has given out which numbers.
"""

import re
from bisect import bisect_right

_REF = re.compile(r"@?(?:ref=)?((?:f\d+)?e)(\d+)$")


def parse(ref: str) -> tuple[str, int] | None:
    """Prefix and number of a ref; None where it has not the form of one."""
    found = _REF.match(ref.strip().strip("[]"))
    return None if found is None or len(found.group(2)) > 9 else (found.group(1), int(found.group(2)))


def prefix_of(short: str, is_top: bool) -> str:
    return "e" if is_top else f"{short}e"


class RefLedger:
    """Which frame gave out which numbers, by prefix."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._starts: dict[str, list[int]] = {}
        self._frames: dict[str, list[str]] = {}

    def next_number(self, prefix: str) -> int:
        return self._next.get(prefix, 1)

    def given(self, prefix: str, frame_id: str, next_number: int) -> None:
        """The frame has given out all numbers from ours on up to ``next_number``."""
        first = self.next_number(prefix)
        if next_number <= first:
            return
        frames = self._frames.setdefault(prefix, [])
        if not frames or frames[-1] != frame_id:
            frames.append(frame_id)
            self._starts.setdefault(prefix, []).append(first)
        self._next[prefix] = next_number

    def frame_of(self, prefix: str, number: int) -> str | None:
        """The id of the frame that gave this number out; None where none did."""
        starts = self._starts.get(prefix)
        if not starts or number < 1 or number >= self.next_number(prefix):
            return None
        return self._frames[prefix][bisect_right(starts, number) - 1]
