"""The blocking façade: the same registry for hosts without an event loop, from any thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser

from watchkeeper.supervisor import BlockingRegistry, BlockingSupervisor, CdpEndpoint, SupervisorOptions, View
from watchkeeper.supervisor.errors import CallTimeout, ConnectionLost, DialogOpened, InvalidArgument

GUARD_S = 30.0


class ThreadedBrowser:
    """A fake browser in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.browser = self.run(self._make())

    async def _make(self) -> FakeBrowser:
        return await FakeBrowser().__aenter__()

    def run(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(GUARD_S)

    def close(self) -> None:
        self.run(self.browser.__aexit__())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(GUARD_S)
        self.loop.close()


@pytest.fixture
def fake() -> Iterator[ThreadedBrowser]:
    made = ThreadedBrowser()
    yield made
    made.close()


@pytest.fixture
def registry() -> Iterator[BlockingRegistry]:
    with BlockingRegistry(options=SupervisorOptions(call_timeout_s=10)) as made:
        yield made


def start(registry: BlockingRegistry, fake: ThreadedBrowser, task: str = "task") -> BlockingSupervisor:
    supervisor = registry.get_or_start(task, CdpEndpoint(fake.browser.url))
    supervisor.navigate("http://a.test/")
    return supervisor


def test_everything_works_without_an_event_loop(registry: BlockingRegistry, fake: ThreadedBrowser) -> None:
    supervisor = start(registry, fake)
    assert supervisor.evaluate("1 + 1") == 2
    assert [tab.tab_id for tab in supervisor.snapshot().tabs] == ["t1"]
    fake.browser.on("Runtime.evaluate", NEVER)

    def opens() -> None:
        fake.run(fake.browser.called("Runtime.evaluate", 3))
        fake.run(fake.browser.dialog(kind="prompt", default="x"))

    with ThreadPoolExecutor() as pool:
        opened = pool.submit(opens)
        with pytest.raises(DialogOpened):
            supervisor.evaluate("prompt('?')")
        opened.result(GUARD_S)

    async def close(call: object) -> dict[str, Any]:
        await fake.browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": "x"}, "S1")
        return {}

    fake.browser.on("Page.handleJavaScriptDialog", close)
    assert supervisor.answer_dialog("accept").delivered
    found = registry.get("task")
    assert found is not None and found.task_id == "task" and registry.get("other") is None
    assert registry.stop("task") and not registry.stop("task")


def test_several_threads_may_call_at_once_and_read_snapshots_meanwhile(
    registry: BlockingRegistry, fake: ThreadedBrowser
) -> None:
    with ThreadPoolExecutor(8) as pool:
        same = list(pool.map(lambda _: registry.get_or_start("task", CdpEndpoint(fake.browser.url)), range(8)))
        assert len({id(s._supervisor) for s in same}) == 1
        same[0].navigate("http://a.test/")
        assert list(pool.map(lambda n: same[n % 8].evaluate("1"), range(100))) == [2] * 100
        assert all(view.connected for view in pool.map(lambda s: s.snapshot(), same))


def test_waiting_is_bounded_and_a_call_from_a_condition_is_refused_instead_of_hanging(
    registry: BlockingRegistry, fake: ThreadedBrowser
) -> None:
    supervisor = start(registry, fake)
    with pytest.raises(CallTimeout):
        supervisor.wait_for(lambda view: None, 0.05)

    def acts(view: View) -> bool:
        supervisor.evaluate("1")
        return True

    with pytest.raises(InvalidArgument, match="blocking call"):
        supervisor.wait_for(acts, 5)


def test_an_interrupted_wait_cancels_what_it_waited_for(
    registry: BlockingRegistry, fake: ThreadedBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = start(registry, fake)
    fake.browser.on("Foo.long", NEVER)
    real: Callable[..., Any] = asyncio.run_coroutine_threadsafe

    def interrupted(what: Any, loop: Any) -> Any:
        future = real(what, loop)
        fake.run(fake.browser.called("Foo.long"))
        future.result = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
        return future

    with monkeypatch.context() as patch:
        patch.setattr("watchkeeper.supervisor.blocking.asyncio.run_coroutine_threadsafe", interrupted)
        patch.setattr(fake, "run", lambda what: real(what, fake.loop).result(GUARD_S))
        with pytest.raises(KeyboardInterrupt):
            supervisor.call("Foo.long")
    supervisor.wait_for(lambda view: True, 5)
    assert supervisor._supervisor.use.running == 0, "nobody waits any more"


def test_closing_ends_the_thread_and_later_calls_say_so(fake: ThreadedBrowser) -> None:
    registry = BlockingRegistry()
    supervisor = start(registry, fake)
    thread = registry._loop._thread
    registry.close()
    registry.close()
    assert not thread.is_alive()
    fake.run(fake.browser.connected(0))
    for late in (lambda: supervisor.evaluate("1"), lambda: registry.get_or_start("task", supervisor.endpoint)):
        with pytest.raises(ConnectionLost):
            late()
    assert not supervisor.snapshot().connected
