"""The registry: idle tasks, and starts and ends that meet each other. Time is handed in; nothing here waits for it."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser

from watchkeeper.supervisor import CdpEndpoint, Supervisor, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.errors import EndpointUnreachable, SupervisorError, TargetClosed
from watchkeeper.supervisor.page.downloads import downloads_of
from watchkeeper.supervisor.page.network import network_log
from watchkeeper.supervisor.page.state import state_of
from watchkeeper.supervisor.registry import ENDED_IDLE_KEPT

pytestmark = pytest.mark.anyio
GUARD_S = 30.0


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()


@pytest.fixture
async def browser() -> AsyncIterator[FakeBrowser]:
    async with FakeBrowser() as made:
        yield made


@pytest.fixture
async def registry(clock: Clock) -> AsyncIterator[SupervisorRegistry]:
    made = SupervisorRegistry(options=SupervisorOptions(idle_timeout_s=600), clock=clock)
    yield made
    await asyncio.wait_for(made.stop_all(), GUARD_S)


async def start(registry: SupervisorRegistry, browser: FakeBrowser, task: str = "task") -> Supervisor:
    supervisor = await registry.get_or_start(task, CdpEndpoint(browser.url))
    await supervisor.navigate("http://a.test/")
    return supervisor


async def test_a_task_that_nobody_uses_is_ended_and_the_next_caller_is_told(
    browser: FakeBrowser, registry: SupervisorRegistry, clock: Clock
) -> None:
    await start(registry, browser, "idle")
    used = await start(registry, browser, "used")
    clock.now = 1
    assert await registry.end_idle() == (), "what was done meanwhile counts"
    clock.now = 599
    await used.evaluate("1")
    assert await registry.end_idle() == ()
    clock.now = 601
    assert await registry.end_idle() == ("idle",)
    assert registry.get("idle") is None and registry.get("used") is used
    again = await start(registry, browser, "idle")
    assert "nobody used it" in again.notice
    assert (await start(registry, browser, "other")).notice == ""


async def test_a_call_in_flight_is_use(browser: FakeBrowser, registry: SupervisorRegistry, clock: Clock) -> None:
    supervisor = await start(registry, browser)
    browser.on("Foo.long", NEVER)
    waiting = asyncio.create_task(supervisor.call("Foo.long", timeout=20))
    await browser.called("Foo.long")
    for clock.now in (1000, 2000, 3000):
        assert await registry.end_idle() == ()
    await browser.emit("Inspector.targetCrashed", {}, "S1")
    with pytest.raises(SupervisorError):
        await waiting
    assert await registry.end_idle() == ()
    clock.now += 600
    assert await registry.end_idle() == ("task",)


async def test_finding_a_task_again_is_use(browser: FakeBrowser, registry: SupervisorRegistry, clock: Clock) -> None:
    supervisor = await start(registry, browser)
    await registry.end_idle()
    clock.now = 599
    assert await registry.get_or_start("task", CdpEndpoint(browser.url)) is supervisor
    clock.now = 700
    assert await registry.end_idle() == ()


async def test_idle_tasks_are_looked_for_by_themselves(browser: FakeBrowser) -> None:
    registry = SupervisorRegistry(options=SupervisorOptions(idle_timeout_s=0.01))
    await registry.get_or_start("task", CdpEndpoint(browser.url))
    await browser.connected(0)
    assert registry.get("task") is None
    await registry.stop_all()


async def test_without_an_idle_timeout_nothing_is_ended(browser: FakeBrowser, clock: Clock) -> None:
    registry = SupervisorRegistry(clock=clock)
    await start(registry, browser)
    clock.now = 1e9
    assert await registry.end_idle() == ()
    await registry.stop_all()


async def test_a_browser_that_a_new_task_was_promised_is_not_ended_by_the_last_one_that_leaves(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    endpoint = CdpEndpoint(browser.url)
    for _ in range(20):
        await registry.get_or_start("old", endpoint)
        _, new = await asyncio.gather(registry.stop("old"), registry.get_or_start("new", endpoint))
        assert new.lost is None
        await new.navigate("http://a.test/")
        await registry.stop("new")


async def test_ending_everything_ends_what_is_only_starting(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    browser.slow_s = 0.05
    starting = asyncio.create_task(registry.get_or_start("task", CdpEndpoint(browser.url)))
    await browser.called("Browser.getVersion")
    await asyncio.wait_for(registry.stop_all(), GUARD_S)
    await starting
    assert registry.supervisors == ()
    await browser.connected(0)


async def test_a_start_that_is_cancelled_leaves_no_connection(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    browser.on("Target.setDiscoverTargets", NEVER)
    starting = asyncio.create_task(registry.get_or_start("task", CdpEndpoint(browser.url)))
    await browser.called("Target.setDiscoverTargets")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await browser.connected(0)
    assert registry.supervisors == ()


async def test_tasks_that_came_and_went_leave_nothing_in_memory(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    for number in range(50):
        await registry.get_or_start(f"task-{number}", CdpEndpoint(browser.url))
        await registry.stop(f"task-{number}")
    with pytest.raises(EndpointUnreachable):
        await registry.get_or_start("nowhere", CdpEndpoint("ws://127.0.0.1:9/devtools/browser/x"))
    assert [len(part) for part in (registry._task_locks, registry._endpoint_locks)] == [0, 0]


async def test_many_tasks_end_side_by_side_and_all_are_told_of(browser: FakeBrowser, clock: Clock) -> None:
    told: list[tuple[str, str, bool]] = []
    registry = SupervisorRegistry(
        options=SupervisorOptions(idle_timeout_s=600),
        clock=clock,
        ended=lambda supervisor, reason: told.append((supervisor.task_id, reason, supervisor.snapshot().connected)),
    )
    for number in range(20):
        await start(registry, browser, f"task-{number}")
    clock.now = 600
    assert len(await registry.end_idle()) == 20
    assert sorted(told) == sorted((f"task-{number}", "idle", False) for number in range(20))
    await registry.stop_all()


async def test_names_of_tasks_that_ended_idle_are_not_kept_for_ever(browser: FakeBrowser, clock: Clock) -> None:
    registry = SupervisorRegistry(options=SupervisorOptions(idle_timeout_s=1), clock=clock)
    registry._ended_idle.update({f"old-{number}": None for number in range(ENDED_IDLE_KEPT)})
    await start(registry, browser, "new")
    clock.now += 1
    assert await registry.end_idle() == ("new",)
    assert len(registry._ended_idle) == ENDED_IDLE_KEPT and "new" in registry._ended_idle
    await registry.stop_all()


async def test_calls_in_flight_end_with_their_task(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    await start(registry, browser, "other")  # the connection outlives the task
    supervisor = await start(registry, browser)
    browser.on("Foo.long", NEVER)
    waiting = asyncio.create_task(supervisor.call("Foo.long", timeout=300))
    await browser.called("Foo.long")
    await registry.stop("task")
    with pytest.raises(TargetClosed, match="The task was ended"):
        await asyncio.wait_for(waiting, GUARD_S)
    assert len(supervisor.browser.runner.pending) == 0


async def test_a_task_that_ended_is_freed_with_all_that_was_kept_for_it(
    browser: FakeBrowser, registry: SupervisorRegistry, tmp_path: Path
) -> None:
    await start(registry, browser, "other")
    supervisor = await start(registry, browser)
    await network_log(supervisor).start()
    await downloads_of(supervisor).save_to(tmp_path)
    assert state_of(supervisor) is state_of(supervisor)
    gone = weakref.ref(supervisor)
    del supervisor
    await registry.stop("task")
    gc.collect()
    assert gone() is None
