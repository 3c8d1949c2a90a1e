"""Tasks: whose they are, what backend they have, and when they end."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser

from watchkeeper.server.errors import ToolError
from watchkeeper.server.settings import Settings
from watchkeeper.server.tasks import Tasks, endpoint
from watchkeeper.supervisor import CdpEndpoint, LocalEndpoint
from watchkeeper.supervisor.errors import EndpointUnreachable
from watchkeeper.supervisor.use import Use

pytestmark = pytest.mark.anyio


def settings(**browser: object) -> Settings:
    return Settings.model_validate({"browser": browser})


async def test_principals_cannot_reach_each_others_tasks(browser: FakeBrowser) -> None:
    tasks = Tasks(settings(cdp_url=browser.url))
    alices = await tasks.start("alice", "default")
    assert tasks.get("alice", "default") is alices
    for principal, task_id in (("bob", "default"), ("", "default"), ("", "alice"), ("bob", "alice/default")):
        assert tasks.get(principal, task_id) is None
    bobs = await tasks.start("bob", "default")
    assert bobs is not alices
    await tasks.close()


async def test_a_task_that_is_not_used_ends_and_one_that_works_does_not(browser: FakeBrowser) -> None:
    now = 0.0
    tasks = Tasks(settings(cdp_url=browser.url, idle_timeout_s=60), clock=lambda: now)
    await tasks.start("", "idle")
    await tasks.start("", "busy")
    with tasks.using("", "busy"):
        now = 59.0
        await tasks.end_idle()
        assert tasks.live("") == ("busy", "idle"), "looking is no use"
        now = 61.0
        await tasks.end_idle()
        with pytest.raises(ToolError, match="no browser"):
            tasks.require("", "idle")
        now = 500.0
        await tasks.end_idle()
        assert tasks.live("") == ("busy",)
    now = 559.0
    await tasks.end_idle()
    assert tasks.live("") == ("busy",), "the time runs from the end of the call"
    now = 561.0
    await tasks.end_idle()
    assert tasks.live("") == ()
    assert tasks.counters.of("").events["tasks", "idle"] == 2
    await tasks.close()


async def test_the_limit_of_tasks_is_exact_however_many_begin_at_once(browser: FakeBrowser) -> None:
    tasks = Tasks(settings(cdp_url=browser.url, max_tasks=5))
    browser.slow_s = 0.01
    outcomes = await asyncio.gather(*(tasks.start("", f"t{n}") for n in range(30)), return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(refused) == 25 and {getattr(error, "code", error) for error in refused} == {"too_many_tasks"}
    assert len(tasks.live("")) == 5
    await tasks.start("", tasks.live("")[0])
    await tasks.stop("", tasks.live("")[0])
    await tasks.start("", "another")
    await tasks.close()


async def test_starts_that_failed_or_were_cancelled_take_no_place(browser: FakeBrowser) -> None:
    tasks = Tasks(settings(cdp_url="ws://127.0.0.1:9/devtools/browser/x", max_tasks=1))
    for task_id in ("a", "b"):
        with pytest.raises(EndpointUnreachable):
            await tasks.start("", task_id)
    tasks = Tasks(settings(cdp_url=browser.url, max_tasks=1))
    browser.on("Target.setDiscoverTargets", NEVER)
    starting = asyncio.create_task(tasks.start("", "a"))
    await browser.called("Target.setDiscoverTargets")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert tasks._named == {} and not tasks._starting
    await tasks.close()


async def test_what_others_have_open_takes_nothing_from_my_limit(browser: FakeBrowser) -> None:
    tasks = Tasks(settings(cdp_url=browser.url, max_tasks=2))
    for principal in ("alice", "bob"):
        for task_id in ("a", "b"):
            await tasks.start(principal, task_id)
    with pytest.raises(ToolError, match="2 tasks are open"):
        await tasks.start("alice", "c")
    await tasks.close()


async def test_zero_means_that_tasks_never_end_by_themselves(browser: FakeBrowser) -> None:
    now = 0.0
    tasks = Tasks(settings(cdp_url=browser.url, idle_timeout_s=0), clock=lambda: now)
    await tasks.start("", "a")
    now = 1e9
    await tasks.end_idle()
    assert tasks.get("", "a") is not None
    await tasks.close()


def test_settings_become_an_endpoint() -> None:
    assert endpoint(settings(cdp_url="ws://h:1/x")) == CdpEndpoint("ws://h:1/x")
    assert isinstance(endpoint(settings(backend="local", cdp_url="ws://h:1/x")), LocalEndpoint)
    local = endpoint(
        settings(
            executable="/b",
            headless=True,
            locale="de",
            ignore_certificate_errors=True,
            extra_args=("--x",),
            proxy="p:1",
        )
    )
    assert local == LocalEndpoint("/b", True, None, ("--x", "--lang=de", "--ignore-certificate-errors"), "p:1")
    with pytest.raises(ToolError, match=r"browser\.cdp_url is not set"):
        endpoint(settings(backend="cdp"))


def test_without_a_browser_its_tools_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: None, raising=False)
    tasks = Tasks(settings())
    assert tasks.capabilities() == frozenset()
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: Path("/b"), raising=False)
    assert tasks.capabilities() == {"cdp", "dialogs"}
    monkeypatch.setattr("watchkeeper.supervisor.find_browser", lambda: None, raising=False)
    assert Tasks(settings(executable="/somewhere")).capabilities() == {"cdp", "dialogs"}
    assert Tasks(settings(cdp_url="ws://h:1/x")).capabilities() == {"cdp", "dialogs"}


@dataclass
class Fake:
    """As much of a supervisor as ``Tasks`` looks at."""

    task_id: str
    lost: str | None = None
    browser: Any = field(default_factory=lambda: SimpleNamespace(owned=True, product="Fake/1", pid=1))
    use: Use = field(default_factory=lambda: Use(lambda: 0.0))


class Registered:
    """A registry of such supervisors."""

    def __init__(self) -> None:
        self.running: dict[str, Fake] = {}

    def get(self, task_id: str) -> Any:
        return self.running.get(task_id)

    async def get_or_start(self, task_id: str, endpoint: object, *, dialog_policy: object = None) -> Any:
        return self.running.setdefault(task_id, Fake(task_id))

    async def stop(self, task_id: str) -> bool:
        return self.running.pop(task_id, None) is not None


async def test_a_task_whose_browser_is_gone_makes_room_for_a_new_one() -> None:
    registry = Registered()
    tasks = Tasks(settings(max_tasks=2), registry)  # type: ignore[arg-type]
    for task_id in ("a", "b"):
        await tasks.start("", task_id)
    registry.running["a"].lost = "it was killed"
    with registry.running["a"].use.during(), pytest.raises(ToolError, match="2 tasks are open"):
        await tasks.start("", "c")  # a call of it still runs: it may be starting again
    await tasks.start("", "c")
    assert tasks.live("") == ("b", "c")
    registry.running["b"].lost = "and this one"
    await tasks.start("", "b")
    assert tasks.live("") == ("b", "c"), "the one that asks again keeps its place"
