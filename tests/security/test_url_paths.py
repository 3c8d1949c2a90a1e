"""Every way by which a page or a command can reach an address, on a real browser: none reaches a refused one.

The site answers under two names. One is allowed and one is refused; what counts is what the site was asked for.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.foreign_chromium import ForeignChromium
from fakes.site import Site
from fakes.waits import WAIT_S

from .conftest import Agent, StartAgent

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
ALLOWED = {"allowed_hosts": ("127.0.0.1",)}

PAGE_TRIES = {
    "an image": "<img src='{other}/secret'>",
    "a script": "<script src='{other}/secret'></script>",
    "a style sheet": "<link rel=stylesheet href='{other}/secret'>",
    "an import of a style sheet": "<style>@import '{other}/secret';</style>",
    "a preload": "<link rel=preload as=script href='{other}/secret'>",
    "a prefetch": "<link rel=prefetch href='{other}/secret'>",
    "a video": "<video src='{other}/secret' autoplay></video>",
    "an embedded object": "<object data='{other}/secret'></object>",
    "an embed": "<embed src='{other}/secret'>",
    "a frame": "<iframe src='{other}/secret'></iframe>",
    "a frame in a frame": "<iframe srcdoc=\"<iframe src='{other}/secret'></iframe>\"></iframe>",
    "a frame that is redirected": "<iframe src='/redirect'></iframe>",
    "an image that is redirected": "<img src='/redirect'>",
    "fetch": "<script>fetch('{other}/secret', {mode: 'no-cors'}).catch(() => 0)</script>",
    "fetch that is redirected": "<script>fetch('/redirect', {mode: 'no-cors'}).catch(() => 0)</script>",
    "a synchronous request": "<script>try { const x = new XMLHttpRequest(); x.open('GET', '{other}/secret', false);"
    " x.send() } catch {}</script>",
    "a beacon": "<script>navigator.sendBeacon('{other}/secret', 'x')</script>",
    "an event stream": "<script>new EventSource('{other}/secret')</script>",
    "a web socket": "<script>new WebSocket('{other}/secret'.replace('http', 'ws'))</script>",
    "a worker": "<script>new Worker(URL.createObjectURL(new Blob([\"importScripts('{other}/secret')\"])))</script>",
    "a blob's page": "<script>const f = document.createElement('iframe'); document.documentElement.append(f);"
    " f.src = URL.createObjectURL(new Blob([\"<img src='{other}/secret'>\"], {type: 'text/html'}))</script>",
    "a data: frame": "<iframe src=\"data:text/html,<img src='{other}/secret'>\"></iframe>",
    "a popup": "<script>window.open('{other}/secret')</script>",
    "a popup moved later": "<script>const w = window.open('about:blank'); w.location = '{other}/secret'</script>",
    "a form": "<form id=f method=post action='{other}/secret' target=_blank></form><script>f.submit()</script>",
    "a form in a frame": "<iframe name=n></iframe><form id=f action='{other}/secret' target=n></form>"
    "<script>f.submit()</script>",
    "a download": "<a id=d download href='{other}/secret'></a><script>d.click()</script>",
    "an upload by keepalive": "<script>fetch('{other}/secret', {method: 'POST', keepalive: true, mode: 'no-cors'})"
    ".catch(() => 0)</script>",
}
TOP_TRIES = {
    "a script": "<script>location = '{other}/secret'</script>",
    "a refresh": "<meta http-equiv=refresh content='0;url={other}/secret'>",
    "a form": "<form id=f action='{other}/secret'></form><script>f.submit()</script>",
    "a frame": "<iframe srcdoc=\"<script>top.location = '{other}/secret'</script>\"></iframe>",
}


@pytest.fixture
async def foreign(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[ForeignChromium | None]:
    """None where a test is run on a browser of our own."""
    called = getattr(request.node, "callspec", None)
    if called is not None and called.params.get("where", "attached") != "attached":
        yield None
        return
    made = await ForeignChromium.start(tmp_path)
    yield made
    await made.end()


def attached_to(foreign: ForeignChromium | None) -> dict[str, str]:
    return {} if foreign is None else {"cdp_url": foreign.url}


@pytest.fixture
def tempting(site: Site) -> Site:
    """A site whose ``/secret`` nobody may see under its other name, and that leads there."""
    site.pages["/redirect"] = lambda request: (302, {"Location": site.other("/secret")}, b"")
    site.page("/secret", "<title>secret</title>the secret")
    site.page("/", "<title>start</title>")
    return site


def told(agent: Agent) -> str:
    """What the console says of refusals."""
    return "\n".join(entry.text for entry in agent.supervisor.snapshot().console_errors if "efused" in entry.text)


async def until_told(agent: Agent, count: int = 1) -> None:
    await agent.supervisor.wait_for(lambda _: told(agent).count("efused") >= count or None, WAIT_S)


async def test_nothing_that_a_page_tries_reaches_a_refused_host(agent: StartAgent, tempting: Site) -> None:
    acting = await agent(browser=ALLOWED)
    for number, text in enumerate(PAGE_TRIES.values()):
        tempting.page(f"/try-{number}", text.replace("/secret", f"/secret-{number}"))
    frames = "".join(f"<iframe src='/try-{number}'></iframe>" for number in range(len(PAGE_TRIES)))
    reply = await acting("browser_navigate", url=tempting.page("/all", frames))
    assert not reply.is_error, reply.text
    await until_told(acting)
    # A last request of the page's own, after which all the others have been decided.
    last = "fetch('/last').then(() => new Promise(done => setTimeout(done, 300)))"
    await acting.cdp("Runtime.evaluate", expression=last, awaitPromise=True)
    asked = [path for path in tempting.requests if "secret" in path]
    assert [list(PAGE_TRIES)[int(path.rpartition("-")[2].split("?")[0])] for path in asked] == []
    assert "/last" in tempting.requests
    assert "browser.allowed_hosts" in told(acting)


async def test_those_tries_do_reach_a_host_that_is_allowed(agent: StartAgent, tempting: Site) -> None:
    """Otherwise the test above would say nothing."""
    acting = await agent(browser={"allowed_hosts": ("127.0.0.1", "localhost")})
    for number, text in enumerate(PAGE_TRIES.values()):
        tempting.page(f"/try-{number}", text.replace("/secret", f"/secret-{number}"))
    frames = "".join(f"<iframe src='/try-{number}'></iframe>" for number in range(len(PAGE_TRIES)))
    await acting("browser_navigate", url=tempting.page("/all", frames))
    await acting.cdp("Runtime.evaluate", expression="new Promise(done => setTimeout(done, 1000))", awaitPromise=True)
    reached = {
        list(PAGE_TRIES)[int(path.rpartition("-")[2].split("?")[0])]
        for path in tempting.requests
        if path.startswith("/secret-")
    }
    # Popups of frames without a click, and what is redirected to the plain address, are not counted here.
    assert len(reached) >= len(PAGE_TRIES) - 8, set(PAGE_TRIES) - reached
    assert told(acting) == ""


@pytest.mark.parametrize("where", ["launched", "attached"])
@pytest.mark.parametrize("way", TOP_TRIES)
async def test_a_page_that_goes_to_a_refused_host_by_itself_gets_nowhere(
    agent: StartAgent, tempting: Site, way: str, where: str, foreign: ForeignChromium | None
) -> None:
    attached = attached_to(foreign)
    acting = await agent(browser={**ALLOWED, **attached})
    await acting("browser_navigate", url=tempting.page("/go", TOP_TRIES[way]))
    await until_told(acting)
    seen = await acting("browser_snapshot")
    assert "the secret" not in seen.text
    assert "secret" not in {tab.title for tab in acting.supervisor.snapshot().tabs}
    if where == "launched":
        assert "/secret" not in tempting.requests


@pytest.mark.parametrize("where", ["launched", "attached"])
async def test_a_popup_of_a_refused_host_shows_nothing(
    agent: StartAgent, tempting: Site, where: str, foreign: ForeignChromium | None
) -> None:
    attached = attached_to(foreign)
    acting = await agent(browser={**ALLOWED, **attached})
    await acting("browser_navigate", url=tempting.url())
    for popup in (f"window.open('{tempting.other('/secret')}')", "window.open('/redirect')"):
        await acting.cdp("Runtime.evaluate", expression=popup, userGesture=True)
    await acting.supervisor.wait_for(lambda view: True if len(view.tabs) == 3 else None, WAIT_S)
    await until_told(acting)
    await acting.supervisor.wait_for(
        lambda view: True if all("/secret" not in tab.url or where == "launched" for tab in view.tabs) else None, WAIT_S
    )
    for tab in acting.supervisor.snapshot().tabs:
        acting.supervisor.select_tab(tab.tab_id)
        assert "the secret" not in (await acting("browser_snapshot")).text
    if where == "launched":
        assert "/secret" not in tempting.requests


@pytest.mark.parametrize("where", ["launched", "launched with a kept profile", "attached"])
async def test_redirects_to_a_refused_host_are_an_error_that_says_so(
    agent: StartAgent, tempting: Site, where: str, foreign: ForeignChromium | None, tmp_path: Path
) -> None:
    attached = attached_to(foreign)
    if "kept" in where:
        attached = {"user_data_dir": str(tmp_path / "kept")}
    acting = await agent(browser={**ALLOWED, **attached})
    reply = await acting("browser_navigate", url=tempting.url("/redirect"))
    assert reply.is_error and reply.structured["error"]["code"] == "url_refused"
    assert "localhost is not in browser.allowed_hosts" in reply.text
    assert "the secret" not in (await acting("browser_snapshot")).text


@pytest.mark.parametrize("where", ["launched", "attached"])
async def test_no_raw_command_opens_what_the_tools_would_refuse(
    agent: StartAgent, tempting: Site, where: str, foreign: ForeignChromium | None
) -> None:
    attached = attached_to(foreign)
    acting = await agent(browser={**ALLOWED, **attached})
    await acting("browser_navigate", url=tempting.url())
    frame_id = acting.supervisor.top_frame_id()
    options = {"disableCache": True, "includeCredentials": False}
    for url in (tempting.other("/secret"), "file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version"):
        for method, params in (
            ("Page.navigate", {"url": url}),
            ("Target.createTarget", {"url": url}),
            ("Network.loadNetworkResource", {"url": url, "frameId": frame_id, "options": options}),
            ("Fetch.continueRequest", {"requestId": "1", "url": url}),
        ):
            reply = await acting.cdp(method, **params)
            assert reply.is_error and reply.structured["error"]["code"] == "url_refused", (method, url, reply.text)
    reply = await acting("browser_navigate", url="view-source:file:///etc/passwd")
    assert reply.structured["error"]["code"] == "url_refused"
    assert "/secret" not in tempting.requests


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "devtools://x"]
)
async def test_scripts_reach_no_scheme_that_is_refused(agent: StartAgent, tempting: Site, url: str) -> None:
    acting = await agent()
    await acting("browser_navigate", url=tempting.url())
    tries = (
        f"location = {json.dumps(url)}",
        f"window.open({json.dumps(url)})",
        f"document.body.append(Object.assign(document.createElement('iframe'), {{src: {json.dumps(url)}}}))",
        f"fetch({json.dumps(url)}).then(r => r.text())",
        "const w = window.open('about:blank'); w.location = " + json.dumps(url),
    )
    for expression in tries:
        await acting.cdp("Runtime.evaluate", expression=expression, awaitPromise=True, userGesture=True)
    seen = (await acting("browser_snapshot", frame_id="f1")).text
    assert "root:" not in seen
    for tab in acting.supervisor.snapshot().tabs:
        assert tab.url in (tempting.url(), "about:blank", "", "about:blank#blocked"), tab.url
    for frame in acting.supervisor.snapshot().frames:
        assert not frame.url.startswith((url.partition(":")[0] + ":",)), frame.url


async def test_history_leads_to_no_address_that_has_been_refused_since(
    agent: StartAgent, tempting: Site, foreign: ForeignChromium | None
) -> None:
    """In somebody else's browser a tab may have been anywhere before it became the task's."""
    before = await agent(browser=attached_to(foreign))
    await before("browser_navigate", url=tempting.other("/secret"))
    await before("browser_navigate", url=tempting.url())
    target_id = before.supervisor.state.targets.selected
    acting = await agent(browser={**ALLOWED, **attached_to(foreign)})
    await acting("browser_navigate", url=tempting.url())
    await acting.supervisor.follow_tab(target_id)
    history = (await acting.cdp("Page.getNavigationHistory")).structured["result"]
    entry = next(entry["id"] for entry in history["entries"] if entry["url"] == tempting.other("/secret"))
    reply = await acting.cdp("Page.navigateToHistoryEntry", entryId=entry)
    assert reply.is_error and reply.structured["error"]["code"] == "url_refused"
    await acting.cdp("Runtime.evaluate", expression="history.back()")
    await until_told(acting)
    assert "the secret" not in (await acting("browser_snapshot")).text


async def test_metadata_addresses_are_refused_in_frames_whatever_the_settings(agent: StartAgent, site: Site) -> None:
    acting = await agent()
    hosts = ("169.254.169.254", "[fe80::1]", "0xa9fea9fe", "[::ffff:169.254.169.254]", "metadata.google.internal")
    text = "".join(f"<iframe src='http://{host}/latest/meta-data/'></iframe>" for host in hosts)
    reply = await acting("browser_navigate", url=site.page("/frames", text))
    assert not reply.is_error
    await until_told(acting, 4)
    for name in ("169.254.169.254", "fe80::1", "::ffff:a9fe:a9fe", "metadata.google.internal"):
        assert f"a connection to {name}:80" in told(acting)
    assert acting.supervisor.gate.granted == 0


async def test_udp_passes_no_policy_by(agent: StartAgent, site: Site) -> None:
    """WebRTC goes past proxies: with a policy that hosts matter to, only relayed connections are left."""
    expression = """new Promise(done => {
        const c = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:%d'}]});
        c.createDataChannel('x');
        c.onicegatheringstatechange = () => c.iceGatheringState === 'complete' && done('complete');
        c.createOffer().then(offer => c.setLocalDescription(offer));
        setTimeout(() => done('time'), 8000);
    })"""
    reached = {}
    for name, browser in (("default", {}), ("strict", ALLOWED)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
            stun.bind(("127.0.0.1", 0))
            stun.setblocking(False)
            acting = await agent(browser=browser)
            await acting("browser_navigate", url=site.page("/", "x"))
            script = expression % stun.getsockname()[1]
            await acting.cdp("Runtime.evaluate", expression=script, awaitPromise=True)
            try:
                reached[name] = bool(stun.recv(100))
            except BlockingIOError:
                reached[name] = False
    assert reached == {"default": True, "strict": False}


async def test_what_the_browser_itself_asks_for_gets_no_answer(agent: StartAgent, site: Site) -> None:
    """Update checks and sign-in services of the vendor: a browser of ours has a gate for them that opens nothing."""
    acting = await agent()
    await acting("browser_navigate", url=site.page("/", "x"))
    gates = acting.supervisor.browser._gates
    assert gates._browsers.granted == 0
    assert gates._browsers is not acting.supervisor.gate
    await asyncio.sleep(0)
