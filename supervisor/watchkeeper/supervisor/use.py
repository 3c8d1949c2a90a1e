"""When a task was used last: what ends idle tasks, and what people are told of them.

Rules: whoever acts on a task, or finds it again to act on it, uses it; looking does not. A call that runs is use from
its beginning to its end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Use:
    """``clock`` gives seconds and never runs back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.running = 0
        """How many calls run."""

    def touch(self) -> None:
        self._last = self._clock()

    @contextmanager
    def during(self) -> Iterator[None]:
        """For as long as a call runs."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self.touch()

    @property
    def idle_s(self) -> float:
        """Seconds since the last use; 0 while a call runs."""
        return 0.0 if self.running else self._clock() - self._last
