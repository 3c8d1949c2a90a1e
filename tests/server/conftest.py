"""Fixtures of the server's tests: a server on a fake browser, reached by the official client in both eras."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from fakes.fake_browser import FakeBrowser
from mcp import Client

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.settings import Settings

ERAS = ("auto", "legacy")
Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
async def browser() -> AsyncIterator[FakeBrowser]:
    async with FakeBrowser() as made:
        yield made


@pytest.fixture
async def dispatcher(browser: FakeBrowser) -> AsyncIterator[Dispatcher]:
    made = Dispatcher(Settings.model_validate({"browser": {"cdp_url": browser.url, "bridge": "never"}}))
    yield made
    await made.close()


@pytest.fixture(params=ERAS)
def connect(request: pytest.FixtureRequest, dispatcher: Dispatcher) -> Connect:
    """``async with connect() as client``: the official client in this process, in one of the two eras."""

    @asynccontextmanager
    async def connected(**options: Any) -> AsyncIterator[Client]:
        async with Client(make_server(dispatcher), mode=request.param, read_timeout_seconds=30, **options) as client:
            yield client

    return connected


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the person who runs the tests."""
    import os

    for name in list(os.environ):
        if name.startswith("WATCHKEEPER_"):
            monkeypatch.delenv(name)
