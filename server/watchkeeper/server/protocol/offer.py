"""Which tools and prompts are offered may change: a browser is installed while the server runs. Clients are told.

Rules: looks now and then, at the names only, and says that the list changed.

Source: https://modelcontextprotocol.io/specification/2026-07-28/server/tools#list-changed-notification
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from ..dispatch import Dispatcher
from .prompts import offered as offered_prompts
from .subscriptions import Subscriptions

LOOK_EVERY_S = 15.0
log = logging.getLogger(__name__)


class Offer:
    """The changing lists of one dispatcher; ``subscriptions`` knows who is told."""

    def __init__(self, dispatcher: Dispatcher, subscriptions: Subscriptions) -> None:
        self._dispatcher = dispatcher
        self._subscriptions = subscriptions
        self._told = self._names()

    async def look(self) -> bool:
        """Compare with what clients were told last, and tell them; true where it changed."""
        names = self._names()
        if names == self._told:
            return False
        before, self._told = self._told, names
        self._subscriptions.lists_changed(tools=names[0] != before[0], prompts=names[1] != before[1])
        log.info("what is offered changed: %d tools, %d prompts", *map(len, names))
        return True

    async def watch(self, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        while True:
            await sleep(LOOK_EVERY_S)
            await self.look()

    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        tools = tuple(spec.name for spec in self._dispatcher.offered())
        return tools, tuple(prompt.name for prompt in offered_prompts(self._dispatcher))
