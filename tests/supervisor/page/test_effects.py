"""What an action started, told from the browser's events in whatever order they come."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from watchkeeper.supervisor.core.inputs import Event
from watchkeeper.supervisor.core.view import Frame, Tab
from watchkeeper.supervisor.page import effects
from watchkeeper.supervisor.page.effects import Effects, Watch
from watchkeeper.supervisor.page.port import PagePort

pytestmark = pytest.mark.anyio
GUARD_S = 5.0
STARTED = ("Page.frameStartedNavigating", {"frameId": "T", "url": "u2", "navigationType": "differentDocument"})
STOPPED = ("Page.frameStoppedLoading", {"frameId": "T"})
NAVIGATED = ("Page.frameNavigated", {"frame": {"id": "T", "url": "u2"}})
LOADED = ("Page.lifecycleEvent", {"frameId": "T", "name": "load"})
RESTORED = ("Page.frameNavigated", {"frame": {"id": "T", "url": "u2"}, "type": "BackForwardCacheRestore"})
FAILED = ("Page.frameNavigated", {"frame": {"id": "T", "url": "chrome-error://", "unreachableUrl": "u2"}})
DOWNLOAD = ("Page.downloadWillBegin", {"frameId": "T", "guid": "g", "suggestedFilename": "a.csv"})
ADVERT = ("Page.frameRequestedNavigation", {"frameId": "A", "disposition": "currentTab", "reason": "scriptInitiated"})
LINK_IN_FRAME = (
    "Page.frameRequestedNavigation",
    {"frameId": "A", "disposition": "currentTab", "reason": "anchorClick"},
)
FRAME_GONE_ON = ("Page.frameNavigated", {"frame": {"id": "A", "url": "u3"}})
FRAME_STOPPED = ("Page.frameStoppedLoading", {"frameId": "A"})
WINDOW = ("Page.windowOpen", {"url": "u9"})
ATTACHED = ("Target.attachedToTarget", {"sessionId": "S9"})


class Port:
    """A tab with a top frame T and an advertisement A."""

    def __init__(self) -> None:
        self.hear: Callable[[Event], None] = lambda event: None
        frames = (Frame("T", "f1", "u", "", "", None, False, "S"), Frame("A", "f2", "u", "", "", "T", False, "S"))
        self.tabs = [Tab("t1", "T", "u", "", True, False, None)]
        self.view = SimpleNamespace(frames=frames, pending_dialogs=(), selected_tab=self.tabs[0])

    def snapshot(self) -> Any:
        self.view.tabs = tuple(self.tabs)
        return self.view

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self.hear = listener
        return lambda: None

    async def evaluate(self, expression: str, **_: Any) -> Any:
        return ["u2", "Title", 200] if "title" in expression else None


async def started_by(*events: tuple[str, dict[str, Any]], expect: bool = False) -> Effects:
    """What a watch makes of events, the first of them during the action and each other one a moment later."""
    port = Port()
    watch = Watch(cast(PagePort, port), "T")
    if expect:
        watch.expect("T")

    async def send(rest: list[tuple[str, dict[str, Any]]]) -> None:
        for method, params in rest:
            await asyncio.sleep(0)
            if method == "Target.attachedToTarget":
                port.tabs.append(Tab("t2", "N", "u9", "", False, False, "t1"))
            port.hear(Event("S", method, params))

    tasks = []

    async def act() -> None:
        await send(list(events[:1]))
        tasks.append(asyncio.create_task(send(list(events[1:]))))

    return await asyncio.wait_for(watch.perform(act), GUARD_S)


@pytest.fixture(autouse=True)
def no_guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that waits because it is unsure fails these tests."""
    monkeypatch.setattr(effects, "UNSURE_WAIT_S", 60.0)


async def test_an_action_that_starts_nothing_ends_with_its_round_trip() -> None:
    assert await started_by() == Effects()
    assert await started_by(ADVERT) == Effects(), "an advertisement that moves on is nobody's effect"


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((STARTED, NAVIGATED, LOADED, STOPPED), "loaded"),
        ((STARTED, NAVIGATED, STOPPED), "loaded"),
        ((STARTED, RESTORED), "loaded"),
        ((STARTED, STOPPED, RESTORED), "loaded"),
        ((STARTED, FAILED, STOPPED), "failed"),
    ],
)
@pytest.mark.parametrize("expect", [True, False])
async def test_a_navigation_is_waited_for_until_it_is_there(events: tuple[Any, ...], state: str, expect: bool) -> None:
    got = await started_by(*events, expect=expect)
    assert [(a.frame, a.url, a.state) for a in got.arrivals] == [("", "u2", state)]


async def test_a_navigation_of_a_frame_that_a_link_started_is_told_with_its_frame() -> None:
    got = await started_by(LINK_IN_FRAME, FRAME_GONE_ON, FRAME_STOPPED)
    assert [a.frame for a in got.arrivals] == ["f2"]


@pytest.mark.parametrize("events", [(STARTED, DOWNLOAD, STOPPED), (STARTED, STOPPED, DOWNLOAD), (DOWNLOAD,)])
async def test_a_download_is_told_in_whatever_order_it_is_heard_of(events: tuple[Any, ...]) -> None:
    got = await started_by(*events)
    assert got.downloads == ("a.csv",)
    assert got.arrivals == ()


async def test_a_window_that_opens_is_waited_for_until_it_is_a_tab() -> None:
    assert [tab.tab_id for tab in (await started_by(WINDOW, ATTACHED)).tabs] == ["t2"]
