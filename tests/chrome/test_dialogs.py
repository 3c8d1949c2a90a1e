"""Dialogs of every kind and source on a real Chromium, by each way in which they can reach us."""

import asyncio
import contextlib
from typing import Any

import pytest
from fakes.pages import ASKS_BEFORE_LEAVING, gesture
from fakes.site import Site
from fakes.waits import Start, frames, pending, quiet

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.errors import DialogError, DialogOpened, NoDialogOpen
from watchkeeper.supervisor.options import BridgeChoice

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
WAYS: list[BridgeChoice] = ["debugger", "xhr", "never"]
every_way = pytest.mark.parametrize("way", WAYS)

SOURCES = {
    "top": "",
    "same-origin": "<iframe src='{site}/inner'></iframe>",
    "srcdoc": "<iframe srcdoc='inner'></iframe>",
    "blank": "<iframe></iframe>",
    "data": "<iframe src='data:text/html,inner'></iframe>",
    "sandboxed": "<iframe sandbox='allow-scripts allow-modals' src='{site}/inner'></iframe>",
    "cross-origin": "<iframe src='{other}/inner'></iframe>",
    "nested cross-origin": "<iframe src='{other}/nest'></iframe>",
}


async def opened(supervisor: Supervisor, script: str, frame: str = "f1") -> None:
    """Run a script that opens a dialog; the call ends with the dialog."""
    with pytest.raises(DialogOpened):
        await supervisor.evaluate(script, frame_id=frame)


@every_way
@pytest.mark.parametrize(
    ("script", "action", "text", "expected"),
    [
        ("alert('Hi')", "accept", None, None),
        ("confirm('Sure?')", "accept", None, True),
        ("confirm('Sure?')", "dismiss", None, False),
        ("prompt('Name?', 'def')", "accept", "Ada", "Ada"),
        ("prompt('Name?', 'def')", "accept", None, "def"),
        ("prompt('Name?', 'def')", "accept", "", ""),
        ("prompt('Name?', 'def')", "dismiss", None, None),
    ],
)
async def test_the_page_gets_what_was_answered(
    start: Start, site: Site, way: BridgeChoice, script: str, action: Any, text: str | None, expected: Any
) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<title>t</title>"))
    await opened(supervisor, f"window.got = [{script}]")
    (dialog,) = supervisor.snapshot().pending_dialogs
    assert dialog.via == ("native" if way == "never" else way)
    answer = await supervisor.answer_dialog(action, text)
    assert answer.delivered, answer.note
    assert await supervisor.evaluate("window.got[0]") == expected
    closed = supervisor.snapshot().recent_dialogs[-1]
    assert (closed.closed_by, closed.response) == ("agent", action)


@every_way
@pytest.mark.parametrize("source", SOURCES)
async def test_a_dialog_of_any_frame_names_its_frame_and_can_be_answered(
    start: Start, site: Site, way: BridgeChoice, source: str
) -> None:
    supervisor = await start(way)
    site.page("/inner", "inner")
    site.page("/nest", "<iframe src='{site}/inner'></iframe>")
    await supervisor.navigate(site.page("/", SOURCES[source]))
    count = {"top": 1, "nested cross-origin": 3}.get(source, 2)
    view = await supervisor.wait_for(lambda v: v if len(v.frames) == count else None, 10)
    frame = view.frames[-1]
    await opened(supervisor, "window.got = confirm('From ' + 1)", frame.frame_id)
    (dialog,) = supervisor.snapshot().pending_dialogs
    # A request of an empty document is made by its parent: the one case in which the bridge cannot name the frame.
    named = view.frames[0] if (way, source) == ("xhr", "blank") else frame
    assert (dialog.message, dialog.frame_id, dialog.tab_id) == ("From 1", named.frame_id, "t1")
    assert (await supervisor.answer_dialog("accept", dialog_id=dialog.id)).delivered
    assert await supervisor.evaluate("window.got", frame_id=frame.frame_id) is True


