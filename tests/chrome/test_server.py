"""The server with a real browser: over stdio by the official client, and what is left of it when it ends."""

import re
import signal
import subprocess
from typing import Any

import anyio
import psutil
import pytest
from fakes.raw_client import COMMAND, Raw, clean

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
GUARD_S = 60.0


async def gone(processes: list[psutil.Process]) -> None:
    """Wait until none of these runs."""
    _, alive = await anyio.to_thread.run_sync(psutil.wait_procs, processes, GUARD_S)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


async def with_browser(raw: Raw) -> list[psutil.Process]:
    """Open a page; gives the browser's processes."""
    await raw.open()
    raw.call(1, "browser_navigate", url="data:text/html,hello")
    answer = await raw.read()
    assert answer["result"]["isError"] is False, answer
    children = psutil.Process(raw.process.pid).children(recursive=True)
    assert children
    return children


@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_no_browser_outlives_the_server(how: Any) -> None:
    raw = Raw("--headless", "true")
    try:
        browser = await with_browser(raw)
        if how == "end of input":
            assert raw.process.stdin is not None
            raw.process.stdin.close()
            raw.process.stdin = None
        else:
            raw.process.send_signal(how)
        status, out, _ = await raw.ended()
        assert status == (-signal.SIGKILL if how == signal.SIGKILL else 0)
        assert out == b""
        await gone(browser)
    finally:
        raw.kill()


async def test_calls_before_the_server_is_loaded_share_one_browser_and_their_tasks_live_on() -> None:
    raw = Raw("--headless", "true")
    try:
        await raw.open()
        for number, task in enumerate(("a", "b"), 1):
            raw.call(number, "browser_navigate", url=f"data:text/html,page of {task}", task_id=task)
        answers = {answer["id"]: answer for answer in [await raw.read(), await raw.read()]}
        assert not any(answers[number]["result"]["isError"] for number in (1, 2)), answers
        started = psutil.Process(raw.process.pid).children()
        assert len(started) == 1, "one browser, started once"
        for number, task in enumerate(("a", "b"), 3):
            raw.call(number, "browser_snapshot", task_id=task)
            snapshot = await raw.read()
            assert f"page of {task}" in snapshot["result"]["content"][0]["text"]
        raw.write({"jsonrpc": "2.0", "id": 5, "method": "prompts/list"})
        assert (await raw.read())["id"] == 5, "the live server has taken over"
        raw.call(6, "browser_evaluate", expression="1 + 1", task_id="a")
        assert "2" in (await raw.read())["result"]["content"][0]["text"]
        assert psutil.Process(raw.process.pid).children() == started
    finally:
        raw.kill()


def test_every_claim_of_the_demo_holds() -> None:
    done = subprocess.run([*COMMAND, "demo"], capture_output=True, text=True, env=clean(), timeout=2 * GUARD_S)
    assert done.returncode == 0, done.stdout
    assert "0 did not." in done.stdout
    assert "[FAILED]" not in done.stdout


def test_the_demo_fails_where_there_is_no_browser() -> None:
    command = [*COMMAND, "demo", "--executable", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean(), timeout=2 * GUARD_S)
    assert done.returncode == 1
    assert "[FAILED]" in done.stdout
    assert "/nowhere" in done.stdout


def test_the_doctor_finds_everything_here_and_tells_what_is_missing() -> None:
    done = subprocess.run([*COMMAND, "doctor"], capture_output=True, text=True, env=clean(), timeout=2 * GUARD_S)
    assert done.returncode == 0, done.stdout
    assert re.search("ok    .*opened a page and answered", done.stdout)
    command = [*COMMAND, "doctor", "--executable", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean(), timeout=2 * GUARD_S)
    assert done.returncode == 1
    assert "WRONG" in done.stdout
    assert "->" in done.stdout
