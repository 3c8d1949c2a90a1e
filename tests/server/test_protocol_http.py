"""Resources, subscriptions and consent over HTTP: three ways in, each principal by itself, clients that do not read."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import httpx2 as httpx
import mcp_types as types
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.hearing import hearing
from fakes.http_server import GUARD_S, Server, serving
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from .test_http import ALICE, BOB

pytestmark = pytest.mark.anyio
WAYS = ("auto", "legacy", "sse")
URL = {"url": "http://a.test/"}
SNAPSHOT, DIALOGS = "watchkeeper://tasks/default/snapshot", "watchkeeper://tasks/default/dialogs"
MESSAGES = [{"role": "user", "content": "word " * 300} for _ in range(60)]
TOKENS = {"WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": ALICE, "WATCHKEEPER_SERVER__AUTH_TOKENS__BOB": BOB}


@pytest.fixture
async def guarded(browser: FakeBrowser) -> AsyncIterator[Server]:
    options = ("--cdp-url", browser.url, "--browser.bridge", "never", "--server.ask_person", "scripts")
    async with serving(*options, **TOKENS) as made:
        yield made


@asynccontextmanager
async def client_of(url: str, way: str, token: str, **options: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    if way == "sse":
        async with Client(sse_client(f"{url}/sse", headers=headers), mode="legacy", **options) as client:
            yield client
        return
    async with httpx.AsyncClient(headers=headers, timeout=GUARD_S) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=way, read_timeout_seconds=GUARD_S, **options) as client:
            yield client


def hears(server: Server, way: str, token: str, *uris: str) -> AbstractAsyncContextManager[tuple[Client, Any]]:
    era = "auto" if way == "auto" else "legacy"
    return hearing(lambda _, **options: client_of(server.url, way, token, **options), era, uris)


@pytest.mark.parametrize("way", WAYS)
async def test_what_one_principal_does_is_read_by_no_other_and_told_to_no_other(
    guarded: Server, browser: FakeBrowser, way: str
) -> None:
    async with (
        hears(guarded, way, ALICE, SNAPSHOT, DIALOGS) as (alice, hers),
        hears(guarded, way, BOB, SNAPSHOT, DIALOGS) as (bob, his),
    ):
        await alice.call_tool("browser_navigate", URL)
        await hers.until("resources", SNAPSHOT, DIALOGS)
        await browser.dialog()
        while not json.loads((await alice.read_resource(DIALOGS)).contents[0].text)["pending_dialogs"]:  # type: ignore[union-attr]
            await hers.until(DIALOGS)
        assert [r.uri for r in (await bob.list_resources()).resources] == ["watchkeeper://status"]
        for uri in (SNAPSHOT, DIALOGS, "watchkeeper://tasks/alice%2Fdefault/dialogs"):
            with pytest.raises(MCPError, match="has no browser"):
                await bob.read_resource(uri)
        assert "default" not in (await bob.read_resource("watchkeeper://status")).contents[0].text  # type: ignore[union-attr]
        for ref, name in (
            (ResourceTemplateReference(type="ref/resource", uri="watchkeeper://tasks/{task_id}/snapshot"), "task_id"),
            (PromptReference(type="ref/prompt", name="check_page"), "url"),
        ):
            assert (await bob.complete(ref, {"name": name, "value": ""})).completion.values == []
            assert len((await alice.complete(ref, {"name": name, "value": ""})).completion.values) == 1
        assert list(his) == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_person_is_asked_through_the_client_that_made_the_call_and_it_hears_of_progress(
    guarded: Server, way: str
) -> None:
    asked: list[str] = []
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async def agree(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={})

    async with client_of(guarded.url, way, ALICE, elicitation_callback=agree) as client:
        await client.call_tool("browser_navigate", URL)
        result = await client.call_tool("browser_evaluate", {"expression": "1+1"})
        arguments = {"messages": MESSAGES, "mode": "force", "target_tokens": 2_000}
        await client.call_tool("compress_context", arguments, progress_callback=progress)
    assert steps and steps == sorted(steps)
    assert result.structured_content == {"value": 2}
    assert len(asked) == 1 and "1+1" in asked[0]


async def test_a_connection_that_stops_reading_holds_up_no_other(guarded: Server, browser: FakeBrowser) -> None:
    """The client subscribes, asks for more than its connection holds, and reads none of it."""
    host, port = guarded.url.removeprefix("http://").split(":")
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    headers = {"Authorization": f"Bearer {ALICE}"}
    stuck = socket.socket()
    try:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        await anyio.to_thread.run_sync(stuck.connect, (host, int(port)))
        stuck.sendall(f"GET /sse HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {ALICE}\r\n\r\n".encode())
        stuck.settimeout(GUARD_S)
        begin = b""
        while b"session_id=" not in begin or not begin.rstrip(b"\r\n ").endswith(begin.split(b"session_id=")[1][:32]):
            begin += await anyio.to_thread.run_sync(stuck.recv, 1)
        path = "/messages/?session_id=" + begin.split(b"session_id=")[1][:32].decode()
        async with (
            httpx.AsyncClient(headers=headers, base_url=guarded.url, timeout=GUARD_S) as http,
            hears(guarded, "sse", ALICE, DIALOGS) as (alice, heard),
        ):

            async def post(message: dict[str, Any]) -> None:
                with anyio.move_on_after(2):  # it is not taken any more once the connection is full
                    await http.post(path, json={"jsonrpc": "2.0", **message})

            await post({"id": 0, "method": "initialize", "params": about})
            await post({"method": "notifications/initialized"})
            await post({"id": 1, "method": "resources/subscribe", "params": {"uri": DIALOGS}})
            async with anyio.create_task_group() as group:
                for number in range(300):
                    group.start_soon(post, {"id": number + 2, "method": "tools/list"})
            await alice.call_tool("browser_navigate", URL)
            await heard.until(DIALOGS)
            for _ in range(20):
                heard.clear()
                await browser.dialog()
                await heard.until(DIALOGS)
                heard.clear()
                await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
                await heard.until(DIALOGS)
    finally:
        stuck.close()
