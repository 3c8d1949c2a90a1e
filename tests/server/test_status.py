"""The status of a server and its health: what is told, to whom, and what never is."""

import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import httpx2 as httpx
import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser
from fakes.http_server import ALICE, BOB, GUARD_S, Server, serving

from watchkeeper.server import own_version
from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.observability.counters import BUCKETS_MS, MAX_NAMES, Durations, OfPrincipal, nested
from watchkeeper.server.observability.status import SUMMARY, place, status
from watchkeeper.server.settings import Settings

pytestmark = pytest.mark.anyio


async def quiet(done: float, total: float | None = None, message: str | None = None) -> None: ...


async def call(dispatcher: Dispatcher, tool: str, principal: str = "", **arguments: object) -> Any:
    return await dispatcher.call(tool, arguments, principal, quiet)


@pytest.fixture
async def guarded(browser: FakeBrowser) -> AsyncIterator[Server]:
    tokens = {"WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": ALICE, "WATCHKEEPER_SERVER__AUTH_TOKENS__BOB": BOB}
    async with serving("--cdp-url", browser.url, "--browser.bridge", "never", **tokens) as made:
        yield made


async def test_the_status_tells_of_tasks_browsers_calls_and_dialogs(
    browser: FakeBrowser, dispatcher: Dispatcher
) -> None:
    before = status(dispatcher, "")
    assert before["tasks"] == before["browsers"] == [] and before["version"] == own_version()
    await call(dispatcher, "browser_navigate", url="http://a.test/shop?session=abc#x", task_id="shop")
    await call(dispatcher, "browser_snapshot", task_id="none")
    supervisor = dispatcher.tasks.require("", "shop")
    opening = {"type": "confirm", "message": "Sure?", "url": "http://a.test/", "hasBrowserHandler": False}
    for _ in range(2):
        await browser.emit("Page.javascriptDialogOpening", opening, "S1")
        await supervisor.wait_for(lambda view: view.pending_dialogs or None, GUARD_S)
        await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
        await supervisor.wait_for(lambda view: not view.pending_dialogs or None, GUARD_S)
    await browser.emit("Page.javascriptDialogOpening", opening, "S1")
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, GUARD_S)
    found = status(dispatcher, "")
    [task] = found["tasks"]
    shown = ("task_id", "connected", "tabs", "pending_dialogs", "closed_dialogs")
    assert [task[name] for name in shown] == ["shop", True, 1, 1, 2]
    assert task["frames"] >= 1 and 0 <= task["idle_s"] < task["ends_in_s"] <= 1800
    [its] = found["browsers"]
    assert (its["started_here"], its["pid"], its["over"], its["tasks"]) == (False, None, "websocket", ["shop"])
    calls = found["calls"]["by_tool"]
    assert calls["browser_navigate"]["outcomes"] == {"ok": 1} and calls["browser_navigate"]["ms"]["max"] > 0
    assert calls["browser_snapshot"]["outcomes"] == {"no_task": 1}
    assert found["ended"]["dialogs"] == {"confirm": {"remote": 2}}
    assert found["dropped"]["console_errors"] == {"cap": 50, "dropped": 0}
    await call(dispatcher, "browser_close", task_id="shop")
    after = status(dispatcher, "")
    assert after["tasks"] == after["browsers"] == [] and after["calls"]["running"] == 0
    assert after["ended"]["tasks"] == {"closed": 1, "started": 1}
    assert sum(after["ended"]["dialogs"]["confirm"].values()) == 3, "counts outlive their task"
    json.dumps(after)


async def test_what_fell_out_of_a_ring_is_counted(browser: FakeBrowser, dispatcher: Dispatcher) -> None:
    await call(dispatcher, "browser_navigate", url="http://a.test/")
    supervisor = dispatcher.tasks.require("", "default")
    for number in range(60):
        line = {"type": "error", "args": [{"type": "string", "value": str(number)}], "timestamp": 1}
        await browser.emit("Runtime.consoleAPICalled", line, "S1")
    await supervisor.wait_for(lambda view: view.console_dropped == 10 or None, GUARD_S)
    found = status(dispatcher, "")
    assert found["dropped"]["console_errors"] == {"cap": 50, "dropped": 10}
    assert found["tasks"][0]["console_errors"] == 60


async def test_nobody_sees_what_others_do(dispatcher: Dispatcher) -> None:
    await call(dispatcher, "browser_navigate", "alice", url="http://a.test/", task_id="alices-own")
    bobs = status(dispatcher, "bob")
    assert bobs["tasks"] == bobs["browsers"] == [] and bobs["calls"] == {"running": 0, "by_tool": {}}
    assert bobs["ended"]["tasks"] == {}
    assert "alices-own" not in json.dumps(bobs) and "alices-own" in json.dumps(status(dispatcher, "alice"))


