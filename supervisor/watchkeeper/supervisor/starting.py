"""Start a browser, and the gates that it connects through where there is a policy for it.

Rules: the gates come first, because the browser's command line names their port. Whatever fails, and however it is
cancelled, leaves neither. A browser may be started before the policy for addresses is known (``undecided``): until it
is, no task can be added, and what belongs to no task reaches nothing anyway.
"""

import asyncio
from dataclasses import dataclass

from anyio import CancelScope

from .backends.connected import Connected
from .backends.connecting import connect
from .backends.endpoint import Endpoint, LocalEndpoint
from .backends.launch import check_proxy
from .cancelling import cancel_once, until_done
from .egress import EgressPolicy, Gates
from .errors import LaunchFailed, SupervisorError


@dataclass(frozen=True, slots=True)
class Started:
    """A browser that answers. ``gates``: None where it connects without them."""

    connected: Connected
    gates: Gates | None

    async def close(self) -> None:
        """End both. Bounded, and not stopped by cancellation."""
        with CancelScope(shield=True):
            await self.connected.close()
            if self.gates is not None:
                await self.gates.close()


def isolates(endpoint: Endpoint) -> bool:
    """Whether tasks get browser contexts of their own there: in a browser of ours with a temporary profile."""
    return isinstance(endpoint, LocalEndpoint) and endpoint.user_data_dir is None


async def start(endpoint: Endpoint, *, timeout: float, egress: EgressPolicy | None) -> Started:
    """Start or reach the browser of this endpoint, within ``timeout`` seconds. ``egress``: what a browser that is
    started here may connect to; None: anything.

    Raises: BrowserNotFound, LaunchFailed, EndpointUnreachable, InvalidArgument.
    """
    gates = await _gates(endpoint, egress)
    try:
        route = gates.route if gates is not None else None
        return Started(await connect(endpoint, timeout=timeout, route=route), gates)
    except BaseException:
        if gates is not None:
            with CancelScope(shield=True):
                await gates.close()
        raise


async def abandon(starting: "asyncio.Task[Started]") -> None:
    """End a browser that nobody wants any more, however far its start has come. Bounded."""
    cancel_once(starting)
    # In a task of its own, for whoever wants it no more may be cancelled in any way, and more than once.
    ending = asyncio.create_task(_end(starting), name="watchkeeper-abandon")
    await until_done(ending)
    ending.result()


async def _end(starting: "asyncio.Task[Started]") -> None:
    await asyncio.wait([starting])
    try:
        started = starting.result()
    except (SupervisorError, asyncio.CancelledError):
        return
    await started.close()


async def _gates(endpoint: Endpoint, egress: EgressPolicy | None) -> Gates | None:
    if egress is None or not isinstance(endpoint, LocalEndpoint):
        return None
    if endpoint.proxy is not None:
        check_proxy(endpoint.proxy)
    try:
        return await Gates.start(egress, endpoint.proxy, isolated=isolates(endpoint))
    except OSError as error:
        raise LaunchFailed(
            f"The proxy that checks addresses cannot listen on loopback: {error.strerror or error}.",
            "Check the limits on open files, and that 127.0.0.1 is up.",
        ) from None
