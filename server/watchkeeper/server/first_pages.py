"""Pages that clients ask for before the live server is there.

Rules: they are opened by the dispatcher, under all of its rules, and answered through the front. One that is cancelled
stops. One that still runs when the live server comes is not begun again: the front hands its line over like every
other, and the call that the live server makes of it joins the one that runs.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .boot import NAVIGATE, Front, PageCall
from .call_result import call_result
from .clients import form
from .dispatch import Dispatcher, Reply
from .tools.spec import Json, Progress

if TYPE_CHECKING:
    from .questions import Person


class JoiningDispatcher(Dispatcher):
    """Calls may be begun before their requests come; the first equal request joins one."""

    _begun: tuple[tuple[Json, "asyncio.Task[Reply]"], ...] = ()

    def begin_page(self, arguments: Json) -> "asyncio.Task[Reply]":
        """Nobody is told of its progress, and nobody can be asked."""
        opening = super().call(NAVIGATE, arguments, "", _silent)
        begun = asyncio.create_task(opening, name="watchkeeper-first-page")
        self._begun += ((arguments, begun),)
        return begun

    def forget(self, begun: "asyncio.Task[Reply]") -> None:
        """It is answered, or was cancelled."""
        self._begun = tuple(entry for entry in self._begun if entry[1] is not begun)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        principal: str,
        progress: Progress,
        person: "Person | None" = None,
    ) -> Reply:
        equal = (begun for given, begun in self._begun if name == NAVIGATE and given == arguments and not principal)
        begun = next(equal, None)
        if begun is None:
            return await super().call(name, arguments, principal, progress, person)
        self.forget(begun)
        return await begun  # cancelled here, it is cancelled there

    async def close(self) -> None:
        for _, begun in self._begun:
            begun.cancel()
        await asyncio.gather(*(begun for _, begun in self._begun), return_exceptions=True)
        self._begun = ()
        await super().close()


class FirstPages:
    """``look`` is called whenever the front has changed, and once at first."""

    def __init__(self, front: Front, dispatcher: JoiningDispatcher) -> None:
        self._front = front
        self._dispatcher = dispatcher
        self._running: dict[PageCall, asyncio.Task[None]] = {}
        self._begun: dict[PageCall, asyncio.Task[Reply]] = {}

    def look(self) -> None:
        wanted = self._front.pages
        for call in wanted:
            if call not in self._running:
                self._running[call] = asyncio.create_task(self._open(call), name="watchkeeper-first-answer")
        for call in self._begun.keys() - set(wanted):
            self._begun[call].cancel()

    async def idle(self) -> None:
        """Wait until none is being opened."""
        while running := [task for task in self._running.values() if not task.done()]:
            await asyncio.wait(running)

    async def _open(self, call: PageCall) -> None:
        begun = self._begun[call] = self._dispatcher.begin_page(call.arguments)
        await asyncio.wait([begun])
        del self._begun[call]
        if not begun.cancelled():
            result = call_result(begun.result(), form("auto", call.client, call.revision))
            if not await asyncio.to_thread(self._front.answer, call, result):
                return  # the live server has it, and joins
        self._dispatcher.forget(begun)


async def _silent(done: float, total: float | None = None, message: str | None = None) -> None:
    return
