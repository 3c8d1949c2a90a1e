"""A browser that is started before there is a task: the first one gets it; where none does, it ends."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from fakes.fake_browser import FakeBrowser

from watchkeeper.supervisor import CdpEndpoint, LocalEndpoint, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.backends import connect
from watchkeeper.supervisor.egress import UNDECIDED, Gates
from watchkeeper.supervisor.errors import BrowserNotFound, LaunchFailed
from watchkeeper.supervisor.starting import Started

pytestmark = pytest.mark.anyio
GUARD_S = 30.0
HERE = LocalEndpoint("/nowhere/at/all", headless=True)


@dataclass(frozen=True)
class Policy:
    checks_loopback: bool = False

    def of_host(self, host: str, port: int) -> str | None:
        return None

    def of_address(self, address: object, host: str, port: int) -> str | None:
        return None


class Start:
    """Starting a browser, which is a connection to an imitation."""

    def __init__(self, url: str, *, fails: bool = False) -> None:
        self.go = asyncio.Event()
        self.done: Started | None = None
        self.task = asyncio.create_task(self._run(url, fails))

    async def _run(self, url: str, fails: bool) -> Started:
        await self.go.wait()
        if fails:
            raise LaunchFailed("It ended.", "Try another.")
        gates = await Gates.start(UNDECIDED, None, isolated=True)
        self.done = Started(await connect(CdpEndpoint(url), timeout=GUARD_S), gates)
        return self.done


@pytest.fixture
async def browser() -> AsyncIterator[FakeBrowser]:
    async with FakeBrowser() as made:
        yield made


@pytest.fixture
async def registry() -> AsyncIterator[SupervisorRegistry]:
    made = SupervisorRegistry(options=SupervisorOptions(egress=Policy()))
    yield made
    await asyncio.wait_for(made.stop_all(), GUARD_S)


async def test_the_first_task_gets_it_with_the_policy_of_the_registry(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    start = Start(browser.url)
    await registry.expect(HERE, start.task)
    getting = [asyncio.create_task(registry.get_or_start(name, HERE)) for name in ("a", "b")]
    start.go.set()
    first, second = await asyncio.wait_for(asyncio.gather(*getting), GUARD_S)
    assert first.browser is second.browser and first.gate is not None
    assert first.gate.policy is registry.options.egress
    await registry.end_expected()
    assert first.lost is None, "it is taken"


async def test_one_that_fails_is_the_failure_of_the_first_task_alone(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    start = Start(browser.url, fails=True)
    await registry.expect(HERE, start.task)
    start.go.set()
    with pytest.raises(LaunchFailed):
        await registry.get_or_start("a", HERE)
    with pytest.raises(BrowserNotFound):
        await registry.get_or_start("a", HERE)


@pytest.mark.parametrize("ready", [True, False])
async def test_one_that_no_task_takes_is_ended(browser: FakeBrowser, registry: SupervisorRegistry, ready: bool) -> None:
    start = Start(browser.url)
    if ready:
        start.go.set()
        await start.task
    await registry.expect(HERE, start.task)
    with pytest.raises(BrowserNotFound):
        await registry.get_or_start("a", LocalEndpoint("/nowhere/else"))
    await registry.end_expected()
    assert start.task.done()
    if start.done is not None:
        with pytest.raises(Exception, match="closed"):
            await start.done.connected.transport.receive()


async def test_a_task_that_is_cancelled_while_it_starts_ends_it(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    start = Start(browser.url)
    await registry.expect(HERE, start.task)
    getting = asyncio.create_task(registry.get_or_start("a", HERE))
    while registry._expected is not None:  # noqa: ASYNC110 - taking it sets no event
        await asyncio.sleep(0)
    getting.cancel()
    await asyncio.wait([getting], timeout=GUARD_S)
    assert getting.cancelled() and start.task.cancelled()


@pytest.mark.parametrize("policy", [None, Policy(checks_loopback=True)])
async def test_one_whose_command_line_would_be_another_is_not_used(browser: FakeBrowser, policy: Policy | None) -> None:
    start = Start(browser.url)
    registry = SupervisorRegistry(options=SupervisorOptions(egress=policy))
    await registry.expect(HERE, start.task)
    assert start.task.cancelled()