@every_way
async def test_a_frame_without_allow_modals_stays_silent(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<iframe sandbox='allow-scripts' srcdoc='inner'></iframe>"))
    view = await frames(supervisor, 2)
    script = "[alert('a'), confirm('b'), prompt('c', 'd')]"
    answers = await supervisor.evaluate(script, frame_id=view.frames[1].frame_id)
    assert answers == [None, False, None]
    assert supervisor.snapshot().recent_dialogs == ()


@every_way
async def test_a_dialog_during_load_ends_the_navigation_with_its_name(
    start: Start, site: Site, way: BridgeChoice
) -> None:
    supervisor = await start(way)
    done = await supervisor.navigate(site.page("/", "<script>got = prompt('Early?', 'x')</script><p>rest</p>"))
    assert (done.outcome, [d.message for d in done.dialogs]) == ("waiting_for_dialog", ["Early?"])
    assert (await supervisor.answer_dialog("accept", "late")).delivered
    assert await supervisor.evaluate("got") == "late"
    assert await supervisor.evaluate("document.querySelector('p').textContent") == "rest"


@every_way
async def test_a_dialog_with_no_call_in_flight_is_seen(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => { got = confirm('Later') }, 50)</script>"))
    view = await pending(supervisor)
    assert view.pending_dialogs[0].message == "Later"
    assert (await supervisor.answer_dialog("accept")).delivered
    assert await supervisor.evaluate("got") is True


@every_way
async def test_a_dialog_of_a_popup_names_its_tab_and_holds_no_other_site(
    start: Start, site: Site, way: BridgeChoice
) -> None:
    supervisor = await start(way)
    site.page("/popup", "<script>setTimeout(() => { got = confirm('Popup') }, 50)</script>")
    await supervisor.navigate(site.page("/", "opener"))
    await supervisor.evaluate(f"void window.open('{site.other('/popup')}', '_blank')")
    view = await pending(supervisor)
    assert (view.pending_dialogs[0].tab_id, len(view.tabs)) == ("t2", 2)
    assert view.selected_tab is not None and view.selected_tab.tab_id == "t1"
    assert await supervisor.evaluate("1 + 1") == 2
    assert (await supervisor.answer_dialog("dismiss")).delivered


@every_way
async def test_a_tab_that_waits_behind_its_popups_dialog_says_so(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    site.page("/popup", "<script>got = confirm('Popup')</script>")
    await supervisor.navigate(site.page("/", "opener"))
    with contextlib.suppress(DialogOpened):  # the popup's dialog may open before this call has its answer
        await supervisor.evaluate("void window.open('/popup', '_blank')")
    await pending(supervisor)
    with pytest.raises(DialogOpened) as raised:  # both are of one site, and so in one process
        await supervisor.evaluate("1 + 1")
    assert raised.value.dialogs[0].tab_id == "t2"
    assert (await supervisor.answer_dialog("accept")).delivered
    assert await supervisor.evaluate("1 + 1") == 2


@every_way
@pytest.mark.parametrize(("policy", "expected"), [("auto_accept", [True, "def"]), ("auto_dismiss", [False, None])])
async def test_a_policy_answers_by_itself_and_tells(
    start: Start, site: Site, way: BridgeChoice, policy: Any, expected: list[Any]
) -> None:
    supervisor = await start(way, policy)
    await supervisor.navigate(site.page("/", ""))
    assert await supervisor.evaluate("[confirm('a'), prompt('b', 'def')]") == expected
    assert [d.closed_by for d in supervisor.snapshot().recent_dialogs] == ["auto_policy", "auto_policy"]


@every_way
async def test_a_loop_of_a_thousand_dialogs_ends(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way, "auto_accept")
    await supervisor.navigate(site.page("/", ""))
    script = "let n = 0; for (let i = 0; i < 1000; i++) n += confirm('x' + i); n"
    assert await supervisor.evaluate(script, timeout=50) == 1000
    assert [d.message for d in supervisor.snapshot().recent_dialogs][-1] == "x999"


@every_way
async def test_the_watchdog_ends_what_nobody_answers(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way, dialog_timeout_s=0.3)
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => { got = confirm('?') }, 1)</script>"))
    await pending(supervisor)
    view = await quiet(supervisor)
    assert view.recent_dialogs[-1].closed_by == "watchdog"
    assert await supervisor.evaluate("got") is False
    with pytest.raises(NoDialogOpen, match="closed by watchdog"):
        await supervisor.answer_dialog("accept")


@pytest.mark.parametrize("way", ["debugger", "xhr"])
async def test_bridged_functions_keep_the_semantics_of_the_web(start: Start, site: Site, way: BridgeChoice) -> None:
    native = await start("never", "auto_accept")
    bridged = await start(way, "auto_accept")
    script = """(() => {
      const tried = (f) => { try { return [f()] } catch (e) { return e.constructor.name } };
      return [
        alert.name, alert.length, confirm.length, prompt.length, typeof alert.prototype,
        JSON.stringify(Object.getOwnPropertyDescriptor(window, 'alert')),
        tried(() => new alert('x')), tried(() => alert.call({}, 'x')), tried(() => confirm(Symbol('s'))),
        tried(() => alert()), tried(() => alert(undefined)), tried(() => confirm()), tried(() => confirm(undefined)),
        tried(() => prompt()), tried(() => prompt(undefined, undefined)), tried(() => prompt(null, 0)),
        tried(() => confirm({toString() { return 'object' }})), tried(() => alert([1, [2]])),
        tried(() => confirm.call(undefined, 'u')), tried(() => (0, prompt)('p', 'q'.repeat(9000)).length),
        tried(() => confirm('m'.repeat(20000))),
      ];
    })()"""
    results = []
    for supervisor in (native, bridged):
        await supervisor.navigate(site.page("/", ""))
        got = await supervisor.evaluate(script)
        told = [(d.type, d.message, d.default_prompt) for d in supervisor.snapshot().recent_dialogs]
        results.append((got, told))
    assert results[1][0] == results[0][0]
    assert [t for t in results[1][1] if len(t[1]) < 9000] == [t for t in results[0][1] if len(t[1]) < 9000]


@pytest.mark.parametrize("way", ["debugger", "xhr"])
async def test_a_page_that_breaks_the_builtins_does_not_break_its_dialogs(
    start: Start, site: Site, way: BridgeChoice
) -> None:
    supervisor = await start(way, "auto_accept")
    hostile = """<script>
      JSON.stringify = JSON.parse = Reflect.apply = Object.defineProperty = () => { throw new Error('broken') };
      Object.prototype.toJSON = String.prototype.toJSON = () => 'forged';
      window.XMLHttpRequest = class {}; Array.prototype[Symbol.iterator] = undefined;
    </script>"""
    await supervisor.navigate(site.page("/", hostile))
    assert await supervisor.evaluate("prompt('real', 'answer')") == "answer"
    assert supervisor.snapshot().recent_dialogs[-1].message == "real"


async def test_lone_surrogates_reach_the_page_whole(start: Start, site: Site) -> None:
    supervisor = await start("debugger")
    await supervisor.navigate(site.page("/", ""))
    await opened(supervisor, "window.got = prompt('a\\ud800b')")
    assert supervisor.snapshot().pending_dialogs[0].message == "a\ud800b"
    await supervisor.answer_dialog("accept", "x\udc00y")
    assert await supervisor.evaluate("[...got].map(c => c.charCodeAt(0))") == [0x78, 0xDC00, 0x79]


async def test_beside_a_held_page_everything_answers(start: Start, site: Site) -> None:
    supervisor = await start("debugger")
    site.page("/inner", "<button>inner</button>")
    await supervisor.navigate(site.page("/", "<title>T</title><iframe src='{other}/inner'></iframe>"))
    await frames(supervisor, 2)
    await opened(supervisor, "confirm('held')")
    assert await supervisor.evaluate("document.title") == "T"
    assert await supervisor.evaluate("document.body.innerText", frame_id="f2") == "inner"
    assert (await supervisor.call("Accessibility.getFullAXTree"))["nodes"]
    assert (await supervisor.call("Page.captureScreenshot"))["data"]
    assert await supervisor.evaluate("Promise.resolve(1)") == {}, "no promise settles now, and none is waited for"
    with pytest.raises(DialogOpened, match="not sent"):
        await supervisor.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 1, "y": 1})
    assert (await supervisor.answer_dialog("accept")).delivered


