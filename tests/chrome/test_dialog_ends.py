"""How dialogs end otherwise than by an answer, and what no answer can reach, on a real Chromium."""

import asyncio
from typing import Any, Literal

import pytest
from fakes.pages import ASKS_BEFORE_LEAVING, gesture
from fakes.site import Site
from fakes.waits import WAIT_S, Start, pending, quiet

from watchkeeper.supervisor import DialogPolicy, LocalEndpoint, Supervisor, SupervisorRegistry
from watchkeeper.supervisor.errors import CallInterrupted, DialogOpened, SupervisorError, TargetCrashed
from watchkeeper.supervisor.options import BridgeChoice

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
natively_or_held = pytest.mark.parametrize("way", ["debugger", "never"])
Leave = Literal["reload", "back", "close"]


async def leave(supervisor: Supervisor, how: Leave) -> None:
    if how == "reload":
        await supervisor.call("Page.reload")
    elif how == "close":
        await supervisor.close_tab()
    else:
        history = await supervisor.call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] - 1]["id"]
        await supervisor.call("Page.navigateToHistoryEntry", {"entryId": entry})


async def asking_page(supervisor: Supervisor, site: Site) -> None:
    """A page that wants to stay and was touched, with one before it in its history. ``here`` is lost by leaving."""
    await supervisor.navigate(site.page("/before", "<title>before</title>"))
    await supervisor.navigate(site.page("/", "<title>asks</title>" + ASKS_BEFORE_LEAVING))
    await gesture(supervisor)
    await supervisor.evaluate("window.here = 1")


async def left(supervisor: Supervisor, how: Leave) -> bool:
    """Whether the page was left, once that is settled."""
    if how == "close":
        return not supervisor.snapshot().tabs
    script = "[document.title, window.here === 1]"
    title, here = await supervisor.evaluate(script)
    return {"reload": ["asks", False], "back": ["before", False]}[how] == [title, here]


@natively_or_held
@pytest.mark.parametrize("action", ["accept", "dismiss"])
@pytest.mark.parametrize("how", ["reload", "back", "close"])
async def test_a_page_asks_before_it_is_left_in_whatever_way(
    start: Start, site: Site, way: BridgeChoice, how: Leave, action: Any
) -> None:
    supervisor = await start(way)
    await asking_page(supervisor, site)
    try:
        await leave(supervisor, how)
    except DialogOpened as opened:
        assert opened.dialogs[0].type == "beforeunload"
    view = await pending(supervisor)
    assert [d.type for d in view.pending_dialogs] == ["beforeunload"]
    answer = await supervisor.answer_dialog(action)
    assert answer.delivered, answer.note
    if action == "dismiss":
        assert not await left(supervisor, how)
        assert await supervisor.evaluate("here") == 1
        return
    if how == "close":
        await supervisor.wait_for(lambda v: None if v.tabs else True, WAIT_S)
        return
    await arrived(supervisor, "asks" if how == "reload" else "before")
    assert await left(supervisor, how)


