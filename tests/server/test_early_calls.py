"""Calls that come before the server is loaded; the browser of a page starts at once, once, and never outlives us.

The browser here is a script that notes its process id and then does as it is told.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from watchkeeper.server.dispatch import Reply
from watchkeeper.server.protocol.call_result import call_result
from watchkeeper.server.settings_sources import load
from watchkeeper.server.startup import boot, loading
from watchkeeper.server.startup.early_calls import JoiningDispatcher
from watchkeeper.server.tasks import endpoint
from watchkeeper.server.tools.browser import NAVIGATE
from watchkeeper.server.tools.spec import Arguments, Call, ToolResult

GUARD_S = 60
MODERN = {
    boot.MODERN_VERSION: "2026-07-28",
    boot.MODERN_CLIENT: {"name": "test", "version": "1"},
    boot.MODERN_CAPABILITIES: {},
}
RUN = "from watchkeeper.server.cli import main; raise SystemExit(main([]))"
NO_SDK = f"import sys; sys.modules['mcp.server.lowlevel.server'] = None\n{RUN}"
HANGS, FAILS = "exec sleep 100", "exit 3"


class Server:
    """The server as a process, with a script for a browser."""

    def __init__(self, folder: Path, browser: str, program: str = RUN, **environment: str) -> None:
        self.runs, self.temporary = folder / "runs", folder / "tmp"
        self.temporary.mkdir()
        script = folder / "browser"
        script.write_text(f"#!/bin/sh\necho $$ >> {self.runs}\n{browser}\n")
        script.chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("WATCHKEEPER_")}
        given = {
            "WATCHKEEPER_BROWSER__EXECUTABLE": str(script),
            "WATCHKEEPER_BROWSER__HEADLESS": "true",
            "TMPDIR": str(self.temporary),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=inherited | given | environment,
        )
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.input, self.output, self.errors = self.process.stdin, self.process.stdout, self.process.stderr
        self._guard = threading.Timer(GUARD_S, self.process.kill)
        self._guard.start()

    def write(self, *messages: dict[str, Any]) -> None:
        self.input.write("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages).encode())
        self.input.flush()

    def read(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.output.readline())
        return answer

    def open(self, *, read: bool = True) -> None:
        about = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.write({"id": 0, "method": "initialize", "params": params}, {"method": "notifications/initialized"})
        assert not read or self.read()["id"] == 0

    def navigate(self, number: int, arguments: dict[str, Any] | None = None, **params: Any) -> None:
        given = {"name": "browser_navigate", "arguments": arguments or {"url": "http://127.0.0.1:9/"}, **params}
        self.write({"id": number, "method": "tools/call", "params": given})

    def started(self) -> list[int]:
        """The processes of browsers, those that have ended too."""
        return [int(line) for line in self.runs.read_text().split()] if self.runs.exists() else []

    def until(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + GUARD_S
        while not condition():
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)

    def ended(self) -> tuple[int, list[dict[str, Any]]]:
        """End the input; the exit status, and what was still answered."""
        if not self.input.closed:
            self.input.close()
        rest = [json.loads(line) for line in self.output.read().splitlines()]
        return self.process.wait(), rest

    def left(self) -> list[Any]:
        """What should not be there: browsers that live, and folders of theirs."""
        return [pid for pid in self.started() if _lives(pid)] + list(self.temporary.iterdir())

    def close(self) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.wait()
        for pipe in (self.input, self.output, self.errors):
            pipe.close()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(*arguments: str, **environment: str) -> Server:
        made.append(Server(tmp_path, *arguments, **environment))
        return made[0]

    yield make
    made[0].close()


Make = Callable[..., Server]


def test_a_client_that_only_lists_tools_pays_for_no_browser(server: Make) -> None:
    running = server(HANGS)
    running.open()
    running.write({"id": 1, "method": "tools/list"}, {"id": 2, "method": "prompts/list"})
    assert [running.read()["id"], running.read()["id"]] == [1, 2], "the second is the live server's answer"
    assert running.ended() == (0, []) and running.started() == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_page_is_answered_before_the_sdk_is_there_exactly_as_it_is_afterwards(server: Make, era: str) -> None:
    running = server(FAILS)
    if era == "legacy":
        running.open()
    meta: dict[str, Any] = MODERN if era == "modern" else {}
    running.navigate(1, _meta=meta)
    before = running.read()
    assert "launch_failed" in before["result"]["content"][0]["text"] and before["result"]["isError"]
    running.navigate(2, _meta={**meta, "progressToken": 1})
    after = running.read()
    assert {**after, "id": 1} == before
    assert len(running.started()) == 2, "each call had one browser"


def test_calls_that_come_together_are_all_answered(server: Make) -> None:
    running = server(FAILS)
    running.open()
    running.write({"id": 1, "method": "tools/call", "params": {"name": "browser_snapshot", "arguments": {}}})
    running.navigate(2, {"url": "http://127.0.0.1:9/", "task_id": "a"})
    running.navigate(3, {"url": "http://127.0.0.1:9/", "task_id": "b"})
    answers = {answer["id"]: answer for answer in (running.read() for _ in range(3))}
    assert set(answers) == {1, 2, 3}
    assert "no_task" in answers[1]["result"]["content"][0]["text"]
    assert all("launch_failed" in answers[number]["result"]["content"][0]["text"] for number in (2, 3))
    assert running.ended() == (0, []) and running.left() == []


def test_a_tool_that_is_not_there_is_refused_by_the_live_server(server: Make) -> None:
    running = server(FAILS)
    running.open()
    running.write({"id": 1, "method": "tools/call", "params": {"name": "browser_navigat", "arguments": {}}})
    assert "Did you mean browser_navigate?" in running.read()["error"]["message"]


def test_an_input_that_ends_while_a_browser_starts_leaves_nothing(server: Make) -> None:
    running = server(HANGS)
    running.open()
    running.navigate(1)
    running.until(running.started)
    assert running.ended() == (0, [])
    assert running.left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_browser_starts_leaves_nothing(server: Make, number: signal.Signals) -> None:
    running = server(HANGS)
    running.open()
    running.navigate(1)
    running.until(running.started)
    running.process.send_signal(number)
    status = running.process.wait()
    assert status == 0 and running.left() == []


@pytest.mark.parametrize("end", ["input", "signal", "cancelled, then input"])
def test_signals_while_everything_is_ended_leave_nothing(server: Make, end: str) -> None:
    running = server(HANGS)
    running.open()
    running.navigate(1)
    running.until(running.started)
    if "cancelled" in end:
        running.write({"method": "notifications/cancelled", "params": {"requestId": 1}})
    if "input" in end:
        running.input.close()
    while running.process.poll() is None:
        running.process.send_signal(signal.SIGTERM)
        threading.Event().wait(0.002)
    assert running.left() == []
    assert b"Traceback" not in running.errors.read()


def test_a_page_that_is_cancelled_gets_no_answer_and_its_browser_ends(server: Make) -> None:
    running = server(HANGS)
    running.open()
    running.navigate(1)
    running.until(running.started)
    running.write({"method": "notifications/cancelled", "params": {"requestId": 1}})
    running.until(lambda: not running.left())
    running.write({"id": 2, "method": "prompts/list"})
    assert running.read()["id"] == 2
    assert running.ended() == (0, []) and len(running.started()) == 1


def test_where_the_sdk_cannot_be_loaded_a_page_says_so_and_its_browser_ends(server: Make) -> None:
    running = server(HANGS, NO_SDK)
    running.open()
    running.navigate(1)
    answer = running.read()
    assert answer["id"] == 1 and "could not be loaded" in answer["error"]["message"]
    assert running.left() == []
    running.navigate(2)
    assert "could not be loaded" in running.read()["error"]["message"]
    assert running.ended() == (1, []) and len(running.started()) == 1


def test_wrong_settings_end_a_browser_that_was_started_already(server: Make) -> None:
    running = server(HANGS, WATCHKEEPER_BROWSER__CALL_TIMEOUT_S="soon")
    running.open(read=False)
    running.navigate(1)
    assert running.process.wait() == 2 and running.left() == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"browser.headless": "true"},
        {"browser.headless": "0", "browser.executable": "/opt/chrome"},
        {"browser.dialog_policy": "auto_accept", "server.log_level": "info", "browser.max_tasks": "3"},
    ],
)
def test_what_is_plain_is_what_the_settings_say(given: dict[str, str]) -> None:
    assert loading.plain_endpoint(given) == endpoint(load(given, environment={}).settings)


@pytest.mark.parametrize(
    "given",
    [
        {"browser.headless": "maybe"},
        {"browser.proxy": "x:1"},
        {"browser.user_data_dir": "/p"},
        {"browser.locale": "de"},
    ],
)
def test_what_is_not_plain_is_left_to_the_settings(given: dict[str, str]) -> None:
    assert loading.plain_endpoint(given) is None


def test_the_form_of_an_early_answer_is_that_of_the_server() -> None:
    from watchkeeper.server.protocol.app import result

    reply = Reply("text", {"a": 1}, is_error=True)
    for form in ("text", "structured", "both"):
        assert result(reply, form).model_dump(by_alias=True, exclude_unset=True) == call_result(reply, form)


@pytest.mark.anyio
async def test_the_request_of_a_call_that_was_begun_joins_it() -> None:
    opened: list[Any] = []
    go = anyio.Event()

    async def open_page(call: Call, arguments: Arguments) -> ToolResult:
        opened.append(arguments["url"])
        await go.wait()
        return ToolResult(f"opened {arguments['url']}")

    settings = load({"browser.executable": "/none"}, environment={}).settings
    dispatcher = JoiningDispatcher(settings, tools=(replace(NAVIGATE, handler=open_page),))

    async def silent(done: float, total: float | None = None, message: str | None = None) -> None: ...

    async def call(url: str) -> str:
        return (await dispatcher.call("browser_navigate", {"url": url}, "", silent)).text

    with anyio.fail_after(GUARD_S):
        begun = dispatcher.begin("browser_navigate", {"url": "a"})
        dropped = dispatcher.begin("browser_navigate", {"url": "c"})
        async with anyio.create_task_group() as group:

            async def cancelled() -> None:
                with anyio.CancelScope() as scope:
                    group.start_soon(_cancel_once, scope, lambda: len(opened) == 2)
                    await call("c")

            group.start_soon(cancelled)
        assert dropped.cancelled() and opened == ["a", "c"]
        go.set()
        assert await call("a") == "opened a" and begun.done()
        assert opened == ["a", "c"], "joined, not begun again"
        assert await call("a") == "opened a" and opened == ["a", "c", "a"], "once"
        left = dispatcher.begin("browser_navigate", {"url": "b"})
        await dispatcher.close()
        assert left.done()


async def _cancel_once(scope: anyio.CancelScope, ready: Callable[[], bool]) -> None:
    while not ready():
        await anyio.lowlevel.checkpoint()
    scope.cancel()
