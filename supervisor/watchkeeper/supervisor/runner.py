"""One connection to a browser: reads messages, numbers commands, keeps deadlines.

Rules: the reader awaits nothing but the transport; handing an event on is synchronous. A command that cannot be sent
ends like one that was lost. Once the transport has ended, every command in flight ends at once and ``on_lost`` is told.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from .core import wire
from .core.inputs import Event
from .core.wire import Reply
from .errors import CallTimeout, ConnectionLost, ProtocolError, SupervisorError, TransportClosed
from .pending import Command, Finish, PendingCommands
from .transport import Transport

BATCH = 200
"""Messages handled before other tasks get their turn, so that an event flood starves nobody."""


class Runner:
    """``on_event`` gets every event in order; ``on_lost`` gets the reason, once."""

    def __init__(self, transport: Transport, on_event: Callable[[Event], None], on_lost: Callable[[str], None]) -> None:
        self._transport = transport
        self._on_event = on_event
        self._on_lost = on_lost
        self._number = 0
        self.pending = PendingCommands()
        self.lost: str | None = None
        """Why the connection ended; None while it lives."""
        self.malformed = 0
        """Messages that made no sense."""

    async def run(self) -> None:
        """Read until the transport ends."""
        handled = 0
        try:
            while True:
                message = await self._transport.receive()
                self._handle(message)
                handled += 1
                if handled % BATCH == 0:
                    await asyncio.sleep(0)
        except TransportClosed as end:
            self.end(end.message)

    def send(
        self,
        session_id: str | None,
        method: str,
        params: Mapping[str, Any],
        finish: Finish,
        *,
        timeout: float,
        page_id: str | None = None,
    ) -> None:
        """Send a command; ``finish`` gets its outcome, within ``timeout`` seconds, exactly once."""
        self._number += 1
        number = self._number
        if self.lost is not None:
            finish(_lost(method, self.lost))
            return
        timer = asyncio.get_running_loop().call_later(timeout, self._expire, number, method, timeout)
        self.pending.add(Command(number, method, session_id, page_id, finish, timer.cancel))
        try:
            self._transport.send(wire.encode(number, session_id, method, params))
        except TransportClosed as end:
            self.pending.finish(number, _lost(method, end.message))
        except SupervisorError as error:
            self.pending.finish(number, error)

    async def call(
        self,
        session_id: str | None,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: float,
        page_id: str | None = None,
    ) -> Mapping[str, Any]:
        """Send a command and wait for its result. Raises the error that it ended with."""
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()

        def finish(outcome: Reply | SupervisorError) -> None:
            if answered.done():
                return
            if isinstance(outcome, SupervisorError):
                answered.set_exception(outcome)
            elif outcome.is_error:
                answered.set_exception(refusal(method, outcome))
            else:
                answered.set_result(outcome.result)

        self.send(session_id, method, params, finish, timeout=timeout, page_id=page_id)
        return await answered

    def _handle(self, message: str | bytes) -> None:
        decoded = wire.decode(message)
        if decoded is None:
            self.malformed += 1
        elif isinstance(decoded, Event):
            self._on_event(decoded)
        else:
            self.pending.finish(decoded.id, decoded)

    def _expire(self, number: int, method: str, timeout: float) -> None:
        self.pending.finish(
            number,
            CallTimeout(
                f"{method} was not answered within {timeout:g} s.",
                "The page may be busy or waiting. Take a browser_snapshot to see its state, or give a longer timeout.",
            ),
        )

    def end(self, reason: str) -> None:
        """The connection is over: tell everybody who waits. Idempotent."""
        if self.lost is not None:
            return
        self.lost = reason
        self.pending.interrupt(lambda _: True, lambda command: _lost(command.method, reason))
        self._on_lost(reason)


def refusal(method: str, reply: Reply) -> ProtocolError:
    """The browser's own refusal, in our tree of errors."""
    hint = "Check the method's name and parameters against the CDP reference."
    if reply.code == -32601:
        hint = "This browser does not know the method, or not for this kind of target."
    return ProtocolError(f"{method}: {reply.message}", hint, cdp_code=reply.code)


def _lost(method: str, reason: str) -> ConnectionLost:
    return ConnectionLost(
        f"The connection to the browser ended ({reason}); {method} got no answer.",
        "Call browser_navigate: it connects again, or starts the browser again.",
    )
