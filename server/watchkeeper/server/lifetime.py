"""How a server ends: by the end of its input, or by a signal.

Rules: SIGTERM, SIGINT and SIGHUP refuse new calls, give those that run 5 seconds, end every browser that was started,
and end the process with status 0; a second signal does not wait for calls, and none keeps browsers from being ended,
however the end began: clients close the input and send a signal soon after. The end of input ends at once, and with the
same status.
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
    async with anyio.create_task_group() as around:
        try:
            async with anyio.create_task_group() as group:
                around.start_soon(_on_signal, dispatcher, stop, group.cancel_scope)
                group.start_soon(watch)
                await serve(stop)
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(CLOSE_S, shield=True) as closing:
                await dispatcher.close()
            if closing.cancelled_caught:
                log.error("browsers did not end within %g s", CLOSE_S)
            around.cancel_scope.cancel()


async def _on_signal(dispatcher: Dispatcher, stop: anyio.Event, scope: anyio.CancelScope) -> None:
    if os.name == "nt":
        return  # asyncio.run turns Ctrl+C into a cancellation, and there is nothing else
    with anyio.open_signal_receiver(*_ending()) as signals:
        async for number in signals:
            log.info("%s: ending", signal.Signals(number).name)
            dispatcher.refuse_new()
            stop.set()
            break
        with anyio.move_on_after(DRAIN_S):
            async for _ in signals:
                break
        if not scope.cancel_called:
            log.warning("calls that still ran are cancelled")
            scope.cancel()
        async for _ in signals:
            pass  # browsers are being ended, in bounded time; dying now would leave some behind


def _ending() -> list[signal.Signals]:
    """The signals that end the server: a terminal that closes too, unless somebody has said that it may (nohup)."""
    hangs_up = signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    return [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hangs_up else [])]
