"""Changes are told to who subscribed, in both eras; nothing grows, and nobody holds up others."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.hearing import hearing, subscribed
from mcp import Client
from mcp.shared.exceptions import MCPError

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol import subscriptions
from watchkeeper.server.protocol.app import WatchkeeperServer, make_server

from .conftest import ERAS

pytestmark = pytest.mark.anyio
URL = {"url": "http://a.test/"}
NONE = ("file:///etc/passwd", "watchkeeper://tasks//dialogs", "watchkeeper://archive/")
"""Addresses that lead nowhere."""
SNAPSHOT, DIALOGS, CONSOLE = (f"watchkeeper://tasks/default/{part}" for part in ("snapshot", "dialogs", "console"))
Open = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def server(dispatcher: Dispatcher) -> WatchkeeperServer:
    return make_server(dispatcher)


@pytest.fixture
def opened(server: WatchkeeperServer) -> Open:
    return lambda era, **options: Client(server, mode=era, read_timeout_seconds=60, **options)


async def log(browser: FakeBrowser, text: str) -> None:
    line = {"type": "log", "args": [{"type": "string", "value": text}], "executionContextId": 1, "timestamp": 1}
    await browser.emit("Runtime.consoleAPICalled", line, "S1")


async def watched(server: WatchkeeperServer, count: int) -> None:
    """Wait until so many tasks are watched."""
    with anyio.fail_after(30):
        while len(server.subscriptions._watches) != count:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("era", ERAS)
async def test_a_dialog_a_line_and_a_navigation_are_told_as_they_happen(
    opened: Open, browser: FakeBrowser, dispatcher: Dispatcher, era: str
) -> None:
    async with hearing(opened, era, [SNAPSHOT, DIALOGS, CONSOLE]) as (client, heard):
        await client.call_tool("browser_navigate", URL)  # subscribed before the task began
        await heard.until(SNAPSHOT, DIALOGS, CONSOLE, "resources")
        heard.clear()
        await browser.dialog()
        await heard.until(DIALOGS, SNAPSHOT)
        heard.clear()
        await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
        await heard.until(DIALOGS)
        await log(browser, "hello")
        await heard.until(CONSOLE)
        heard.clear()
        await client.call_tool("browser_navigate", {"url": "http://a.test/2"})
        await heard.until(SNAPSHOT)


@pytest.mark.parametrize("era", ERAS)
async def test_only_what_was_subscribed_to_is_told_and_a_burst_once(
    opened: Open, browser: FakeBrowser, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(subscriptions, "EVERY_S", {"dialogs": 0.0, "snapshot": 3600.0, "console": 3600.0})
    async with hearing(opened, era, [DIALOGS, CONSOLE]) as (client, heard):
        await client.call_tool("browser_navigate", URL)
        await heard.until(CONSOLE, DIALOGS)
        heard.clear()
        for number in range(50):
            await log(browser, str(number))
        await browser.dialog()
        await heard.until(CONSOLE, DIALOGS)
    assert heard.count(CONSOLE) == 1
    assert SNAPSHOT not in heard


@pytest.mark.parametrize("era", ERAS)
async def test_the_list_changes_when_tasks_begin_and_end(opened: Open, era: str) -> None:
    async with hearing(opened, era, ["watchkeeper://status"]) as (client, heard):
        for tool, arguments in (("browser_navigate", URL), ("browser_close", {})):
            heard.clear()
            await client.call_tool(tool, arguments)
            await heard.until("resources", "watchkeeper://status")
        heard.clear()
        await client.call_tool("browser_close", {})
        await client.list_tools()
        assert list(heard) == [], "a task that is not there does not end"


async def test_what_is_told_no_longer_is_not_told(
    opened: Open, browser: FakeBrowser, server: WatchkeeperServer
) -> None:
    async with hearing(opened, "legacy", [DIALOGS, CONSOLE]) as (client, heard):
        await client.call_tool("browser_navigate", URL)
        await heard.until(DIALOGS, CONSOLE)
        await subscribed(client, DIALOGS, end=True)
        await subscribed(client, DIALOGS, end=True)
        heard.clear()
        await browser.dialog()
        await log(browser, "after it")
        await heard.until(CONSOLE)
        assert DIALOGS not in heard
        await subscribed(client, CONSOLE, end=True)
        await watched(server, 0)


@pytest.mark.parametrize("era", ERAS)
async def test_subscriptions_end_with_their_connection(
    opened: Open, server: WatchkeeperServer, dispatcher: Dispatcher, era: str
) -> None:
    async with hearing(opened, era, [DIALOGS]) as (client, heard):
        await client.call_tool("browser_navigate", URL)
        await heard.until(DIALOGS)
        await watched(server, 1)
    await watched(server, 0)
    made = server.subscriptions
    assert (made._older, made._streams, made._wanted, made._spelled) == ({}, {}, {}, {})


@pytest.mark.parametrize("era", ERAS)
async def test_who_writes_an_address_in_another_way_is_told_in_that_way(
    opened: Open, browser: FakeBrowser, era: str
) -> None:
    """RFC 3986 and the functions of languages differ in what they encode."""
    spelled = [f"watchkeeper://tasks/{name}/dialogs" for name in ("it's!", "it%27s%21", "i%74's%21")]
    async with hearing(opened, era, spelled) as (client, heard):
        await client.call_tool("browser_navigate", {**URL, "task_id": "it's!"})
        await heard.until(*spelled)
        heard.clear()
        await browser.dialog()
        await heard.until(*spelled)


@pytest.mark.parametrize("era", ERAS)
async def test_a_task_that_begins_again_is_followed_again(
    opened: Open, browser: FakeBrowser, server: WatchkeeperServer, era: str
) -> None:
    async with hearing(opened, era, [DIALOGS]) as (client, heard):
        for page in (1, 2):
            await client.call_tool("browser_navigate", URL)
            await heard.until(DIALOGS)
            await watched(server, 1)
            heard.clear()
            await browser.dialog(page)
            await heard.until(DIALOGS)
            heard.clear()
            await client.call_tool("browser_close", {})
            await heard.until(DIALOGS)
            await watched(server, 0)
            heard.clear()


@pytest.mark.parametrize("era", ERAS)
async def test_there_is_a_cap_and_the_refusal_names_it(opened: Open, era: str) -> None:
    uris = [f"watchkeeper://tasks/{number}/dialogs" for number in range(subscriptions.MAX_RESOURCES)]
    one_more = "watchkeeper://tasks/more/dialogs"
    async with hearing(opened, era, uris) as (client, _):
        with pytest.raises(MCPError, match=f"the {subscriptions.MAX_RESOURCES} that one connection may"):
            if era == "legacy":
                await subscribed(client, uris[0])  # again is no more
                await subscribed(client, one_more)
            else:
                async with client.listen(resource_subscriptions=[*uris, one_more]):
                    pass


async def test_so_many_streams_may_be_open_and_no_more(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MAX_STREAMS", 1)
    async with hearing(opened, "auto") as (client, _):
        with pytest.raises(MCPError, match="1 streams are open"):
            async with client.listen(tools_list_changed=True):
                pass


async def test_addresses_that_are_none_of_ours_are_not_acknowledged(opened: Open) -> None:
    async with opened("auto") as client, client.listen(resource_subscriptions=[DIALOGS, *NONE]) as heard:
        assert heard.honored.resource_subscriptions == [DIALOGS]


async def test_an_older_client_cannot_subscribe_to_what_is_none_of_ours(opened: Open) -> None:
    async with opened("legacy") as client:
        for uri in NONE:
            with pytest.raises(MCPError) as raised:
                await subscribed(client, uri)
            assert raised.value.error.code == -32002


async def test_a_client_that_does_not_read_holds_up_nobody_and_nothing_piles_up(
    opened: Open, browser: FakeBrowser, server: WatchkeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hearing(opened, "legacy", [DIALOGS]) as (client, heard), hearing(opened, "legacy", [DIALOGS]):
        [_, stuck] = server.subscriptions._older.values()
        begun = anyio.Event()

        async def never(method: str, params: Any) -> None:
            begun.set()
            await anyio.sleep_forever()

        monkeypatch.setattr(stuck._connection, "notify", never)
        await client.call_tool("browser_navigate", URL)
        await heard.until(DIALOGS)
        for _ in range(20):
            heard.clear()
            await browser.dialog()
            await heard.until(DIALOGS)
            heard.clear()
            await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
            await heard.until(DIALOGS)
        assert begun.is_set()
        assert len(stuck._waiting) <= 2  # the list of resources, and the dialogs
    await watched(server, 0)


async def test_when_the_server_ends_streams_end_in_good_order(opened: Open, dispatcher: Dispatcher) -> None:
    async with opened("auto") as client, client.listen(tools_list_changed=True) as events:
        dispatcher.refuse_new()
        with anyio.fail_after(30):
            assert [event async for event in events] == []
        with pytest.raises(MCPError, match="shutting down"):
            async with client.listen(tools_list_changed=True):
                pass
