"""The server as a process over stdio: what a raw JSON-RPC client sees, and how it ends."""

import fcntl
import signal
import termios
from array import array
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser
from fakes.raw_client import COMMAND, GUARD_S, Raw
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.anyio
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


MANY = 1 << 15
"""Bytes: half of what a pipe holds before whoever writes has to wait."""


def unread(raw: Raw) -> int:
    assert raw.process.stdout is not None
    count = array("i", [0])
    fcntl.ioctl(raw.process.stdout, termios.FIONREAD, count)
    return count[0]


@pytest.fixture
async def raw(browser: FakeBrowser) -> AsyncIterator[Raw]:
    made = Raw("--cdp-url", browser.url, "--browser.bridge", "never")
    yield made
    made.kill()


@pytest.fixture
def printing_tool(tmp_path: Path) -> Iterator[str]:
    """A start-up file that makes each call print, as a careless library would."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, subprocess, sys\n"
        "import watchkeeper.server.dispatch as d\n"
        "run = d.Dispatcher.call\n"
        "async def call(self, *a, **k):\n"
        "    print('stray'); os.write(1, b'stray\\n'); subprocess.run(['echo', 'stray'])\n"
        "    assert sys.stdin.read() == ''\n"
        "    return await run(self, *a, **k)\n"
        "d.Dispatcher.call = call\n"
    )
    yield str(tmp_path)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_in_both_eras(browser: FakeBrowser, mode: str) -> None:
    arguments = [*COMMAND[1:], "--cdp-url", browser.url, "--browser.bridge", "never"]
    parameters = StdioServerParameters(command=COMMAND[0], args=arguments)
    with anyio.fail_after(GUARD_S):
        async with Client(parameters, mode=mode, read_timeout_seconds=GUARD_S) as client:
            assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[mode]
            assert not (await client.call_tool("browser_navigate", {"url": "http://a.test/"})).is_error


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_older_revisions_are_spoken(raw: Raw, version: str) -> None:
    about = await raw.open(version)
    assert about["protocolVersion"] == version
    assert about["serverInfo"]["name"] == "watchkeeper"
    raw.write({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert len((await raw.read())["result"]["tools"]) >= 4


async def test_the_newest_revision_is_discovered_without_a_handshake(raw: Raw) -> None:
    raw.write({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": MODERN}})
    result = (await raw.read())["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert "tools" in result["capabilities"]


async def test_lines_that_are_no_messages_are_answered_and_the_next_call_works(raw: Raw) -> None:
    await raw.open()
    raw.write(b"", b"{", b"\xff\xfe", b"[]", b"3", {"id": 7, "method": 3}, {"jsonrpc": "2.0", "id": True})
    answers = [await raw.read() for _ in range(6)]
    assert [answer["error"]["code"] for answer in answers] == [-32700, -32700, -32600, -32600, -32600, -32600]
    assert [answer["id"] for answer in answers] == [None, None, None, None, 7, None]
    raw.call(8, "browser_navigate", url="http://a.test/")
    assert (await raw.read())["result"]["isError"] is False


async def test_a_message_past_the_limit_is_refused_and_the_next_one_served(browser: FakeBrowser) -> None:
    raw = Raw("--cdp-url", browser.url, "--server.max_message_mb", "1")
    try:
        await raw.open()
        raw.call(1, "browser_navigate", url="x" * 3_000_000)
        refusal = await raw.read()
        assert "server.max_message_mb" in refusal["error"]["message"]
        raw.call(2, "browser_snapshot")
        assert (await raw.read())["id"] == 2
    finally:
        raw.kill()


async def test_what_is_printed_does_not_reach_the_client(browser: FakeBrowser, printing_tool: str) -> None:
    process = Raw(PYTHONPATH=printing_tool)
    try:
        await process.open()
        process.call(1, "browser_snapshot")
        assert (await process.read())["id"] == 1
        assert process.process.stdin is not None
        process.process.stdin.close()
        process.process.stdin = None
        status, out, err = await process.ended()
        assert (status, out) == (0, b"")
        assert err.count(b"stray") == 3
    finally:
        process.kill()


async def test_the_end_of_input_ends_the_server(raw: Raw) -> None:
    await raw.open()
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.process.stdin = None
    assert await raw.ended() == (0, b"", b"")


async def test_a_client_that_never_says_anything_is_no_error(raw: Raw) -> None:
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.process.stdin = None
    assert await raw.ended() == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_a_call_end_and_refuses_the_next(
    raw: Raw, browser: FakeBrowser, number: signal.Signals
) -> None:
    release = anyio.Event()

    async def slowly(call: Any) -> dict[str, Any]:
        await release.wait()
        return {"result": {"type": "number", "value": 3}}

    await raw.open()
    raw.call(1, "browser_navigate", url="http://a.test/")
    await raw.read()
    browser.on("DOM.getDocument", slowly)
    raw.call(2, "browser_cdp", method="DOM.getDocument")
    await browser.called("DOM.getDocument")
    raw.process.send_signal(number)
    while True:  # the signal arrives when it does: calls are served until then
        raw.call(3, "browser_snapshot", task_id="none")
        refused = await raw.read()
        assert refused["id"] == 3
        if "shutting_down" in refused["result"]["content"][0]["text"]:
            break
    release.set()
    assert (await raw.read())["id"] == 2
    assert (await raw.ended())[0] == 0


async def test_a_call_that_does_not_end_is_cut_by_a_second_signal(raw: Raw, browser: FakeBrowser) -> None:
    await raw.open()
    raw.call(1, "browser_navigate", url="http://a.test/")
    await raw.read()
    browser.on("DOM.getDocument", NEVER)
    raw.call(2, "browser_cdp", method="DOM.getDocument")
    await browser.called("DOM.getDocument")
    raw.process.send_signal(signal.SIGTERM)
    raw.call(3, "browser_snapshot", task_id="none")
    await raw.read()
    raw.process.send_signal(signal.SIGTERM)
    status, _, _ = await raw.ended()
    assert status == 0


async def test_a_signal_before_the_server_is_loaded_ends_it_with_the_same_status(raw: Raw) -> None:
    await raw.open()  # answered from the snapshot while the rest is loaded
    raw.process.send_signal(signal.SIGTERM)
    assert await raw.ended() == (0, b"", b"")


async def test_half_a_character_does_not_cost_the_message(raw: Raw) -> None:
    await raw.open()
    raw.write(
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_snapshot","arguments":{"find":"\ud83d"}}}'
    )
    assert "no_task" in (await raw.read())["result"]["content"][0]["text"]


async def test_a_client_that_stops_reading_ends_the_server(raw: Raw) -> None:
    await raw.open()
    assert raw.process.stdout is not None
    raw.process.stdout.close()
    for number in range(3):
        raw.call(number + 1, "browser_snapshot")
    with anyio.fail_after(GUARD_S):
        assert await anyio.to_thread.run_sync(raw.process.wait) == 0


async def test_a_signal_ends_the_server_also_where_its_client_never_reads(raw: Raw) -> None:
    await raw.open()
    raw.write({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
    assert (await raw.read())["id"] == 1  # the live server
    raw.write(*({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(2, 50)))
    with anyio.fail_after(GUARD_S):
        while unread(raw) < MANY:
            await anyio.lowlevel.checkpoint()
        for _ in range(2):  # the second does not wait for what cannot be answered
            raw.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(raw.process.wait, abandon_on_cancel=True) == 0


async def test_cancellations_of_what_is_no_id_are_nothing_and_requests_with_such_an_id_are_refused(raw: Raw) -> None:
    await raw.open()
    raw.write({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})
    assert (await raw.read())["id"] == 1  # the live server
    odd: list[Any] = [[1], {"a": 1}, None, True, 1.5]
    for number in odd:
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": number}}
        raw.write({"jsonrpc": "2.0", **cancelled}, {"jsonrpc": "2.0", "id": number, "method": "ping"})
    raw.write({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    answers = [await raw.read() for _ in (*odd, 2)]
    assert [answer["id"] for answer in answers].count(None) == len(odd)
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32600}


async def test_settings_that_cannot_work_are_told_before_anything_starts() -> None:
    for arguments, said in (
        (["--browser.backend", "cdp"], b"browser.cdp_url is not set"),
        (["--cdp-url", "localhost:9222"], b"browser.cdp_url as http://host:port"),
        (["--server.prot", "1"], b"did you mean server.port?"),
        (["--frobnicate"], b"unknown option --frobnicate"),
    ):
        raw = Raw(*arguments)
        status, out, err = await raw.ended()
        assert status in (1, 2)
        assert out == b""
        assert said in err
        assert b"Traceback" not in err
