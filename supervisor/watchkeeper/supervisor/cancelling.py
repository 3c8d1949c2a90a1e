"""Cancel a task that has something to clean up, once, and wait until it has.

Rules: a scope of anyio shields from the cancellations of scopes, not from ``Task.cancel``. A task that is cancelled a
second time while it cleans up stops there, and leaves what it was about to end. Scopes that are cancelled do that to
every task that somebody in them awaits, at each turn of the loop, so tasks of ours are waited for (``asyncio.wait``)
and not awaited, and are cancelled here only.

Source: https://docs.python.org/3/library/asyncio-task.html#asyncio.Task.cancelling
"""

import asyncio
from typing import Any, TypeVar

from anyio import CancelScope

T = TypeVar("T")


def cancel_once(task: "asyncio.Task[Any]") -> None:
    """Cancel a task that nobody has cancelled so far."""
    if not task.cancelling():
        task.cancel()


async def end_task(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait for its end, also where the caller is cancelled meanwhile, which is raised afterwards.
    What the task gives or raises is left to the caller. Bounded where the task's clean-up is."""
    cancel_once(task)
    await until_done(task)


async def joined(task: "asyncio.Task[T]") -> T:
    """What the task gives or raises; where the caller is cancelled, the task is ended first."""
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await end_task(task)
        raise
    return task.result()


async def until_done(task: "asyncio.Task[Any]") -> None:
    """Wait for the end of a task; where the caller is cancelled meanwhile, that is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled
