"""Calls of tools that come before the live server is there.

Rules: the dispatcher runs them under all of its rules, and they are answered through the front. One that is cancelled
stops. One that still runs when the live server comes is not begun again: the front hands its line over like every
other, and the call that the live server makes of it joins the one that runs.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from watchkeeper.supervisor.cancelling import cancel_once, joined

from ..daemon_thread import in_daemon_thread
from ..dispatch import Dispatcher, Reply, UnknownTool
from ..protocol.call_result import call_result
from ..protocol.clients import form
from ..tools.spec import Json, Progress
from .boot import EarlyCall, Front

if TYPE_CHECKING:
    from ..questions import Person


class JoiningDispatcher(Dispatcher):
    """Calls may be begun before their requests come; each is joined by the first equal request."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._begun: dict[asyncio.Task[Reply], tuple[str, Json]] = {}

    def begin(self, name: str, arguments: Json) -> "asyncio.Task[Reply]":
        """Nobody is told of its progress, and nobody can be asked."""
        begun = asyncio.create_task(super().call(name, arguments, "", _silent), name="watchkeeper-early-call")
        self._begun[begun] = (name, arguments)
        return begun

    def forget(self, begun: "asyncio.Task[Reply]") -> None:
        """No request for it will come."""
        self._begun.pop(begun, None)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        principal: str,
        progress: Progress,
        person: "Person | None" = None,
    ) -> Reply:
        for begun, asked in self._begun.items():
            if asked == (name, arguments) and not principal:
                self.forget(begun)
                return await joined(begun)  # cancelled here, it is cancelled there
        return await super().call(name, arguments, principal, progress, person)

    async def close(self) -> None:
        begun = [*self._begun]
        for task in begun:
            cancel_once(task)
        await asyncio.gather(*begun, return_exceptions=True)
        await super().close()


class EarlyCalls:
    """``look`` is called whenever the front has changed, and once at first."""

    def __init__(self, front: Front, dispatcher: JoiningDispatcher) -> None:
        self._front = front
        self._dispatcher = dispatcher
        self._running: dict[EarlyCall, asyncio.Task[None]] = {}
        self._begun: dict[EarlyCall, asyncio.Task[Reply]] = {}

    def look(self) -> None:
        wanted = self._front.calls
        for call in wanted:
            if call not in self._running:
                self._running[call] = asyncio.create_task(self._answer(call), name="watchkeeper-early-answer")
        for call in self._begun.keys() - set(wanted):
            cancel_once(self._begun[call])

    async def idle(self) -> None:
        """Wait until none runs."""
        while running := [task for task in self._running.values() if not task.done()]:
            await asyncio.wait(running)

    async def _answer(self, call: EarlyCall) -> None:
        begun = self._begun[call] = self._dispatcher.begin(call.tool, call.arguments)
        await asyncio.wait([begun])
        del self._begun[call]
        if begun.cancelled() or isinstance(begun.exception(), UnknownTool):
            self._dispatcher.forget(begun)  # was cancelled, or is for the live server to refuse
        elif self._front.take(call):
            self._dispatcher.forget(begun)
            result = call_result(begun.result(), form("auto", call.client, call.revision))
            await in_daemon_thread(lambda: self._front.give(call, result), "watchkeeper-early-answer")


async def _silent(done: float, total: float | None = None, message: str | None = None) -> None:
    return
