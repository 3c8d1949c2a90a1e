"""How a server ends: by the end of its input, or by a signal.

Rules: SIGTERM and SIGINT refuse new calls, give those that run 5 seconds, end every browser that was started, and end
the process with status 0; a second signal does not wait. The end of input ends at once, and with the same status.
"""

import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio

from .dispatch import Dispatcher

DRAIN_S = 5.0
CLOSE_S = 10.0
Serve = Callable[[anyio.Event], Awaitable[None]]
"""A transport. When the event is set, it returns as soon as the calls that run are answered."""

log = logging.getLogger(__name__)


async def serve_until_ended(
    dispatcher: Dispatcher, serve: Serve, watch: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run ``serve`` until it returns, or a signal comes and the time is over; then end everything.

    ``watch`` runs beside it for as long.
    """
    stop = anyio.Event()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_on_signal, dispatcher, stop, group.cancel_scope)
            group.start_soon(watch)
            await serve(stop)
            group.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True) as closing:
            await dispatcher.close()
        if closing.cancelled_caught:
            log.error("browsers did not end within %g s", CLOSE_S)


async def _on_signal(dispatcher: Dispatcher, stop: anyio.Event, scope: anyio.CancelScope) -> None:
    if os.name == "nt":
        return  # asyncio.run turns Ctrl+C into a cancellation, and there is nothing else
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.info("%s: ending", signal.Signals(number).name)
            dispatcher.refuse_new()
            stop.set()
            break
        with anyio.move_on_after(DRAIN_S):
            async for _ in signals:
                break
        log.warning("calls that still ran are cancelled")
        scope.cancel()
