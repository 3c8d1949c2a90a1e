"""The server over HTTP: three ways in, one set of tools, and who is kept out."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2 as httpx
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.http_server import ALICE, BOB, GUARD_S, Server, serving
from fakes.raw_client import COMMAND, clean
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from watchkeeper.server.errors import ToolError
from watchkeeper.server.settings import Settings
from watchkeeper.server.transports.access import Tokens, check_tokens, security

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(browser: FakeBrowser) -> AsyncIterator[Server]:
    async with serving("--cdp-url", browser.url, "--browser.bridge", "never") as made:
        yield made


@pytest.fixture
async def guarded(browser: FakeBrowser) -> AsyncIterator[Server]:
    tokens = {
        "WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": ALICE,
        "WATCHKEEPER_SERVER__AUTH_TOKENS__BOB": BOB,
    }
    async with serving("--cdp-url", browser.url, "--browser.bridge", "never", **tokens) as made:
        yield made


@asynccontextmanager
async def connected(url: str, way: str, token: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if way == "sse":
        async with Client(sse_client(f"{url}/sse", headers=headers), mode="legacy") as client:
            yield client
        return
    async with httpx.AsyncClient(headers=headers, timeout=GUARD_S) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=way, read_timeout_seconds=GUARD_S) as client:
            yield client


@pytest.mark.parametrize("way", ["auto", "legacy", "sse"])
async def test_the_tools_are_listed_and_called_by_every_way(server: Server, way: str) -> None:
    async with connected(server.url, way) as client:
        assert client.protocol_version == {"auto": "2026-07-28"}.get(way, "2025-11-25")
        assert len((await client.list_tools()).tools) >= 5
        opened = await client.call_tool("browser_navigate", {"url": "http://a.test/", "task_id": way})
        assert not opened.is_error


async def test_a_task_outlives_the_connection_that_began_it(server: Server) -> None:
    async with connected(server.url, "auto") as client:
        await client.call_tool("browser_navigate", {"url": "http://a.test/"})
    async with connected(server.url, "sse") as client:
        result = await client.call_tool("browser_cdp", {"method": "Runtime.evaluate", "params": {"expression": "1+1"}})
    assert result.structured_content["result"]["result"]["value"] == 2


@pytest.mark.parametrize("way", ["auto", "legacy", "sse"])
async def test_without_a_token_nobody_gets_in_where_there_are_tokens(guarded: Server, way: str) -> None:
    for token in (None, "wrong", ALICE[:-1], f"{ALICE} "):
        with pytest.raises(Exception) as raised:
            async with connected(guarded.url, way, token):
                pass
        assert raised.value is not None
    path = "sse" if way == "sse" else "mcp"
    async with httpx.AsyncClient() as http:
        refused = await http.get(f"{guarded.url}/{path}")
        assert refused.status_code == 401
        assert (await http.post(f"{guarded.url}/messages/", json={})).status_code == 401


@pytest.mark.parametrize("way", ["auto", "legacy", "sse"])
async def test_principals_have_tasks_of_their_own(guarded: Server, way: str) -> None:
    async with connected(guarded.url, way, ALICE) as alice:
        assert not (await alice.call_tool("browser_navigate", {"url": "http://a.test/", "task_id": "t"})).is_error
        async with connected(guarded.url, way, BOB) as bob:
            for task_id in ("t", "alice/t"):
                result = await bob.call_tool("browser_snapshot", {"task_id": task_id})
                assert result.structured_content["error"]["code"] == "no_task"


async def test_a_session_of_one_principal_is_not_found_by_another(guarded: Server) -> None:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient() as http:
        opened = await http.post(
            f"{guarded.url}/mcp", json=opening, headers={**accept, "Authorization": f"Bearer {ALICE}"}
        )
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"], **accept}
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        stolen = await http.post(
            f"{guarded.url}/mcp", json=listing, headers={**session, "Authorization": f"Bearer {BOB}"}
        )
        own = await http.post(
            f"{guarded.url}/mcp", json=listing, headers={**session, "Authorization": f"Bearer {ALICE}"}
        )
    assert (stolen.status_code, own.status_code) == (404, 200)


@pytest.mark.parametrize("path", ["mcp", "sse", "messages/"])
async def test_unknown_hosts_and_origins_are_refused_first(guarded: Server, path: str) -> None:
    async with httpx.AsyncClient() as http:
        for headers, status, setting in (
            ({"Host": "evil.example"}, 421, "server.allowed_hosts"),
            ({"Host": "127.0.0.1.evil.example:80"}, 421, "server.allowed_hosts"),
            ({"Origin": "http://evil.example"}, 403, "server.allowed_origins"),
            ({"Origin": "null"}, 403, "server.allowed_origins"),
        ):
            for ask in (http.get, http.post, http.options):
                answer = await ask(f"{guarded.url}/{path}", headers=headers)
                assert answer.status_code == status
                assert setting in answer.text


async def test_a_web_page_is_let_in_by_its_origin_only_where_a_setting_says_so(browser: FakeBrowser) -> None:
    origin = "https://app.example"
    preflight = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    async with (
        serving("--cdp-url", browser.url, "--server.allowed_origins", origin) as server,
        httpx.AsyncClient() as http,
    ):
        allowed = await http.options(f"{server.url}/mcp", headers=preflight)
        assert allowed.headers["Access-Control-Allow-Origin"] == origin
        local = {**preflight, "Origin": "http://localhost:3000"}
        assert "Access-Control-Allow-Origin" not in (await http.options(f"{server.url}/mcp", headers=local)).headers


async def test_a_body_past_the_limit_is_refused(browser: FakeBrowser) -> None:
    async with (
        serving("--cdp-url", browser.url, "--server.max_message_mb", "1") as server,
        httpx.AsyncClient() as http,
    ):
        large = b"x" * ((1 << 20) + 1)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        assert (await http.post(f"{server.url}/mcp", content=large, headers=headers)).status_code == 413


@pytest.mark.parametrize("way", ["auto", "sse"])
async def test_a_signal_answers_the_call_that_runs_cuts_streams_and_ends_with_status_0(
    server: Server, browser: FakeBrowser, way: str
) -> None:
    release = anyio.Event()

    async def slowly(call: Any) -> dict[str, Any]:
        await release.wait()
        return {"root": 7}

    browser.on("DOM.getDocument", slowly)
    answers: list[Any] = []
    async with connected(server.url, way) as client:
        await client.call_tool("browser_navigate", {"url": "http://a.test/"})

        async def ask() -> None:
            answers.append((await client.call_tool("browser_cdp", {"method": "DOM.getDocument"})).structured_content)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await browser.called("DOM.getDocument")
            server.process.send_signal(signal.SIGTERM)
            release.set()
    with anyio.fail_after(GUARD_S):
        assert await anyio.to_thread.run_sync(server.process.wait) == 0
    assert answers == [{"result": {"root": 7}}]


async def test_a_port_that_is_taken_is_told(server: Server) -> None:
    port = server.url.rpartition(":")[2]
    command = [*COMMAND, "serve", "--transport=http", f"--port={port}"]
    done = await anyio.run_process(command, check=False, env=clean())
    assert done.returncode == 1
    assert b"server.port" in done.stderr
    assert b"Traceback" not in done.stderr


def settings(**server: object) -> Any:
    return Settings.model_validate({"server": {"transport": "http", **server}}).server


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "myhost"])
def test_any_other_address_than_loopback_needs_a_token(host: str) -> None:
    with pytest.raises(ToolError, match="without tokens"):
        check_tokens(settings(host=host))
    assert check_tokens(settings(host=host, auth_tokens={"a": ALICE})) == {"a": ALICE}
    assert check_tokens(settings(host="127.0.0.2")) == {}


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ({"a": "short"}, "fewer than 16"),
        ({"a/b": ALICE}, "cannot name"),
        ({"": ALICE}, "cannot name"),
        ({"a": ALICE, "b": ALICE}, "the same token"),
    ],
)
def test_tokens_that_protect_nothing_are_refused(tokens: dict[str, str], said: str) -> None:
    with pytest.raises(ToolError, match=said) as raised:
        check_tokens(settings(auth_tokens=tokens))
    assert ALICE not in str(raised.value)


async def test_a_token_names_its_holder() -> None:
    tokens = Tokens({"alice": ALICE, "bob": BOB})
    found = await tokens.verify_token(BOB)
    assert found is not None
    assert found.client_id == "bob"
    assert await tokens.verify_token("") is None
    assert await tokens.verify_token("\udcff") is None


def test_the_names_of_a_server_for_others_are_those_that_it_can_be_reached_by() -> None:
    known = security(settings(host="192.168.1.4", allowed_hosts=["box.lan"], allowed_origins=["https://app.example"]))
    assert "192.168.1.4:*" in known.allowed_hosts
    assert "box.lan" in known.allowed_hosts
    assert "localhost" not in known.allowed_hosts
    assert "https://app.example" in known.allowed_origins
    assert "[::1]:*" in security(settings(host="::1")).allowed_hosts
    assert "localhost:*" in security(settings(host="0.0.0.0")).allowed_hosts
