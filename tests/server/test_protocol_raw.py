"""Resources, subscriptions, consent and progress as lines of JSON-RPC over stdio, in every revision."""

import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.raw_client import GUARD_S, Raw

pytestmark = pytest.mark.anyio
NEWEST = "2026-07-28"
OLDER = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
DIALOGS = "watchkeeper://tasks/default/dialogs"
MESSAGES = [{"role": "user", "content": "word " * 300} for _ in range(60)]


class Line:
    """A raw client of one revision: numbers its requests, and keeps what it is told beside the answers."""

    def __init__(self, raw: Raw, version: str, capabilities: dict[str, Any]) -> None:
        self.raw, self.version, self.capabilities = raw, version, capabilities
        self.told: list[dict[str, Any]] = []
        self.answers: dict[Any, dict[str, Any]] = {}
        self._number = 0

    async def open(self) -> None:
        if self.version == NEWEST:
            await self.ask("server/discover")
            return
        about = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": ABOUT}
        answer = await self.ask("initialize", **about)
        assert answer["protocolVersion"] == self.version
        self.raw.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, method: str, **params: Any) -> int:
        self._number += 1
        if self.version == NEWEST:
            meta = {"protocolVersion": NEWEST, "clientInfo": ABOUT, "clientCapabilities": self.capabilities}
            about = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
            params["_meta"] = {**about, **params.get("_meta", {})}
        self.raw.write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    async def ask(self, method: str, **params: Any) -> Any:
        answer = await self.answer(self.send(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def answer(self, number: int) -> dict[str, Any]:
        while number not in self.answers:
            await self.next()
        return self.answers.pop(number)

    async def until_told(self, method: str) -> dict[str, Any]:
        """The next message of this method that was not asked for."""
        while not any(message["method"] == method for message in self.told):
            await self.next()
        found = next(message for message in self.told if message["method"] == method)
        self.told.remove(found)
        return found

    async def next(self) -> None:
        with anyio.fail_after(GUARD_S):
            message = await self.raw.message()
        if "method" in message:
            self.told.append(message)
        else:
            self.answers[message["id"]] = message


ABOUT = {"name": "test", "version": "1"}


@pytest.fixture
async def line(request: pytest.FixtureRequest, browser: FakeBrowser) -> AsyncIterator[Line]:
    """``indirect``: the revision, and settings."""
    version, *options = request.param
    raw = Raw("--cdp-url", browser.url, "--browser.bridge", "never", *options)
    made = Line(raw, version, {"elicitation": {}})
    try:
        await made.open()
        yield made
    finally:
        raw.kill()


def revisions(*versions: str, options: tuple[str, ...] = ()) -> Any:
    return pytest.mark.parametrize("line", [(version, *options) for version in versions], indirect=True, ids=versions)


URL = "http://a.test/"
ASKING = ("--server.ask_person", "scripts")


async def reads(line: Line) -> None:
    """Open a page; resources are listed, read and refused, and prompts listed."""
    await line.call("browser_navigate", url=URL)
    uris = [resource["uri"] for resource in (await line.ask("resources/list"))["resources"]]
    assert DIALOGS in uris
    [content] = (await line.ask("resources/read", uri=DIALOGS))["contents"]
    assert json.loads(content["text"]) == {"pending_dialogs": [], "recent_dialogs": []}
    refused = await line.answer(line.send("resources/read", uri="watchkeeper://x"))
    assert refused["error"]["code"] == (-32602 if line.version == NEWEST else -32002)
    assert len((await line.ask("prompts/list"))["prompts"]) == 3


async def reports_progress(line: Line) -> None:
    number = line.send(
        "tools/call",
        name="compress_context",
        arguments={"messages": MESSAGES, "mode": "force", "target_tokens": 2_000},
        _meta={"progressToken": "mine"},
    )
    assert not (await line.answer(number))["result"].get("isError")
    steps = [message["params"] for message in line.told if message["method"] == "notifications/progress"]
    assert steps and {step["progressToken"] for step in steps} == {"mine"}
    done = [step["progress"] for step in steps]
    assert done == sorted(set(done)), "progress goes forward only"


@revisions(*OLDER)
async def test_older_revisions_read_subscribe_are_told_and_hear_of_progress(line: Line, browser: FakeBrowser) -> None:
    await line.ask("resources/subscribe", uri=DIALOGS)
    await reads(line)
    await line.until_told("notifications/resources/list_changed")
    assert (await line.until_told("notifications/resources/updated"))["params"] == {"uri": DIALOGS}
    await browser.dialog()
    assert (await line.until_told("notifications/resources/updated"))["params"] == {"uri": DIALOGS}
    await reports_progress(line)


@revisions(NEWEST)
async def test_the_newest_revision_listens_and_every_frame_says_for_what(line: Line, browser: FakeBrowser) -> None:
    wished = {"resourceSubscriptions": [DIALOGS], "resourcesListChanged": True}
    number = line.send("subscriptions/listen", notifications=wished)
    await line.next()
    assert line.told[0]["method"] == "notifications/subscriptions/acknowledged"
    assert line.told.pop()["params"]["notifications"] == wished
    await reads(line)
    for method in ("notifications/resources/list_changed", "notifications/resources/updated"):
        told = await line.until_told(method)
        assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
    line.raw.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    await line.ask("tools/list")
    line.told.clear()
    await browser.dialog()
    # The browser may be slower than we are: until the dialog is known nothing could be told of it.
    while '"confirm"' not in (await line.ask("resources/read", uri=DIALOGS))["contents"][0]["text"]:
        await anyio.lowlevel.checkpoint()
    await line.ask("tools/list")
    assert line.told == [], "a stream that was ended is told nothing"
    await reports_progress(line)


@revisions("2025-11-25", "2025-06-18", options=ASKING)
async def test_older_revisions_are_asked_by_a_request_of_the_server(line: Line) -> None:
    await line.call("browser_navigate", url=URL)
    number = line.send("tools/call", name="browser_evaluate", arguments={"expression": "1+1"})
    asked = await line.until_told("elicitation/create")
    assert "1+1" in asked["params"]["message"]
    line.raw.write({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}})
    assert (await line.answer(number))["result"]["structuredContent"] == {"value": 2}


@revisions("2025-03-26", options=ASKING)
async def test_revisions_before_elicitation_get_an_error(line: Line) -> None:
    await line.call("browser_navigate", url=URL)
    refused = await line.call("browser_evaluate", expression="1+1")
    assert refused["isError"] and "cannot_ask" in refused["content"][0]["text"]


@revisions(NEWEST, options=ASKING)
async def test_the_newest_revision_is_told_what_is_missing_and_calls_again(line: Line) -> None:
    await line.call("browser_navigate", url=URL)
    asked = await line.call("browser_evaluate", expression="1+1")
    assert asked["resultType"] == "input_required"
    [(key, request)] = asked["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    assert "1+1" in request["params"]["message"]
    assert "1+1" not in asked["requestState"] and "about" not in asked["requestState"]
    done = await line.ask(
        "tools/call",
        name="browser_evaluate",
        arguments={"expression": "1+1"},
        inputResponses={key: {"action": "accept", "content": {}}},
        requestState=asked["requestState"],
    )
    assert done["structuredContent"] == {"value": 2}


@revisions(NEWEST)
async def test_a_signal_ends_a_stream_with_its_result_and_waits_for_nothing_else(line: Line) -> None:
    number = line.send("subscriptions/listen", notifications={"toolsListChanged": True})
    await line.until_told("notifications/subscriptions/acknowledged")
    line.raw.process.send_signal(signal.SIGTERM)
    answer = await line.answer(number)
    assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
    status, _, said = await line.raw.ended()
    assert status == 0
    assert b"cancelled" not in said, "nothing had to be cut"
