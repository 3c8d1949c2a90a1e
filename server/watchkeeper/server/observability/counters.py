"""What the server counts: calls, how long they took, and what became of tasks and dialogs.

Rules: pure; one owner of every count. Each principal has counts of its own, so that nobody learns what others do.
Bounded: names of tools and outcomes are ours, principals are those of the settings, and a name beyond the cap is
counted as ``other``. Durations are kept in fixed buckets, so p50 and p95 are upper bounds: the end of the bucket.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor

Json = dict[str, Any]
BUCKETS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000)
MAX_NAMES = 200
"""Of tools, and of outcomes of each."""
OTHER = "other"


@dataclass(slots=True)
class Durations:
    """Of calls of one tool, in milliseconds."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))
    longest: float = 0.0

    def add(self, ms: float) -> None:
        self.buckets[bisect_left(BUCKETS_MS, ms)] += 1
        self.longest = max(self.longest, ms)

    def below(self, share: float) -> float:
        """A duration that this share of the calls did not exceed: the end of a bucket, or the longest of all."""
        wanted, seen = share * sum(self.buckets), 0
        for number, count in enumerate(self.buckets):
            seen += count
            if count and seen >= wanted:
                return min(BUCKETS_MS[number], self.longest) if number < len(BUCKETS_MS) else self.longest
        return 0.0

    def as_dict(self) -> Json:
        return {"p50": round(self.below(0.5), 1), "p95": round(self.below(0.95), 1), "max": round(self.longest, 1)}


@dataclass(slots=True)
class OfPrincipal:
    """``events`` counts by paths: ``("tasks", "idle")``, ``("dialogs", "confirm", "agent")``."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    durations: dict[str, Durations] = field(default_factory=dict)
    events: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def call_ended(self, tool: str, outcome: str, ms: float) -> None:
        tool = tool if tool in self.outcomes or len(self.outcomes) < MAX_NAMES else OTHER
        outcomes = self.outcomes.setdefault(tool, Counter())
        outcomes[outcome if outcome in outcomes or len(outcomes) < MAX_NAMES else OTHER] += 1
        self.durations.setdefault(tool, Durations()).add(ms)

    def calls(self) -> Json:
        """Tool -> its outcomes and ``ms``."""
        return {
            tool: {"outcomes": dict(sorted(outcomes.items())), "ms": self.durations[tool].as_dict()}
            for tool, outcomes in sorted(self.outcomes.items())
        }


class Counters:
    def __init__(self) -> None:
        self._of: dict[str, OfPrincipal] = {}

    def of(self, principal: str) -> OfPrincipal:
        return self._of.setdefault(principal, OfPrincipal())


def of_task(supervisor: "Supervisor") -> Counter[tuple[str, ...]]:
    """What is counted of a task, as ``events``."""
    state = supervisor.state
    found: Counter[tuple[str, ...]] = Counter({("dialogs", *ending): n for ending, n in state.dialogs.ended.items()})
    found["reconnects",] = state.connection.generation - 1
    for name, (_, dropped) in buffers(supervisor).items():
        found["dropped", name] = dropped
    return found


def buffers(supervisor: "Supervisor") -> dict[str, tuple[int, int]]:
    """Everything of a task that keeps the newest only: how many it keeps, and how many it has dropped."""
    from watchkeeper.supervisor.core import console, dialogs
    from watchkeeper.supervisor.page import network

    state = supervisor.state
    return {
        "console_errors": (console.ERRORS, state.console.errors_dropped),
        "console_other": (console.OTHERS, state.console.others_dropped),
        "closed_dialogs": (dialogs.RECENT, sum(state.dialogs.ended.values()) - len(state.dialogs.recent)),
        "network_requests": (network.KEPT, network.dropped_of(supervisor)),
    }


def nested(events: Mapping[tuple[str, ...], int], *, under: str) -> Json:
    """The counts whose path begins with ``under``, as nested objects."""
    found: Json = {}
    for path, count in sorted(events.items()):
        if path[0] != under or not count:
            continue
        place = found
        for name in path[1:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = count
    return found
