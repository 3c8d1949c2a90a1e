"""The list of tools changes while clients are connected, and they are told, in both eras."""

from typing import Any

import anyio
import pytest
from mcp import Client

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import make_server

pytestmark = pytest.mark.anyio
NEEDS_BROWSER = {"browser_dialog", "browser_cdp"}


@pytest.fixture
def browserless(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    """No browser yet: what it could do is added by the test."""
    monkeypatch.setattr(dispatcher.tasks, "capabilities", lambda: frozenset(found))
    found.clear()
    return dispatcher


found: set[str] = set()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_a_client_of_an_older_revision_is_told(browserless: Dispatcher) -> None:
    server = make_server(browserless)
    told = anyio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async with Client(server, mode="legacy", message_handler=hear) as client:
        assert client.server_capabilities.tools is not None and client.server_capabilities.tools.list_changed
        assert not NEEDS_BROWSER & await names(client)
        assert not await server.offer.look(), "nothing changed, nobody is told"
        found.update({"cdp", "dialogs"})
        assert await server.offer.look()
        with anyio.fail_after(10):
            await told.wait()
        assert await names(client) >= NEEDS_BROWSER


async def test_a_client_of_the_newest_revision_hears_it_on_its_stream(browserless: Dispatcher) -> None:
    server = make_server(browserless)
    async with Client(server) as client, client.listen(tools_list_changed=True) as heard:
        assert not NEEDS_BROWSER & await names(client)
        found.update({"cdp", "dialogs"})
        assert await server.offer.look()
        with anyio.fail_after(10):
            async for event in heard:
                assert type(event).__name__ == "ToolsListChanged"
                break
        assert await names(client) >= NEEDS_BROWSER