async def test_two_dialogs_at_once_are_both_held_and_both_answerable(start: Start, site: Site) -> None:
    supervisor = await start("debugger")
    site.page("/inner", "<script>setTimeout(() => { got = confirm('B') }, 10)</script>")
    text = "<iframe src='{other}/inner'></iframe><script>setTimeout(() => { got = confirm('A') }, 10)</script>"
    await supervisor.navigate(site.page("/", text))
    view = await pending(supervisor, 2)
    ids = {d.message: d.id for d in view.pending_dialogs}
    with pytest.raises(DialogError, match="2 dialogs are open"):
        await supervisor.answer_dialog("accept")
    assert (await supervisor.answer_dialog("accept", dialog_id=ids["B"])).delivered
    assert (await supervisor.answer_dialog("dismiss", dialog_id=ids["A"])).delivered
    assert await supervisor.evaluate("got", frame_id="f1") is False
    assert await supervisor.evaluate("got", frame_id="f2") is True


async def test_a_pages_own_debugger_statements_hold_nobody(start: Start, site: Site) -> None:
    supervisor = await start("debugger")
    await supervisor.navigate(site.page("/", "<script>for (let i = 0; i < 50; i++) debugger; done = 1</script>"))
    assert await supervisor.evaluate("debugger; done") == 1
    forged = "function watchkeeperQuestion() { const x = 1; debugger; return 'went on' } watchkeeperQuestion()"
    assert await supervisor.evaluate(forged) == "went on"
    assert supervisor.snapshot().recent_dialogs == ()


