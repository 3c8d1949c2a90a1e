"""Which frames wait for the response of a navigation: until it comes, nothing that is asked of them is answered.

Rules: listens for the whole life of the task. A question to a frame that waits is given little time, and the answer
says what it waits for; nothing is stopped, for the response may still come.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#event-frameStartedNavigating
"""

import asyncio
from dataclasses import dataclass

from ..core import fields
from ..core.inputs import Event
from .errors import PageLoading
from .port import PagePort

PATIENCE_S = 2.0
"""How long a frame that waits for a response is waited for before it is said so."""
LEAST_PATIENCE_S = 0.2
_SAME_DOCUMENT = frozenset({"sameDocument", "historySameDocument"})


@dataclass(frozen=True, slots=True)
class Pending:
    """``since`` is in the time of the event loop."""

    url: str
    since: float


class Loading:
    """Follows the navigations of one task's frames."""

    def __init__(self, port: PagePort) -> None:
        self._pending: dict[str, Pending] = {}
        self._changed = asyncio.Event()
        port.listen(self._hear)

    def of(self, frame_id: str) -> Pending | None:
        return self._pending.get(frame_id)

    async def over(self, frame_id: str) -> None:
        """Wait a little for the response of a frame. Raises PageLoading where none comes."""
        begun = self._pending.get(frame_id)
        if begun is None:
            return
        waited = asyncio.get_running_loop().time() - begun.since
        try:
            async with asyncio.timeout(max(LEAST_PATIENCE_S, PATIENCE_S - waited)):
                while frame_id in self._pending:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pending = self._pending.get(frame_id)
            if pending is not None:
                raise self.error(pending) from None

    def error(self, pending: Pending) -> PageLoading:
        waited = asyncio.get_running_loop().time() - pending.since
        return PageLoading(pending.url, waited)

    def _hear(self, event: Event) -> None:
        params = event.params
        frame_id = fields.text(params, "frameId")
        match event.method:
            case "Page.frameStartedNavigating":
                if fields.text(params, "navigationType") in _SAME_DOCUMENT:
                    return
                self._pending[frame_id] = Pending(fields.text(params, "url"), asyncio.get_running_loop().time())
            case "Page.frameNavigated":
                self._pending.pop(fields.text(fields.mapping(params, "frame"), "id"), None)
            case "Page.frameStoppedLoading" | "Page.frameDetached" | "Page.downloadWillBegin":
                self._pending.pop(frame_id, None)
            case "Target.detachedFromTarget":
                self._pending.pop(fields.text(params, "targetId"), None)
            case _:
                return
        self._changed.set()
