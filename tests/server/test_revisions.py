"""Every revision of the protocol over every transport of its time: each answer is as that revision has it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import anyio
import httpx2 as httpx
import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser
from fakes.http_server import GUARD_S, serving
from fakes.raw_client import Raw

from watchkeeper.server.protocol.clients import form
from watchkeeper.server.protocol.revisions import fitting

pytestmark = pytest.mark.anyio
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST = "2026-07-28"
Json = dict[str, Any]

METHOD_NOT_FOUND = -32601


class Wire(Protocol):
    """Messages, whatever carries them. ``send`` may return before ``read`` has the answer."""

    async def send(self, message: Json) -> None: ...
    async def read(self) -> Json: ...


class OverStdio:
    def __init__(self, raw: Raw) -> None:
        self._raw = raw
        self.read = raw.read

    async def send(self, message: Json) -> None:
        self._raw.write(message)


class OverHttp:
    """Streamable HTTP: a POST for each message; what comes back, of all of them, in one queue."""

    def __init__(self, http: httpx.AsyncClient, url: str, revision: str, group: anyio.abc.TaskGroup) -> None:
        self._http, self._url, self._revision, self._group = http, url, revision, group
        self._headers = {"Accept": "application/json, text/event-stream"}
        self._got: asyncio.Queue[Json] = asyncio.Queue()
        self._open: dict[int, anyio.CancelScope] = {}
        self.read = self._got.get

    async def send(self, message: Json) -> None:
        if "id" in message:
            self._group.start_soon(self._request, message)
        else:
            await self._post(message)

    def hang_up(self, number: int) -> None:
        """Close the connection on which this request is answered."""
        self._open[number].cancel()

    async def _request(self, message: Json) -> None:
        with anyio.CancelScope() as scope:
            self._open[message["id"]] = scope
            await self._post(message)

    async def _post(self, message: Json) -> None:
        headers = dict(self._headers)
        method = message["method"]
        if method != "initialize" and self._revision >= "2025-06-18":
            headers["MCP-Protocol-Version"] = self._revision
        if self._revision == NEWEST:
            headers["Mcp-Method"] = method
            if method == "tools/call":
                headers["Mcp-Name"] = message["params"]["name"]
        async with self._http.stream("POST", self._url, json=message, headers=headers) as answer:
            if method == "initialize":
                self._headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
            if answer.status_code == 202:
                return
            if "json" in answer.headers.get("Content-Type", ""):
                self._got.put_nowait(json.loads(await answer.aread()))
                return
            async for found in events(answer.aiter_lines()):
                self._got.put_nowait(json.loads(found))


class OverSse:
    """HTTP with SSE: POSTs to the address that the stream names; the answers are on the stream."""

    def __init__(self, http: httpx.AsyncClient, post_to: str, arriving: AsyncIterator[str]) -> None:
        self._http, self._post_to, self._arriving = http, post_to, arriving

    async def send(self, message: Json) -> None:
        assert (await self._http.post(self._post_to, json=message)).status_code == 202

    async def read(self) -> Json:
        answer: Json = json.loads(await anext(self._arriving))
        return answer


async def events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    async for line in lines:
        if line.startswith("data: ") and line != "data: ":  # the first event of a stream only opens it
            yield line.removeprefix("data: ")


@asynccontextmanager
async def over_stdio(arguments: list[str], revision: str) -> AsyncIterator[Wire]:
    raw = Raw(*arguments)
    try:
        yield OverStdio(raw)
    finally:
        raw.kill()


@asynccontextmanager
async def over_http(arguments: list[str], revision: str) -> AsyncIterator[Wire]:
    async with (
        serving(*arguments) as server,
        httpx.AsyncClient(timeout=GUARD_S) as http,
        anyio.create_task_group() as group,
    ):
        yield OverHttp(http, f"{server.url}/mcp", revision, group)
        group.cancel_scope.cancel()


@asynccontextmanager
async def over_sse(arguments: list[str], revision: str) -> AsyncIterator[Wire]:
    async with (
        serving(*arguments) as server,
        httpx.AsyncClient(timeout=GUARD_S) as http,
        http.stream("GET", f"{server.url}/sse") as stream,
    ):
        arriving = events(stream.aiter_lines())
        yield OverSse(http, server.url + await anext(arriving), arriving)


class Client:
    """What a client of one revision says. What it reads and does not wait for is kept."""

    def __init__(self, wire: Wire, revision: str) -> None:
        self._wire, self.revision = wire, revision
        self.others: list[Json] = []
        self._number = 0

    async def begin(self, method: str, params: Json | None = None, **meta: Any) -> int:
        """Send a request; gives its id."""
        self._number += 1
        if self.revision == NEWEST:
            meta |= {
                "io.modelcontextprotocol/protocolVersion": NEWEST,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        given = {**(params or {}), **({"_meta": meta} if meta else {})}
        with_params = {"params": given} if given else {}
        await self._wire.send({"jsonrpc": "2.0", "id": self._number, "method": method, **with_params})
        return self._number

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self._wire.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    async def answer(self, number: int) -> Json:
        with anyio.fail_after(GUARD_S):
            while True:
                message = await self._wire.read()
                if message.get("id") == number:
                    return message
                self.others.append(message)

    async def ask(self, method: str, params: Json | None = None, **meta: Any) -> Json:
        return await self.answer(await self.begin(method, params, **meta))

    async def result(self, method: str, params: Json | None = None, **meta: Any) -> Json:
        answer = await self.ask(method, params, **meta)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def open(self) -> Json:
        if self.revision == NEWEST:
            return await self.result("server/discover")
        about = {"name": "test", "version": "1"}
        opened = await self.result(
            "initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": about}
        )
        await self.notify("notifications/initialized")
        return opened


Way = Callable[[list[str], str], AbstractAsyncContextManager[Wire]]
EVERY = [
    *(
        pytest.param(way, revision, id=f"{way.__name__} {revision}")
        for way in (over_stdio, over_http, over_sse)
        for revision in OLDER
        if (way, revision) != (over_http, "2024-11-05")
    ),
    *(pytest.param(way, NEWEST, id=f"{way.__name__} {NEWEST}") for way in (over_stdio, over_http)),
]
"""Streamable HTTP came with 2025-03-26; HTTP with SSE is kept for older revisions, and does not speak the newest."""


def knows(revision: str, since: str) -> bool:
    return revision >= since


@pytest.mark.parametrize(("way", "revision"), EVERY)
async def test_each_answer_is_as_its_revision_has_it(browser: FakeBrowser, way: Way, revision: str) -> None:
    arguments = ["--cdp-url", browser.url, "--browser.bridge", "never", "--server.max_calls", "1"]
    async with way(arguments, revision) as wire:
        client = Client(wire, revision)

        about = await client.open()
        if revision == NEWEST:
            assert about["supportedVersions"] == [NEWEST]
            assert about["_meta"]["io.modelcontextprotocol/serverInfo"]["title"] == "Watchkeeper"
        else:
            assert about["protocolVersion"] == revision
            assert ("title" in about["serverInfo"]) is knows(revision, "2025-06-18")
        capabilities = about["capabilities"]
        assert capabilities["tools"] == {"listChanged": True}
        assert ("completions" in capabilities) is knows(revision, "2025-03-26")

        listed = await client.result("tools/list")
        assert ("ttlMs" in listed, "resultType" in listed) == (revision == NEWEST, revision == NEWEST)
        assert {tool["name"] for tool in listed["tools"]} >= {"browser_navigate", "browser_dialog"}
        for tool in listed["tools"]:
            assert {"name", "description", "inputSchema"} <= set(tool)
            assert ("annotations" in tool) is knows(revision, "2025-03-26")
            assert ("title" in tool) is knows(revision, "2025-06-18")
            assert ("outputSchema" in tool) is knows(revision, "2025-06-18")
        for method, items in (("resources/list", "resources"), ("prompts/list", "prompts")):
            for item in (await client.result(method))[items]:
                assert ("title" in item) is knows(revision, "2025-06-18")

        page = {"name": "browser_navigate", "arguments": {"url": "http://a.test/"}}
        opened = await client.result("tools/call", page)
        assert opened["isError"] is False
        assert "http://a.test/" in opened["content"][0]["text"]
        assert ("structuredContent" in opened) is knows(revision, "2025-06-18")
        refused = await client.result("tools/call", {"name": "browser_navigate", "arguments": {}})
        assert refused["isError"] is True
        assert "url" in refused["content"][0]["text"]

        unknown = await client.ask("no/such_method")
        assert unknown["error"]["code"] == METHOD_NOT_FOUND
        if revision == NEWEST:
            assert (await client.ask("ping"))["error"]["code"] == METHOD_NOT_FOUND
            assert (await client.ask("resources/subscribe", {"uri": "x:y"}))["error"]["code"] == METHOD_NOT_FOUND
        else:
            assert await client.result("ping") == {}
            assert (await client.ask("server/discover"))["error"]["code"] == METHOD_NOT_FOUND

        hangs_up = isinstance(wire, OverHttp) and revision == NEWEST
        said = await cancels(client, browser, wire.hang_up if hangs_up else None)  # type: ignore[attr-defined]
        # Over HTTP the SDK ends the stream of the response with an error; elsewhere nothing is said, as it should be.
        assert said in ([], ["Request cancelled"] * (way is over_http))


async def cancels(client: Client, browser: FakeBrowser, hang_up: Callable[[int], None] | None) -> list[str]:
    """A call that is cancelled, by hanging up where that is the way; what was said of it. Needs ``max_calls`` 1."""
    browser.on("DOM.getDocument", NEVER)
    waiting = await client.begin("tools/call", {"name": "browser_cdp", "arguments": {"method": "DOM.getDocument"}})
    await browser.called("DOM.getDocument")
    if hang_up is not None:
        hang_up(waiting)
    else:
        await client.notify("notifications/cancelled", {"requestId": waiting, "reason": "enough"})
    other = {"name": "browser_tabs", "arguments": {"action": "list"}}
    with anyio.fail_after(GUARD_S):
        while (after := await client.result("tools/call", other))["isError"]:
            assert "too_many_calls" in after["content"][0]["text"]  # the server has not seen it yet
    return [message["error"]["message"] for message in client.others if message.get("id") == waiting]


async def test_a_client_that_knows_no_structured_results_gets_the_whole_text_whatever_is_set(
    browser: FakeBrowser,
) -> None:
    arguments = ["--cdp-url", browser.url, "--browser.bridge", "never", "--server.results", "structured"]
    async with over_stdio(arguments, "2025-03-26") as wire:
        client = Client(wire, "2025-03-26")
        await client.open()
        opened = await client.result("tools/call", {"name": "browser_navigate", "arguments": {"url": "http://a.test/"}})
    assert "http://a.test/" in opened["content"][0]["text"]
    assert "structuredContent" not in opened
    assert form("structured", "sdk", "2025-03-26") == "text"
    assert form("structured", "sdk", "2025-06-18") == form("structured", "sdk", NEWEST) == "structured"


def test_what_is_given_is_not_changed_and_what_is_not_known_is_left_alone() -> None:
    given = {"tools": [{"name": "a", "title": "A", "annotations": {}}, {"name": "b"}], "other": 1}
    assert fitting("tools/list", given, "2024-11-05") == {"tools": [{"name": "a"}, {"name": "b"}], "other": 1}
    assert given["tools"][0] == {"name": "a", "title": "A", "annotations": {}}  # type: ignore[index]
    assert fitting("tools/list", given, NEWEST) == given
    assert fitting("tools/call", given, "2024-11-05") == given
    assert fitting("prompts/list", {"prompts": [{"arguments": [{"name": "x", "title": "X"}]}]}, "2025-03-26") == {
        "prompts": [{"arguments": [{"name": "x"}]}]
    }
    assert fitting("tools/list", {"tools": "none"}, "2024-11-05") == {"tools": "none"}
