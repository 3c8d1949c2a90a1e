"""Frames on a real Chromium: the tree over all processes, and calls that run in the frame they are meant for."""

import asyncio
from typing import Any

import pytest
from fakes.site import Site
from fakes.waits import WAIT_S, Start, frames

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.errors import (
    CallTimeout,
    MethodRefused,
    NavigationFailed,
    TargetClosed,
    TargetCrashed,
    UnknownFrame,
)

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]

NEST = {
    "/": "<script>who='top'</script><iframe name='same' src='/same'></iframe><iframe src='{other}/cross'></iframe>"
    "<iframe srcdoc='<script>who=`srcdoc`</script>'></iframe><iframe></iframe>"
    "<iframe sandbox='allow-scripts' src='data:text/html,<script>who=`data`</script>'></iframe>",
    "/same": "<script>who='same'</script>",
    "/cross": "<script>who='cross'</script><iframe src='{site}/back'></iframe><iframe src='/sibling'></iframe>",
    "/back": "<script>who='back'</script>",
    "/sibling": "<script>who='sibling'</script>",
}


def serve(site: Site, pages: dict[str, str]) -> str:
    for path, text in pages.items():
        site.page(path, text)
    return site.url("/")


async def who(supervisor: Supervisor) -> dict[str, Any]:
    """What ``who`` is in each frame, by the end of its address."""
    found = {}
    for frame in supervisor.snapshot().frames:
        name = "data" if frame.url.startswith("data:") else frame.url.rpartition("/")[2] or "top"
        found[name] = await supervisor.evaluate("window.who", frame_id=frame.frame_id)
    return found


