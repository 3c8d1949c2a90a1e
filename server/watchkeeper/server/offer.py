"""Which tools are offered may change: a browser is installed while the server runs. Clients are told.

Rules: looks now and then, at the names only, and says that the list changed, in the way of each era: on streams that
clients opened with ``subscriptions/listen``, and to connections of older revisions that have asked for the list.

Source: https://modelcontextprotocol.io/specification/2026-07-28/server/tools#list-changed-notification
"""

import logging
import weakref
from collections.abc import Awaitable, Callable

import anyio
from mcp.server.connection import Connection
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from .dispatch import Dispatcher

LOOK_EVERY_S = 15.0
log = logging.getLogger(__name__)


class Offer:
    """The changing list of tools of one dispatcher, and who is told of changes."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._bus = InMemorySubscriptionBus()
        self._older: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._told = self._names()
        self.listen = ListenHandler(self._bus)

    def asked_by(self, session: ServerSession) -> None:
        """A connection of an older revision has the list now."""
        # The session is a proxy of this one request; what lives as long as the client is the connection behind it.
        self._older.add(session._connection)

    async def look(self) -> bool:
        """Compare with what clients were told last, and tell them; true where it changed."""
        names = self._names()
        if names == self._told:
            return False
        self._told = names
        await self._bus.publish(ToolsListChanged())
        for connection in tuple(self._older):
            await connection.send_tool_list_changed()  # nothing is sent where the client is gone
        log.info("the list of tools changed: %d tools", len(names))
        return True

    async def watch(self, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        while True:
            await sleep(LOOK_EVERY_S)
            await self.look()

    def _names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self._dispatcher.offered())
