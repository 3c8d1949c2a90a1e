"""Clients that hear of changes, in either era: by a stream of their own, or as their connection is told."""

import warnings
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client

GUARD_S = 60.0
Open = Callable[..., Any]
"""``open(mode, **options)`` gives an async context manager of a client."""


class Heard(list[str]):
    """What was heard, in order: addresses of resources, or ``tools``, ``resources``, ``prompts`` for lists."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = anyio.Event()

    def add(self, what: str) -> None:
        self.append(what)
        self._changed.set()
        self._changed = anyio.Event()

    def forget(self, what: str) -> None:
        self[:] = [heard for heard in self if heard != what]

    async def until(self, *wanted: str) -> None:
        """Wait until all of these were heard."""
        with anyio.fail_after(GUARD_S):
            while not set(wanted) <= set(self):
                await self._changed.wait()


@asynccontextmanager
async def hearing(open: Open, era: str, uris: Iterable[str] = ()) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that hears of all lists and of these resources. ``era``: ``auto`` is the newest, ``legacy`` older."""
    heard, uris = Heard(), list(uris)

    async def hear(message: Any) -> None:
        method = getattr(message, "method", "")
        if method == "notifications/resources/updated":
            heard.add(str(message.params.uri))
        elif method.endswith("/list_changed"):
            heard.add(method.split("/")[1])

    # A stream's events come by that stream; the handler would see them once more.
    async with open(era, **({"message_handler": hear} if era == "legacy" else {})) as client:
        if era == "legacy":
            for uri in uris:
                await subscribed(client, uri)
            yield client, heard
            return
        lists = dict.fromkeys(("tools_list_changed", "prompts_list_changed", "resources_list_changed"), True)
        async with client.listen(**lists, resource_subscriptions=uris) as events, anyio.create_task_group() as group:

            async def listen() -> None:
                async for event in events:
                    uri = getattr(event, "uri", None)
                    heard.add(uri or type(event).__name__.removesuffix("ListChanged").lower())

            group.start_soon(listen)
            yield client, heard
            group.cancel_scope.cancel()


async def subscribed(client: Client, uri: str, *, end: bool = False) -> None:
    """``resources/subscribe`` of older revisions, and its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await (client.unsubscribe_resource(uri) if end else client.subscribe_resource(uri))