async def test_a_script_runs_in_the_frame_it_is_meant_for_in_every_process(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(serve(site, NEST))
    view = await frames(supervisor, 8)
    assert await who(supervisor) == {
        "top": "top",
        "same": "same",
        "cross": "cross",
        "back": "back",
        "sibling": "sibling",
        "about:srcdoc": "srcdoc",
        "about:blank": None,
        "data": "data",
    }
    tree = view.frame_tree.as_dict()
    assert tree["truncated"] is False and "parent_frame_id" not in tree["top"]
    by_url = {f["url"].rpartition("/")[2]: f for f in tree["children"]}
    assert by_url["same"]["name"] == "same" and by_url["same"]["is_oopif"] is False
    assert by_url["cross"]["is_oopif"] is True and by_url["cross"]["session_id"]
    assert by_url["back"]["parent_frame_id"] == by_url["cross"]["frame_id"]
    assert by_url["sibling"]["is_oopif"] is False


async def test_frames_that_were_there_before_we_attached_are_known(start: Start, site: Site) -> None:
    """The session's own frames come from its tree, those of other processes by attaching to them."""
    supervisor = await start()
    await supervisor.navigate(serve(site, NEST))
    await frames(supervisor, 8)
    view = supervisor.snapshot()
    target = view.tabs[0].target_id
    session = view.frames[0].session_id
    await supervisor.browser.command("Target.detachFromTarget", {"sessionId": session})
    await supervisor.wait_for(lambda v: True if not v.tabs else None, WAIT_S)
    supervisor.browser.adopt(target, supervisor)
    await supervisor.browser.attach(target)
    await frames(supervisor, 8)
    assert (await who(supervisor))["back"] == "back"


async def test_a_frame_that_changes_process_and_comes_back_is_followed(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(
        serve(
            site,
            {
                "/": "<iframe src='/same'></iframe>",
                "/same": "<script>who='same'</script>",
                "/cross": "<script>who='cross'</script>",
            },
        )
    )
    frame = (await frames(supervisor, 2)).frames[1]
    for url, is_oopif in ((site.other("/cross"), True), (site.url("/same"), False), (site.other("/cross"), True)):
        await supervisor.evaluate(f"document.querySelector('iframe').src = {url!r}", frame_id="f1")
        moved = await supervisor.wait_for(
            lambda v, url=url, wanted=is_oopif: next(  # type: ignore[misc]
                (f for f in v.frames if f.frame_id == frame.frame_id and f.url == url and f.is_oopif == wanted), None
            ),
            WAIT_S,
        )
        assert len(supervisor.snapshot().frames) == 2
        # The script runs a moment after the document has come.
        script = "new Promise(r => { const t = () => window.who ? r(who) : setTimeout(t, 5); t() })"
        assert await supervisor.evaluate(script, frame_id=moved.frame_id) == url.rpartition("/")[2]


@pytest.mark.parametrize("host", ["site", "other"])
async def test_a_frame_that_is_removed_leaves_the_tree(supervisor: Supervisor, site: Site, host: str) -> None:
    await supervisor.navigate(serve(site, {"/": f"<iframe src='{{{host}}}/inner'></iframe>", "/inner": "inner"}))
    frame = (await frames(supervisor, 2)).frames[1]
    await supervisor.evaluate("document.querySelector('iframe').remove()", frame_id="f1")
    await frames(supervisor, 1)
    with pytest.raises(UnknownFrame):
        await supervisor.evaluate("1", frame_id=frame.frame_id)


async def test_leaving_a_page_and_coming_back_from_the_cache_restores_its_frames(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(serve(site, NEST | {"/next": "<script>who='next'</script>"}))
    await frames(supervisor, 8)
    await supervisor.navigate(site.url("/next"))
    await frames(supervisor, 1)
    history = await supervisor.call("Page.getNavigationHistory")
    entry = history["entries"][history["currentIndex"] - 1]["id"]
    await supervisor.call("Page.navigateToHistoryEntry", {"entryId": entry})
    await frames(supervisor, 8)
    assert await supervisor.evaluate("who", frame_id="f1") == "top"
    assert (await who(supervisor))["back"] == "back"


async def test_more_frames_than_are_shown_are_counted_and_reachable(supervisor: Supervisor, site: Site) -> None:
    text = "".join(f"<iframe srcdoc='<script>who={n}</script>'></iframe>" for n in range(40))
    await supervisor.navigate(site.page("/", text))
    view = await frames(supervisor, 41)
    tree = view.frame_tree.as_dict()
    assert (len(tree["children"]), tree["truncated"], tree["total"]) == (29, True, 41)
    assert await supervisor.evaluate("who", frame_id=view.frames[-1].short) == 39


async def test_a_crashed_frame_is_marked_and_answers_at_once_that_it_crashed(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(serve(site, {"/": "<iframe src='{other}/inner'></iframe>", "/inner": "inner"}))
    frame = (await frames(supervisor, 2)).frames[1]
    with pytest.raises((TargetCrashed, TargetClosed)):
        await supervisor.call("Page.crash", frame_id=frame.frame_id, timeout=10)
    view = await supervisor.wait_for(lambda v: v if len(v.frames) < 2 or v.frames[1].crashed else None, WAIT_S)
    with pytest.raises((TargetCrashed, UnknownFrame)):
        await supervisor.evaluate("1", frame_id=frame.frame_id)
    assert await supervisor.evaluate("1 + 1", frame_id="f1") == 2
    assert view.selected_tab is not None and not view.selected_tab.crashed


async def test_a_crashed_page_ends_its_calls_and_is_revived_by_a_navigation(supervisor: Supervisor, site: Site) -> None:
    url = site.page("/", "<title>alive</title>")
    await supervisor.navigate(url)
    with pytest.raises(TargetCrashed):
        await supervisor.call("Page.crash", timeout=10)
    with pytest.raises(TargetCrashed):
        await supervisor.evaluate("1")
    tab = supervisor.snapshot().selected_tab
    assert tab is not None and tab.crashed
    assert (await supervisor.navigate(url)).title == "alive"
    assert await supervisor.evaluate("1 + 1") == 2
    tab = supervisor.snapshot().selected_tab
    assert tab is not None and not tab.crashed


async def test_a_method_that_cannot_be_confined_runs_nothing(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(serve(site, {"/": "<iframe src='/inner'></iframe>", "/inner": "<p>inner</p>"}))
    await frames(supervisor, 2)
    with pytest.raises(MethodRefused, match="nothing was run") as raised:
        await supervisor.call("DOM.getDocument", frame_id="f2")
    assert "contentDocument" in raised.value.hint
    tree = await supervisor.call("Accessibility.getFullAXTree", frame_id="f2")
    assert any(node.get("name", {}).get("value") == "inner" for node in tree["nodes"])


async def test_a_navigation_without_response_is_stopped_and_the_tab_stays_usable(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(site.page("/", "<script>who='before'</script>"))
    with pytest.raises(Exception, match="was stopped"):
        await supervisor.navigate(site.hang("/hang"), timeout=0.5)
    assert await supervisor.evaluate("who") == "before"
    assert (await supervisor.navigate(site.url("/"))).outcome == "loaded"


async def test_the_status_and_title_of_a_page_are_told(supervisor: Supervisor, site: Site) -> None:
    site.pages["/gone"] = lambda _: (410, {}, b"<title>Gone</title>")
    done = await supervisor.navigate(site.url("/gone"))
    assert (done.outcome, done.status, done.title) == ("loaded", 410, "Gone")


async def test_the_console_is_kept_by_rings(supervisor: Supervisor, site: Site) -> None:
    script = "<script>for (let i = 0; i < 300; i++) console.log('n' + i); console.error('bad', 7); nope()</script>"
    await supervisor.navigate(site.page("/", script))
    view = await supervisor.wait_for(lambda v: v if len(v.console_errors) >= 2 else None, WAIT_S)
    texts = [entry.text for entry in view.console_errors]
    assert "bad 7" in texts and any("nope is not defined" in text for text in texts)
    assert len(view.console_other) == 200 and view.console_other[-1].text == "n299" and view.console_dropped >= 100


async def test_a_call_beside_a_navigation_without_response_ends_early_and_says_why(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(site.page("/", "before"))
    going = asyncio.create_task(supervisor.navigate(site.hang("/hang"), timeout=20))
    await supervisor.wait_for_state(
        lambda s: next((True for f in s.frames.by_id.values() if f.awaits_response), None), 10
    )
    with pytest.raises(CallTimeout, match="waits for the response of a navigation"):
        await supervisor.evaluate("1", timeout=60)
    await supervisor.call("Page.stopLoading")
    with pytest.raises(NavigationFailed):
        await going
    assert await supervisor.evaluate("document.body.textContent") == "before"
