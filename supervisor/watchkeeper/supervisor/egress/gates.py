"""The gates of one browser: one for each task, and one for what belongs to no task.

Rules: in a browser whose tasks have contexts of their own each task has a gate of its own, so what was refused is told
to the task that asked for it and to no other; the browser's own services, which no task needs, reach nothing. Where
tasks share a profile they share its gate.
"""

from collections.abc import Callable

from .gate import BROWSERS_OWN, Gate
from .policy import EgressPolicy, Outcome, ProxyRoute
from .resolving import Resolver


class _Undecided:
    """Where the policy is not known yet; ``Gates.decide`` brings it before there is a task."""

    checks_loopback = False

    def of_host(self, host: str, port: int) -> str:
        return "it is not decided yet what may be connected to"

    def of_address(self, address: object, host: str, port: int) -> None:
        return None


UNDECIDED: EgressPolicy = _Undecided()


class Gates:
    """Made by ``start``."""

    def __init__(self, policy: EgressPolicy, upstream: str | None, *, isolated: bool) -> None:
        self._policy = policy
        self._upstream = upstream
        self._isolated = isolated
        self._resolver = Resolver()
        self._hearers: list[Callable[[Outcome], None]] = []
        self._browsers = Gate(
            BROWSERS_OWN if isolated else policy,
            self._resolver,
            upstream=upstream,
            on_outcome=None if isolated else self._tell_all,
        )
        self._open: set[Gate] = set()

    @classmethod
    async def start(cls, policy: EgressPolicy, upstream: str | None, *, isolated: bool) -> "Gates":
        """Raises OSError where nothing can listen on loopback."""
        made = cls(policy, upstream, isolated=isolated)
        await made._browsers.open()
        return made

    @property
    def route(self) -> ProxyRoute:
        """For the browser's command line."""
        route = self._browsers.route
        if self._isolated and not self._policy.checks_loopback:
            return ProxyRoute(route.server, route.bypass, relayed_only=False)
        return route

    def decide(self, policy: EgressPolicy) -> None:
        """The policy of gates that were started ``UNDECIDED``; before there is a task."""
        self._policy = policy

    async def for_task(self, on_outcome: Callable[[Outcome], None]) -> Gate:
        """The gate of a new task."""
        if not self._isolated:
            self._hearers.append(on_outcome)
            return self._browsers
        gate = Gate(self._policy, self._resolver, upstream=self._upstream, on_outcome=on_outcome)
        self._open.add(await gate.open())
        return gate

    async def end_task(self, gate: Gate, on_outcome: Callable[[Outcome], None]) -> None:
        if gate is self._browsers:
            self._hearers = [hearer for hearer in self._hearers if hearer != on_outcome]
            return
        self._open.discard(gate)
        await gate.close()

    async def close(self) -> None:
        for gate in (*self._open, self._browsers):
            await gate.close()
        self._open.clear()
        self._resolver.close()

    def _tell_all(self, outcome: Outcome) -> None:
        for hearer in self._hearers:
            hearer(outcome)
