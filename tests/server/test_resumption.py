"""A client whose connection broke gets what it missed, and nothing of anybody else."""

import gc
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2 as httpx
import mcp_types as types
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.http_server import ALICE, BOB, GUARD_S, serving
from mcp.server.streamable_http import EventMessage

from watchkeeper.server.transports.event_store import Events, SessionEvents

pytestmark = pytest.mark.anyio
TOKENS = {"WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": ALICE, "WATCHKEEPER_SERVER__AUTH_TOKENS__BOB": BOB}


def answer(number: int, text: str = "x") -> types.JSONRPCResponse:
    return types.JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})


async def replayed(store: SessionEvents, last: str) -> tuple[str | None, list[str]]:
    got: list[EventMessage] = []

    async def collect(event: EventMessage) -> None:
        got.append(event)

    stream = await store.replay_events_after(last, collect)
    return stream, [event.message.result["text"] for event in got]  # type: ignore[union-attr]


async def test_a_stream_goes_on_after_the_last_event_that_its_client_has() -> None:
    store = Events().of_a_new_session()
    opened = await store.store_event("1", None)
    first = await store.store_event("1", answer(1, "first"))
    await store.store_event("2", answer(2, "of another stream"))
    await store.store_event("1", answer(1, "second"))
    assert await replayed(store, opened) == ("1", ["first", "second"])
    assert await replayed(store, first) == ("1", ["second"])


async def test_a_session_gets_no_events_of_another(caplog: pytest.LogCaptureFixture) -> None:
    events = Events()
    ours, theirs = events.of_a_new_session(), events.of_a_new_session()
    own = await ours.store_event("1", None)
    other = await theirs.store_event("1", None)
    await theirs.store_event("1", answer(1, "a secret"))
    assert await replayed(ours, own) == ("1", [])
    with caplog.at_level(logging.WARNING):
        for asked in (other, "0", "-1", "", "x", "９", "1" * 5000):
            assert await replayed(ours, asked) == (None, [])
    assert len(caplog.records) == 7


async def test_the_oldest_events_go_where_the_budget_ends() -> None:
    events = Events(max_bytes=1000, max_events=4)
    store = events.of_a_new_session()
    old = await store.store_event("1", None)
    large = await store.store_event("1", answer(1, "x" * 2000))
    assert await replayed(store, old) == (None, [])
    assert await replayed(store, large) == (None, [])
    ids = [await store.store_event("1", answer(1, str(number))) for number in range(6)]
    assert await replayed(store, ids[1]) == (None, [])
    assert await replayed(store, ids[2]) == ("1", ["3", "4", "5"])


async def test_events_end_with_their_session() -> None:
    events = Events(max_bytes=1000)
    ended, lasting = events.of_a_new_session(), events.of_a_new_session()
    kept = await lasting.store_event("1", None)
    await lasting.store_event("1", answer(1, "kept"))
    await ended.store_event("1", answer(1, "x" * 500))
    del ended
    gc.collect()
    await lasting.store_event("1", answer(1, "y" * 800))
    assert await replayed(lasting, kept) == ("1", ["kept", "y" * 800])


@asynccontextmanager
async def session(http: httpx.AsyncClient, url: str, token: str) -> AsyncIterator[dict[str, str]]:
    """The headers of a session of 2025-11-25."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        "Authorization": f"Bearer {token}",
    }
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    opened = await http.post(f"{url}/mcp", json=opening, headers=headers)
    headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(f"{url}/mcp", json=ready, headers=headers)).status_code == 202
    yield headers
    await http.delete(f"{url}/mcp", headers=headers)


async def messages(lines: AsyncIterator[str]) -> AsyncIterator[Any]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_the_answer_to_a_call_whose_connection_broke_is_there_when_the_client_comes_back(
    browser: FakeBrowser,
) -> None:
    release = anyio.Event()

    async def slowly(call: Any) -> dict[str, Any]:
        await release.wait()
        return {"root": 7}

    browser.on("DOM.getDocument", slowly)

    def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    async with (
        serving("--cdp-url", browser.url, "--browser.bridge", "never", **TOKENS) as server,
        httpx.AsyncClient(timeout=GUARD_S) as http,
        session(http, server.url, ALICE) as alice,
        session(http, server.url, BOB) as bob,
    ):
        url = f"{server.url}/mcp"
        await http.post(url, json=call(2, "browser_navigate", url="http://a.test/"), headers=alice)
        last = ""
        asked = call(3, "browser_cdp", method="DOM.getDocument")
        async with http.stream("POST", url, json=asked, headers=alice) as broken:
            async for line in broken.aiter_lines():
                if line.startswith("id: "):
                    last = line.removeprefix("id: ")
                if last and line.startswith("retry: "):
                    break
            await browser.called("DOM.getDocument")
        release.set()
        resumed = {**alice, "Last-Event-ID": last}
        with anyio.fail_after(GUARD_S):
            got: list[Any] = []
            while not got:  # the server may not have noticed yet that the first connection is gone
                async with http.stream("GET", url, headers=resumed) as stream:
                    assert stream.status_code == 200
                    async for message in messages(stream.aiter_lines()):
                        got.append(message)
                        break
        assert got[0]["id"] == 3
        assert got[0]["result"]["structuredContent"] == {"result": {"root": 7}}
        async with http.stream("GET", url, headers={**bob, "Last-Event-ID": last}) as stream:
            assert [message async for message in messages(stream.aiter_lines())] == []
        stolen = await http.get(url, headers={**resumed, "Authorization": f"Bearer {BOB}"})
        assert stolen.status_code == 404