async def arrived(supervisor: Supervisor, title: str) -> None:
    """Until another document of this title is there."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                if await supervisor.evaluate(f"document.title === '{title}' && window.here !== 1"):
                    return
                await supervisor.call("Page.getNavigationHistory")  # a turn of the browser
            except SupervisorError:
                continue  # between two documents


@pytest.mark.parametrize(("policy", "leaves"), [("auto_accept", True), ("auto_dismiss", False)])
@pytest.mark.parametrize("how", ["reload", "back", "close"])
async def test_policies_answer_before_a_page_is_left(
    start: Start, site: Site, how: Leave, policy: DialogPolicy, leaves: bool
) -> None:
    supervisor = await start("auto", policy)
    await asking_page(supervisor, site)
    if how == "close" and not leaves:
        with pytest.raises(CallInterrupted, match="asked to stay"):
            await leave(supervisor, how)
    else:
        await leave(supervisor, how)
    view = await supervisor.wait_for(lambda v: v if v.recent_dialogs and not v.pending_dialogs else None, WAIT_S)
    (dialog,) = view.recent_dialogs
    assert (dialog.type, dialog.closed_by, dialog.response) == (
        "beforeunload",
        "auto_policy",
        "accept" if leaves else "dismiss",
    )
    if leaves and how != "close":
        await arrived(supervisor, "asks" if how == "reload" else "before")
    assert await left(supervisor, how) is leaves


@natively_or_held
@pytest.mark.parametrize("event", ["pagehide", "visibilitychange"])
@pytest.mark.parametrize("action", ["accept", "dismiss"])
async def test_a_dialog_of_a_page_that_is_being_left_takes_no_answer_and_holds_nothing(
    start: Start, site: Site, way: BridgeChoice, event: str, action: Any
) -> None:
    supervisor = await start(way)
    site.page("/next", "<title>next</title>")
    script = f"<script>addEventListener('{event}', () => localStorage.got = confirm('Really?'))</script>"
    await supervisor.navigate(site.page("/", script))
    done = await supervisor.navigate(site.url("/next"))
    assert done.outcome == "waiting_for_dialog"
    answer = await supervisor.answer_dialog(action)
    assert answer.delivered is (action == "dismiss") and "confirm() returned false" in answer.note
    view = await quiet(supervisor)
    (dialog,) = view.recent_dialogs
    assert (dialog.closed_by, dialog.response, dialog.unanswerable) == ("agent", "dismiss", True)
    await arrived(supervisor, "next")
    assert await supervisor.evaluate("[localStorage.got, history.length]") == ["false", 3]
    assert site.requests.count("/next") == 1, "the page that was on its way arrived, and was not asked for twice"


@pytest.mark.parametrize("policy", ["auto_accept", "auto_dismiss"])
async def test_a_policy_frees_a_page_that_is_being_left(start: Start, site: Site, policy: DialogPolicy) -> None:
    supervisor = await start("auto", policy)
    site.page("/next", "<title>next</title>")
    await supervisor.navigate(site.page("/", "<script>onpagehide = () => confirm('Really?')</script>"))
    done = await supervisor.navigate(site.url("/next"))
    assert (done.outcome, done.title) == ("loaded", "next")
    (dialog,) = supervisor.snapshot().recent_dialogs
    assert (dialog.closed_by, dialog.response, dialog.unanswerable) == ("auto_policy", "dismiss", True)


async def displaced(supervisor: Supervisor, site: Site) -> None:
    """Two native dialogs in one tab: that of an iframe first, then that of its page, which takes its place."""
    site.page("/inner", "<script>setTimeout(() => { got = [confirm('inner')] }, 1)</script>")
    await supervisor.navigate(site.page("/", "<script>kept = 1</script><iframe src='{other}/inner'></iframe>"))
    await pending(supervisor)
    session = supervisor.snapshot().frames[0].session_id
    params = {"expression": "void setTimeout(() => { got = [confirm('outer')] }, 1)"}
    await supervisor.browser.runner.call(session, "Runtime.evaluate", params, timeout=5)
    await supervisor.wait_for(lambda v: v if len(v.recent_dialogs) == 1 and v.pending_dialogs else None, WAIT_S)


async def test_of_two_native_dialogs_in_a_tab_the_second_can_only_be_dismissed(start: Start, site: Site) -> None:
    supervisor = await start("never")
    await displaced(supervisor, site)
    view = supervisor.snapshot()
    assert [(d.message, d.closed_by) for d in view.recent_dialogs] == [("inner", "remote")]
    assert [d.message for d in view.pending_dialogs] == ["outer"]
    answer = await supervisor.answer_dialog("accept")
    assert not answer.delivered and "another dialog took its place" in answer.note
    assert await supervisor.evaluate("[got[0], kept, location.hash]", frame_id="f1") == [False, 1, ""]
    assert await supervisor.evaluate("got", frame_id="f2") == [False]
    assert not supervisor.state.backend_dismisses, "no machine did this"


@pytest.mark.parametrize("end", ["close the tab", "end the task"])
async def test_a_tab_with_a_displaced_dialog_can_be_closed(registry: SupervisorRegistry, site: Site, end: str) -> None:
    registry = SupervisorRegistry(options=registry.options.__class__(bridge="never"))
    supervisor = await registry.get_or_start("task", LocalEndpoint(headless=True))
    witness = await registry.get_or_start("witness", LocalEndpoint(headless=True))
    await displaced(supervisor, site)
    if end == "close the tab":
        assert await supervisor.close_tab() == "t1"
    else:
        await registry.stop("task")
    assert (await witness.navigate(site.page("/", "<title>alive</title>"))).title == "alive"
    await registry.stop_all()


@natively_or_held
async def test_a_dialog_of_an_iframe_that_is_removed_is_lost_and_harms_nobody(
    start: Start, site: Site, way: BridgeChoice
) -> None:
    """A native one of an iframe in a process of its own would crash the browser a moment later."""
    supervisor = await start(way)
    site.page("/inner", "<script>setTimeout(() => confirm('inner'), 1)</script>")
    await supervisor.navigate(site.page("/", "<script>kept = 1</script><iframe src='{other}/inner'></iframe>"))
    await pending(supervisor)
    session = supervisor.snapshot().frames[0].session_id
    params = {"expression": "document.querySelector('iframe').remove()"}
    await supervisor.browser.runner.call(session, "Runtime.evaluate", params, timeout=5)
    view = await quiet(supervisor)
    assert [d.closed_by for d in view.recent_dialogs] == ["lost"]
    with pytest.raises(DialogOpened):
        await supervisor.evaluate("window.got = confirm('still works')")
    assert (await supervisor.answer_dialog("accept")).delivered
    assert await supervisor.evaluate("[got, kept, location.hash]") == [True, 1, ""]
    assert await supervisor.close_tab() == "t1"
    assert supervisor.lost is None


@natively_or_held
async def test_a_dialog_of_an_iframe_that_crashes_is_lost(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    site.page("/inner", "<script>setTimeout(() => confirm('inner'), 1)</script>")
    await supervisor.navigate(site.page("/", "<iframe src='{other}/inner'></iframe>"))
    view = await pending(supervisor)
    with pytest.raises(SupervisorError):
        await supervisor.browser.runner.call(view.frames[1].session_id, "Page.crash", {}, timeout=5)
    view = await quiet(supervisor)
    assert [d.closed_by for d in view.recent_dialogs] == ["lost"]
    with pytest.raises(DialogOpened):
        await supervisor.evaluate("window.got = confirm('still works')", frame_id="f1")
    assert (await supervisor.answer_dialog("accept")).delivered
    assert await supervisor.evaluate("got", frame_id="f1") is True


@natively_or_held
async def test_a_page_that_crashes_takes_its_dialog_along(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => confirm('?'), 1)</script>"))
    view = await pending(supervisor)
    with pytest.raises(TargetCrashed):
        await supervisor.browser.runner.call(view.frames[0].session_id, "Page.crash", {}, timeout=5)
    view = await quiet(supervisor)
    assert [d.closed_by for d in view.recent_dialogs] == ["lost"]
    assert view.tabs[0].crashed


@natively_or_held
async def test_a_navigation_that_takes_a_page_away_ends_its_dialog(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    site.page("/next", "<title>next</title>")
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => confirm('?'), 1)</script>"))
    await pending(supervisor)
    with pytest.raises(DialogOpened, match="not sent"):
        await supervisor.navigate(site.url("/next"))
    await supervisor.call("Page.navigate", {"url": site.url("/next")})  # who knows what they do
    view = await quiet(supervisor)
    assert [d.closed_by for d in view.recent_dialogs] == ["navigation"]
    await arrived(supervisor, "next")


async def test_each_task_of_a_browser_has_the_policy_it_was_started_with(
    registry: SupervisorRegistry, site: Site
) -> None:
    endpoint = LocalEndpoint(headless=True)
    policies: list[DialogPolicy] = ["must_respond", "auto_accept", "auto_dismiss"]
    tasks = [await registry.get_or_start(policy, endpoint, dialog_policy=policy) for policy in policies]
    assert len({task.browser for task in tasks}) == 1
    url = site.page("/", "<script>got = [confirm('?')]</script>")
    outcomes = [(await task.navigate(url)).outcome for task in tasks]
    assert outcomes == ["waiting_for_dialog", "loaded", "loaded"]
    again = await registry.get_or_start("auto_accept", endpoint, dialog_policy="auto_dismiss")
    assert again is tasks[1] and await again.evaluate("confirm('still')") is True
    assert await tasks[2].evaluate("got") == [False]
    assert (await tasks[0].answer_dialog("accept")).delivered
    assert await tasks[0].evaluate("got") == [True]
