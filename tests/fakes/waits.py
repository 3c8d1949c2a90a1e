"""Waiting for what a real browser does, bounded."""

from collections.abc import Awaitable, Callable

from watchkeeper.supervisor import Supervisor, View

WAIT_S = 15.0
Start = Callable[..., Awaitable[Supervisor]]


async def pending(supervisor: Supervisor, count: int = 1) -> View:
    """The view, once so many dialogs are open."""
    return await supervisor.wait_for(lambda view: view if len(view.pending_dialogs) == count else None, WAIT_S)


async def quiet(supervisor: Supervisor) -> View:
    """The view, once no dialog is open."""
    return await supervisor.wait_for(lambda view: None if view.pending_dialogs else view, WAIT_S)


async def frames(supervisor: Supervisor, count: int) -> View:
    """The view, once the selected tab has so many frames, each with an address."""
    return await supervisor.wait_for(
        lambda view: view if len(view.frames) == count and all(frame.url for frame in view.frames) else None, WAIT_S
    )