async def test_a_request_to_the_bridges_host_without_the_nonce_is_no_dialog(start: Start, site: Site) -> None:
    supervisor = await start("xhr")
    await supervisor.navigate(site.page("/", ""))
    body = '["confirm","forged","","http://bank.test/"]'
    script = (
        f"fetch('https://watchkeeper-dialog-bridge.invalid/', {{method: 'POST', body: {body!r}}}).catch(() => 'no')"
    )
    assert await supervisor.evaluate(script) == "no"
    assert supervisor.snapshot().recent_dialogs == () and supervisor.snapshot().pending_dialogs == ()


@every_way
async def test_the_answer_of_another_client_is_told_as_remote(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => { got = confirm('?') }, 1)</script>"))
    view = await pending(supervisor)
    session = view.frames[0].session_id
    runner = supervisor.browser.runner
    if way == "never":
        await runner.call(session, "Page.handleJavaScriptDialog", {"accept": True}, timeout=20)
    elif way == "debugger":
        await runner.call(session, "Debugger.resume", {}, timeout=20)
    else:
        return  # a request that Fetch holds can be answered by nobody else
    view = await quiet(supervisor)
    assert view.recent_dialogs[-1].closed_by == "remote"
    # The page goes on a moment after it was let go.
    script = "new Promise(r => { const look = () => 'got' in window ? r(got) : setTimeout(look, 5); look() })"
    assert await supervisor.evaluate(script) is (way == "never")


@pytest.mark.parametrize("way", ["debugger", "never"])
@pytest.mark.parametrize(("action", "where"), [("accept", "/next"), ("dismiss", "/")])
async def test_a_page_that_asks_to_stay_is_answered_like_any_dialog(
    start: Start, site: Site, way: BridgeChoice, action: Any, where: str
) -> None:
    supervisor = await start(way)
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
    await gesture(supervisor)
    done = await supervisor.navigate(site.url("/next"))
    assert (done.outcome, done.dialogs[0].type) == ("waiting_for_dialog", "beforeunload")
    answer = await supervisor.answer_dialog(action)
    assert answer.delivered and ("left" if action == "accept" else "stays") in answer.note
    url = site.url(where)
    await supervisor.wait_for(lambda v: (v.selected_tab and v.selected_tab.url == url) or None, 10)


@pytest.mark.parametrize(("policy", "outcome"), [("auto_accept", "loaded"), ("auto_dismiss", "stayed")])
async def test_policies_hold_for_leaving_a_page_too(start: Start, site: Site, policy: Any, outcome: str) -> None:
    supervisor = await start("auto", policy)
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", ASKS_BEFORE_LEAVING))
    await gesture(supervisor)
    done = await supervisor.navigate(site.url("/next"))
    assert done.outcome == outcome
    closed = supervisor.snapshot().recent_dialogs[-1]
    assert (closed.type, closed.closed_by) == ("beforeunload", "auto_policy")


@every_way
async def test_many_answers_in_a_row_all_reach_the_page(start: Start, site: Site, way: BridgeChoice) -> None:
    supervisor = await start(way)
    await supervisor.navigate(site.page("/", "<script>got = []</script>"))
    for number in range(30):
        await opened(supervisor, f"got.push(prompt('n{number}'))")
        assert (await supervisor.answer_dialog("accept", f"a{number}")).delivered
    assert await supervisor.evaluate("got") == [f"a{number}" for number in range(30)]


async def test_answers_from_two_callers_at_once_reach_the_page_once(start: Start, site: Site) -> None:
    supervisor = await start()
    await supervisor.navigate(site.page("/", ""))
    await opened(supervisor, "window.got = confirm('?')")
    outcomes = await asyncio.gather(
        supervisor.answer_dialog("accept"), supervisor.answer_dialog("dismiss"), return_exceptions=True
    )
    assert isinstance(outcomes[1], DialogError)
    assert await supervisor.evaluate("got") is True
