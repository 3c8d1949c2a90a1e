"""Dialogs through a hosted backend that dismisses native ones by machine, and its losses: the bridges lose no race."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fakes.browserbase_api import BrowserbaseApi
from fakes.hosted_proxy import HostedProxy, hosted_chromium
from fakes.pages import ASKS_BEFORE_LEAVING, gesture
from fakes.site import Site
from fakes.waits import WAIT_S, frames, pending
from playwright.async_api import async_playwright

from watchkeeper.supervisor import CdpEndpoint, DialogPolicy, Supervisor, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.backends import BrowserbaseEndpoint
from watchkeeper.supervisor.errors import ConnectionLost, DialogOpened, EndpointUnreachable
from watchkeeper.supervisor.options import BridgeChoice

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
GUARD_S = 60.0
bridged = pytest.mark.parametrize("way", ["debugger", "xhr"])
Attach = Callable[..., Awaitable[Supervisor]]


@pytest.fixture
async def hosted() -> AsyncIterator[HostedProxy]:
    async with hosted_chromium() as proxy:
        yield proxy


@pytest.fixture
async def attach(hosted: HostedProxy) -> AsyncIterator[Attach]:
    """A supervisor on the hosted browser: ``await attach("xhr", "auto_accept")``."""
    made: list[SupervisorRegistry] = []

    async def attached(
        bridge: BridgeChoice = "auto", policy: DialogPolicy = "must_respond", **options: Any
    ) -> Supervisor:
        registry = SupervisorRegistry(options=SupervisorOptions(bridge=bridge, **options))
        made.append(registry)
        return await registry.get_or_start("task", CdpEndpoint(hosted.url), dialog_policy=policy)

    yield attached
    for registry in made:
        await asyncio.wait_for(registry.stop_all(), GUARD_S)


async def answers(supervisor: Supervisor, frame: str) -> list[Any]:
    """What the three functions return in a frame when they are answered; nobody else may be faster."""
    script = "window.got = []; got.push(alert('a')); got.push(confirm('b')); got.push(prompt('c', 'd'))"
    with pytest.raises(DialogOpened):
        await supervisor.evaluate(script, frame_id=frame)
    for kind, text in (("alert", None), ("confirm", None), ("prompt", "Ada")):
        view = await supervisor.wait_for(
            lambda v, kind=kind: v if v.pending_dialogs and v.pending_dialogs[0].type == kind else None,  # type: ignore[misc]
            WAIT_S,
        )
        assert view.pending_dialogs[0].via != "native"
        assert (await supervisor.answer_dialog("accept", text)).delivered
    got: list[Any] = await supervisor.evaluate("got", frame_id=frame)
    return got


@bridged
async def test_every_dialog_gets_the_agents_answer_although_native_ones_would_be_dismissed(
    attach: Attach, hosted: HostedProxy, site: Site, way: BridgeChoice
) -> None:
    hosted.latency_s = 0.02
    supervisor = await attach(way)
    site.page("/inner", "inner")
    await supervisor.navigate(site.page("/", "<iframe src='{other}/inner'></iframe>"))
    await frames(supervisor, 2)
    for frame in ("f1", "f2"):
        assert await answers(supervisor, frame) == [None, True, "Ada"]
    assert hosted.dismissed == []


async def test_without_a_bridge_it_is_told_that_somebody_else_was_faster(attach: Attach, site: Site) -> None:
    supervisor = await attach("never")
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => { got = confirm('?') }, 1)</script>"))
    view = await supervisor.wait_for(lambda v: v if v.recent_dialogs else None, WAIT_S)
    assert [(d.closed_by, d.response) for d in view.recent_dialogs] == [("remote", "dismiss")]
    assert await supervisor.evaluate("got") is False


@pytest.mark.parametrize(("action", "arrives"), [("accept", True), ("dismiss", False)])
async def test_a_page_that_asks_before_it_is_left_asks_the_agent(
    attach: Attach, hosted: HostedProxy, site: Site, action: Any, arrives: bool
) -> None:
    """The first time the service answers; that is noticed, and the navigation is tried again through the bridge."""
    supervisor = await attach("debugger")
    site.page("/next", "<title>next</title>")
    await supervisor.navigate(site.page("/", "<title>first</title>" + ASKS_BEFORE_LEAVING))
    await gesture(supervisor)
    done = await supervisor.navigate(site.url("/next"))
    assert done.outcome == "waiting_for_dialog"
    (dialog,) = supervisor.snapshot().pending_dialogs
    assert (dialog.type, dialog.via) == ("beforeunload", "debugger")
    assert await supervisor.evaluate("document.title") == "first", "everything answers meanwhile"
    answer = await supervisor.answer_dialog(action)
    assert answer.delivered and ("left" if arrives else "stays") in answer.note
    url = site.url("/next" if arrives else "/")
    await supervisor.wait_for(lambda v: v if v.selected_tab and v.selected_tab.url == url else None, WAIT_S)
    # The address is known a moment before the document has its title.
    loaded = (
        "new Promise(r => document.readyState == 'complete' ? r(document.title) : onload = () => r(document.title))"
    )
    assert await supervisor.evaluate(loaded) == ("next" if arrives else "first")
    assert supervisor.snapshot().pending_dialogs == ()


@pytest.mark.parametrize(("policy", "outcome"), [("auto_accept", "loaded"), ("auto_dismiss", "stayed")])
async def test_policies_hold_before_a_page_is_left(attach: Attach, site: Site, policy: Any, outcome: str) -> None:
    supervisor = await attach("debugger", policy)
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
    await gesture(supervisor)
    for _ in range(2):
        done = await supervisor.navigate(site.url("/next"))
    assert done.outcome == outcome


async def test_where_nobody_can_be_asked_the_page_is_left_and_that_is_told(attach: Attach, site: Site) -> None:
    supervisor = await attach("xhr")
    site.page("/next", "next")
    for time in ("first", "second"):
        await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
        await gesture(supervisor)
        done = await supervisor.navigate(site.url("/next"))
        assert done.outcome == "loaded", time
        assert "would have asked" in done.note, time


async def test_a_page_that_was_never_touched_is_left_without_a_question(attach: Attach, site: Site) -> None:
    supervisor = await attach("debugger")
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
    assert (await supervisor.navigate(site.url("/next"))).outcome == "loaded"
    assert supervisor.snapshot().recent_dialogs == ()


async def test_a_page_that_does_not_want_to_stay_is_not_asked_and_sees_its_event(
    hosted: HostedProxy, site: Site
) -> None:
    """On a backend that is known to dismiss, the bridge judges first what the page's own listeners want."""
    with BrowserbaseApi(key="key", connect_url=lambda _: hosted.url) as api, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROWSERBASE_API_KEY", "key")
        registry = SupervisorRegistry()
        supervisor = await registry.get_or_start("task", BrowserbaseEndpoint(api_url=api.url))
        site.page("/next", "<script>seen = sessionStorage.seen</script>")
        listener = "<script>onbeforeunload = e => { sessionStorage.seen = e.constructor.name }</script>"
        await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING + listener))
        await gesture(supervisor)
        assert (await supervisor.navigate(site.url("/next"))).outcome == "loaded"
        assert await supervisor.evaluate("seen") == "BeforeUnloadEvent"
        await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
        await gesture(supervisor)
        done = await supervisor.navigate(site.url("/next"))
        assert (done.outcome, done.dialogs[0].via) == ("waiting_for_dialog", "debugger")
        assert (await supervisor.answer_dialog("accept")).delivered
        await supervisor.wait_for(
            lambda v: v if v.selected_tab and v.selected_tab.url == site.url("/next") else None, WAIT_S
        )
        assert hosted.dismissed == [], "not once was the service faster"
        await registry.stop_all()
        assert api.running == set()