async def test_looking_is_no_use_and_starts_nothing(browser: FakeBrowser) -> None:
    now = 0.0
    settings = Settings.model_validate({"browser": {"cdp_url": browser.url, "bridge": "never", "idle_timeout_s": 60}})
    dispatcher = Dispatcher(settings)
    dispatcher.tasks._clock = lambda: now
    status(dispatcher, "")
    assert dispatcher.tasks._registry is None
    await call(dispatcher, "browser_navigate", url="http://a.test/")
    now = 59.0
    assert status(dispatcher, "")["tasks"][0]["ends_in_s"] == 1.0
    now = 60.0
    await dispatcher.tasks.end_idle()
    assert status(dispatcher, "")["tasks"] == []
    await dispatcher.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@shop.test:8443/a/b?token=x#y", "https://shop.test:8443/a/b"),
        ("http://[::1]:80/x?y", "http://[::1]:80/x"),
        ("data:text/html,secret", "data:…"),
        ("about:blank", "about:blank"),
        ("blob:https://a.test/5-5", "blob:…"),
        ("http://a.test:99999/x", "…"),
        ("", ":…"),
    ],
)
def test_of_an_address_only_where_it_leads_is_shown(url: str, shown: str) -> None:
    assert place(url) == shown


def test_no_setting_of_the_summary_can_hold_a_secret_or_a_path() -> None:
    from watchkeeper.server.settings import all_settings

    by_name = {setting.name: setting for setting in all_settings()}
    for name in SUMMARY:
        assert not by_name[name].secret
        assert by_name[name].choices or by_name[name].kind is not str or name == "context.engine", name


def test_durations_are_upper_bounds_from_fixed_buckets() -> None:
    durations = Durations()
    assert durations.as_dict() == {"p50": 0.0, "p95": 0.0, "max": 0.0}
    for ms in [3] * 50 + [40] * 44 + [700] * 5 + [1_000_000]:
        durations.add(ms)
    assert durations.as_dict() == {"p50": 5, "p95": 1000, "max": 1_000_000}
    single = Durations()
    single.add(120)
    assert single.as_dict() == {"p50": 120, "p95": 120, "max": 120}, "never above what was seen"
    assert len(single.buckets) == len(BUCKETS_MS) + 1


def test_counts_are_bounded_whatever_the_names() -> None:
    counts = OfPrincipal()
    for number in range(3 * MAX_NAMES):
        counts.call_ended(f"tool-{number}", "ok", 1)
        counts.call_ended("one", f"outcome-{number}", 1)
    assert len(counts.outcomes) <= MAX_NAMES + 1 and len(
        counts.outcomes["one" if "one" in counts.outcomes else "other"]
    )
    assert all(len(outcomes) <= MAX_NAMES + 1 for outcomes in counts.outcomes.values())
    assert sum(sum(outcomes.values()) for outcomes in counts.outcomes.values()) == 6 * MAX_NAMES
    assert nested({("a", "b", "c"): 1, ("a", "b", "d"): 2, ("e", "f"): 3}, under="a") == {"b": {"c": 1, "d": 2}}


async def test_health_is_asked_without_a_token_and_the_status_is_not(guarded: Server) -> None:
    async with httpx.AsyncClient(timeout=GUARD_S) as http:
        health = await http.get(f"{guarded.url}/health")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert (await http.head(f"{guarded.url}/health")).status_code == 200
        assert (await http.post(f"{guarded.url}/health")).status_code == 405
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert (await http.get(f"{guarded.url}/status", headers=headers)).status_code == 401
        mine = await http.get(f"{guarded.url}/status", headers={"Authorization": f"Bearer {ALICE}"})
        assert mine.status_code == 200 and mine.json()["tasks"] == [] and mine.headers["cache-control"] == "no-store"
        elsewhere = {"Host": "evil.test"}
        for path in ("health", "status"):
            assert (await http.get(f"{guarded.url}/{path}", headers=elsewhere)).status_code == 421


async def test_health_is_answered_when_other_requests_are_too_many(browser: FakeBrowser) -> None:
    few = ("--cdp-url", browser.url, "--server.max_requests_per_s", "0.01")
    async with serving(*few) as server, httpx.AsyncClient(timeout=GUARD_S) as http:
        statuses = [(await http.get(f"{server.url}/status")).status_code for _ in range(3)]
        assert statuses == [200, 429, 429]
        assert (await http.get(f"{server.url}/health")).status_code == 200


async def test_a_server_that_ends_says_so_while_calls_still_run(browser: FakeBrowser) -> None:
    browser.on("Page.navigate", NEVER)
    async with (
        serving("--cdp-url", browser.url, "--browser.bridge", "never") as server,
        httpx.AsyncClient(timeout=GUARD_S) as http,
        anyio.create_task_group() as group,
    ):
        asked = {"name": "browser_navigate", "arguments": {"url": "http://a.test/", "timeout": 4}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opened = await http.post(
            f"{server.url}/mcp",
            json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about},
            headers=headers,
        )
        headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]

        async def navigate() -> None:
            await http.post(f"{server.url}/mcp", json=message, headers=headers)

        group.start_soon(navigate)
        await browser.called("Page.navigate")
        server.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(GUARD_S):
            while (answer := await http.get(f"{server.url}/health")).status_code == 200:
                await anyio.lowlevel.checkpoint()
        assert (answer.status_code, answer.json()) == (503, {"status": "ending"})
        group.cancel_scope.cancel()
