"""How often a client is told that something changed: at once, then not again before its time.

Rules: pure; time is an argument, in seconds. No change is lost: what changes too soon is told when its time has come,
once, however often it changed.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=str)


class Pace(Generic[Key]):
    """``every``: the least seconds between two times that a key is told; 0 for at once."""

    def __init__(self, every: Mapping[Key, float]) -> None:
        self._every = every
        self._may_at: dict[Key, float] = {}
        self._changed: set[Key] = set()

    def changed(self, key: Key) -> None:
        self._changed.add(key)

    def due(self, now: float) -> tuple[Key, ...]:
        """What is to be told now, in alphabetical order; it counts as told."""
        due = tuple(sorted(key for key in self._changed if self._may_at.get(key, now) <= now))
        self._changed.difference_update(due)
        self._may_at.update({key: now + self._every[key] for key in due})
        return due

    def next(self) -> float | None:
        """When something will be due; None where nothing has changed."""
        return min((self._may_at.get(key, 0.0) for key in self._changed), default=None)