async def test_a_half_open_connection_is_noticed_and_the_page_is_found_again(
    attach: Attach, hosted: HostedProxy, site: Site
) -> None:
    supervisor = await attach()
    await supervisor.navigate(site.page("/", "<script>kept = 1</script>"))
    waiting = asyncio.create_task(supervisor.evaluate("new Promise(() => {})"))
    await asyncio.sleep(0)
    hosted.stall()
    with pytest.raises(ConnectionLost, match="ping"):
        await asyncio.wait_for(waiting, WAIT_S)
    await supervisor.wait_for(lambda v: v if v.connected and v.frames else None, WAIT_S)
    assert await supervisor.evaluate("kept") == 1


async def test_a_drop_while_a_dialog_is_open_loses_the_dialog_and_nothing_else(
    attach: Attach, hosted: HostedProxy, site: Site
) -> None:
    supervisor = await attach()
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => { got = [confirm('?')] }, 1)</script>"))
    await pending(supervisor)
    hosted.drop()
    view = await supervisor.wait_for(lambda v: v if v.recent_dialogs else None, WAIT_S)
    assert [d.closed_by for d in view.recent_dialogs] == ["lost"]
    await supervisor.wait_for(lambda v: v if v.connected and v.frames else None, WAIT_S)
    assert await supervisor.evaluate("got") == [False]
    assert await answers(supervisor, "f1") == [None, True, "Ada"]


async def test_an_expired_signature_is_told_and_a_renewed_one_is_another_endpoint(
    attach: Attach, hosted: HostedProxy, site: Site
) -> None:
    supervisor = await attach(launch_timeout_s=2)
    await supervisor.navigate(site.page("/", ""))
    endpoint = supervisor.endpoint
    waiting = asyncio.create_task(supervisor.evaluate("new Promise(() => {})"))
    await asyncio.sleep(0)
    await hosted.expire()
    with pytest.raises(ConnectionLost, match="session expired"):
        await asyncio.wait_for(waiting, WAIT_S)
    hosted.renew()
    registry = SupervisorRegistry(options=SupervisorOptions(launch_timeout_s=2))
    with pytest.raises(EndpointUnreachable, match="status 401"):
        await registry.get_or_start("task", endpoint)
    again = await registry.get_or_start("task", CdpEndpoint(hosted.url))
    assert (await again.navigate(site.url("/"))).outcome == "loaded"
    await registry.stop_all()


async def test_beside_playwright_in_the_same_browser_the_bridge_answers(hosted: HostedProxy, site: Site) -> None:
    """Playwright dismisses native dialogs of every page that it sees, as soon as they open."""
    registry = SupervisorRegistry()
    supervisor = await registry.get_or_start("task", CdpEndpoint(hosted.url))
    await supervisor.navigate(site.page("/", "<title>T</title>"))
    async with async_playwright() as peer:
        other = await peer.chromium.connect_over_cdp(hosted.url)
        page = next(p for context in other.contexts for p in context.pages if p.url == site.url("/"))
        assert await answers(supervisor, "f1") == [None, True, "Ada"]
        assert await page.evaluate("got") == [None, True, "Ada"]
        await other.close()
    await registry.stop_all()
