"""Fixtures of the security tests: the server's own dispatcher on a real browser, as clients reach it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fakes.site import Site

from watchkeeper.server.dispatch import Dispatcher, Reply
from watchkeeper.server.settings import Settings

GUARD_S = 60.0


class Agent:
    """What a client with tools can do; ``reply`` keeps the last answer."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    async def __call__(self, tool: str, **arguments: Any) -> Reply:
        async def progress(done: float, total: float | None = None, message: str | None = None) -> None:
            return None

        return await asyncio.wait_for(self.dispatcher.call(tool, arguments, "", progress), GUARD_S)

    async def cdp(self, method: str, **params: Any) -> Reply:
        return await self("browser_cdp", method=method, params=params)

    @property
    def supervisor(self) -> Any:
        return self.dispatcher.tasks.require("", "default")


StartAgent = Callable[..., Awaitable[Agent]]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
async def agent() -> AsyncIterator[StartAgent]:
    """``await agent(browser={...}, server={...})``: settings of a server, on a browser that is started on first use."""
    made: list[Dispatcher] = []

    async def start(**settings: dict[str, Any]) -> Agent:
        browser = {"headless": True, **settings.pop("browser", {})}
        made.append(Dispatcher(Settings.model_validate({"browser": browser, **settings})))
        return Agent(made[-1])

    yield start
    for dispatcher in made:
        await asyncio.wait_for(dispatcher.close(), GUARD_S)
