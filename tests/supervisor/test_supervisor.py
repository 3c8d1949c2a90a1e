"""The shell around the core, on a real WebSocket: deadlines, interruptions, loss, and many callers at once."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from fakes.cdp_server import NEVER, Refusal
from fakes.fake_browser import FakeBrowser

from watchkeeper.supervisor import CdpEndpoint, Supervisor, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.errors import (
    AmbiguousDialog,
    BadPromptText,
    CallTimeout,
    ConnectionLost,
    DialogBeingAnswered,
    DialogOpened,
    EndpointUnreachable,
    EvaluationFailed,
    NavigationFailed,
    NoDialogOpen,
    ProtocolError,
    TargetClosed,
    TargetCrashed,
    UnknownDialog,
    UrlRefused,
)

pytestmark = pytest.mark.anyio
GUARD_S = 20.0


@pytest.fixture
async def browser() -> AsyncIterator[FakeBrowser]:
    async with FakeBrowser() as server:
        yield server


@pytest.fixture
async def registry() -> AsyncIterator[SupervisorRegistry]:
    made = SupervisorRegistry(options=SupervisorOptions(load_wait_s=5, refuse_url=refuse))
    yield made
    await made.stop_all()


def refuse(url: str) -> str | None:
    return "file: is refused." if url.startswith("file:") else None


async def start(registry: SupervisorRegistry, browser: FakeBrowser, task: str = "task") -> Supervisor:
    supervisor = await registry.get_or_start(task, CdpEndpoint(browser.url))
    await supervisor.navigate("http://a.test/")
    return supervisor


async def test_a_navigation_is_over_when_its_own_document_has_loaded(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    browser.on("Runtime.evaluate", {"result": {"value": ["http://a.test/", "Title", 404]}})
    supervisor = await registry.get_or_start("task", CdpEndpoint(browser.url))
    done = await supervisor.navigate("http://a.test/")
    assert (done.outcome, done.url, done.title, done.status) == ("loaded", "http://a.test/", "Title", 404)


async def test_a_dialog_ends_every_call_of_its_tab_at_once_and_only_those(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    browser.on("Runtime.evaluate", NEVER)
    browser.on("Target.getTargets", NEVER)
    first = asyncio.create_task(supervisor.evaluate("1"))
    second = asyncio.create_task(supervisor.evaluate("2"))
    other = asyncio.create_task(supervisor.call("Target.getTargets", timeout=0.5))
    await browser.called("Runtime.evaluate", 3)  # one of them described the navigation
    await browser.dialog()
    for ended in (first, second):
        with pytest.raises(DialogOpened) as raised:
            await ended
        assert [d.id for d in raised.value.dialogs] == ["d-1"]
        assert "browser_dialog" in raised.value.hint
    with pytest.raises(CallTimeout):
        await other


async def test_a_call_that_would_wait_behind_a_dialog_is_not_sent(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    await browser.dialog()
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    before = len(browser.calls)
    with pytest.raises(DialogOpened, match="not sent"):
        await supervisor.evaluate("1")
    with pytest.raises(DialogOpened):
        await supervisor.navigate("http://b.test/")
    assert len(browser.calls) == before


async def test_an_answer_says_what_the_page_got(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)

    async def close(call: object) -> dict[str, object]:
        await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": "x"}, "S1")
        return {}

    browser.on("Page.handleJavaScriptDialog", close)
    await browser.dialog(kind="prompt", message="Name?", default="x")
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    answer = await supervisor.answer_dialog("accept")
    assert answer.delivered and "the text (1 characters)" in answer.note
    call = await browser.called("Page.handleJavaScriptDialog")
    assert call.params == {"accept": True, "promptText": "x"}
    assert supervisor.snapshot().recent_dialogs[-1].closed_by == "agent"


async def test_an_answer_that_the_browser_refuses_is_told_as_not_delivered(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)

    async def free(call: object) -> dict[str, object]:
        await browser.emit("Page.javascriptDialogClosed", {"result": False, "userInput": ""}, "S1")
        return {"frameId": "P1"}

    browser.on("Page.handleJavaScriptDialog", Refusal(-32602, "No dialog is showing"))
    browser.on("Page.navigate", free)
    await browser.dialog()
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    answer = await supervisor.answer_dialog("accept")
    assert not answer.delivered and "takes no answer" in answer.note and "returned false" in answer.note


async def test_a_dialog_cannot_be_answered_twice(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)
    browser.on("Page.handleJavaScriptDialog", NEVER)
    await browser.dialog()
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    first = asyncio.create_task(supervisor.answer_dialog("accept"))
    await browser.called("Page.handleJavaScriptDialog")
    with pytest.raises(DialogBeingAnswered):
        await supervisor.answer_dialog("dismiss")
    await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
    assert (await first).delivered


async def test_answers_that_make_no_sense_are_refused_before_anything_is_sent(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    with pytest.raises(NoDialogOpen, match="none was before"):
        await supervisor.answer_dialog("accept")
    await browser.dialog(kind="alert")
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    with pytest.raises(UnknownDialog) as unknown:
        await supervisor.answer_dialog("accept", dialog_id="d-77")
    assert "d-1 (alert)" in unknown.value.hint
    with pytest.raises(BadPromptText, match="only a prompt"):
        await supervisor.answer_dialog("accept", "text")
    with pytest.raises(BadPromptText):
        await supervisor.answer_dialog("dismiss", "text")
    await browser.dialog(kind="prompt")
    await supervisor.wait_for(lambda view: len(view.pending_dialogs) > 1 or None, 5)
    with pytest.raises(AmbiguousDialog, match=r"d-1.*d-2"):
        await supervisor.answer_dialog("accept")
    with pytest.raises(BadPromptText, match="at most"):
        await supervisor.answer_dialog("accept", "x" * 20_000, "d-2")
    assert not [call for call in browser.calls if call.method == "Page.handleJavaScriptDialog"]


async def test_a_navigation_without_response_is_stopped(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)
    browser.on("Page.navigate", NEVER)
    with pytest.raises(CallTimeout, match="was stopped"):
        await supervisor.navigate("http://b.test/", timeout=0.2)
    await browser.called("Page.stopLoading")
    assert await supervisor.evaluate("1+1") == 2


async def test_a_network_error_is_told_in_words(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)
    browser.on("Page.navigate", {"frameId": "P1", "errorText": "net::ERR_NAME_NOT_RESOLVED"})
    with pytest.raises(NavigationFailed, match="no such host name"):
        await supervisor.navigate("http://b.test/")


async def test_a_refused_address_is_opened_by_no_way(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)
    for attempt in (
        supervisor.navigate("file:///etc/passwd"),
        supervisor.call("Page.navigate", {"url": "file:///etc/passwd"}),
        supervisor.call("Target.createTarget", {"url": "file:///etc/passwd"}),
        supervisor.open_tab("file:///etc/passwd"),
    ):
        with pytest.raises(UrlRefused):
            await attempt
    assert not [call for call in browser.calls if "file:" in json.dumps(call.params)]


async def test_a_script_that_throws_is_an_error_with_its_own_words(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    details = {"text": "Uncaught", "exception": {"description": "ReferenceError: x is not defined"}}
    browser.on("Runtime.evaluate", {"result": {}, "exceptionDetails": details})
    with pytest.raises(EvaluationFailed, match="ReferenceError: x is not defined"):
        await supervisor.evaluate("x")


async def test_a_refusal_of_the_browser_keeps_its_code(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    supervisor = await start(registry, browser)
    browser.on("Foo.bar", Refusal(-32601, "'Foo.bar' wasn't found"))
    with pytest.raises(ProtocolError) as raised:
        await supervisor.call("Foo.bar")
    assert raised.value.cdp_code == -32601


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("Inspector.targetCrashed", {}, TargetCrashed),
        ("Target.detachedFromTarget", {"sessionId": "S1"}, TargetClosed),
    ],
)
async def test_a_crash_or_a_closed_tab_ends_its_calls_at_once(
    browser: FakeBrowser,
    registry: SupervisorRegistry,
    method: str,
    params: dict[str, str],
    error: type[Exception],
) -> None:
    supervisor = await start(registry, browser)
    browser.on("Runtime.evaluate", NEVER)
    waiting = asyncio.create_task(supervisor.evaluate("1"))
    await browser.called("Runtime.evaluate", 2)
    await browser.emit(method, params, None if "Target." in method else "S1")
    with pytest.raises(error):
        await waiting


async def test_a_lost_connection_fails_every_call_at_once_and_the_next_start_connects_again(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    await browser.dialog()
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, 5)
    browser.on("Target.getTargets", NEVER)
    waiting = asyncio.create_task(supervisor.call("Target.getTargets"))
    await browser.called("Target.getTargets")
    browser.drop()
    with pytest.raises(ConnectionLost):
        await waiting
    view = supervisor.snapshot()
    assert not view.connected and not view.pending_dialogs
    assert view.recent_dialogs[-1].closed_by == "lost"
    with pytest.raises(ConnectionLost) as raised:
        await supervisor.evaluate("1")
    assert "browser_navigate" in raised.value.hint
    browser.on("Target.getTargets", {"targetInfos": [{"targetId": "P1", "type": "page"}]})
    again = await start(registry, browser)
    assert again is supervisor, "the same browser: the same supervisor, with what it knows"
    assert await again.evaluate("1+1") == 2
    assert again.snapshot().connected and "is back" in again.notice
    assert again.snapshot().recent_dialogs[-1].closed_by == "lost"


async def test_tabs_that_are_gone_when_the_connection_is_back_are_told(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    browser.on("Target.getTargets", {"targetInfos": [{"targetId": "OTHER", "type": "page"}]})
    browser.drop()
    await supervisor.wait_for(lambda view: not view.connected or None, 5)
    assert await registry.get_or_start("task", CdpEndpoint(browser.url)) is supervisor
    assert supervisor.snapshot().tabs == () and "1 tabs are gone" in supervisor.notice


async def test_an_endpoint_that_is_gone_for_good_fails_in_time_and_is_named(registry: SupervisorRegistry) -> None:
    made = SupervisorRegistry(options=SupervisorOptions(launch_timeout_s=1))
    async with FakeBrowser() as browser:
        supervisor = await start(made, browser)
        endpoint = supervisor.endpoint
    with pytest.raises(EndpointUnreachable):
        await made.get_or_start("task", endpoint)
    await made.stop_all()


async def test_starting_is_idempotent_also_for_callers_at_once(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    endpoint = CdpEndpoint(browser.url)
    same = await asyncio.gather(*(registry.get_or_start("task", endpoint) for _ in range(10)))
    assert len({id(supervisor) for supervisor in same}) == 1
    tasks = await asyncio.gather(*(registry.get_or_start(f"task-{n}", endpoint) for n in range(10)))
    assert len({id(supervisor.browser) for supervisor in tasks}) == 1
    assert len([call for call in browser.calls if call.method == "Target.setDiscoverTargets"]) == 1
    assert await registry.stop("task-3") and not await registry.stop("task-3")


async def test_another_endpoint_for_a_task_starts_anew(browser: FakeBrowser, registry: SupervisorRegistry) -> None:
    first = await start(registry, browser)
    async with FakeBrowser() as other:
        second = await start(registry, other)
        assert second is not first and registry.get("task") is second
        await browser.connected(0)
        await registry.stop_all()


async def test_an_endpoint_that_refuses_is_an_error_and_leaves_nothing_behind(registry: SupervisorRegistry) -> None:
    with pytest.raises(EndpointUnreachable):
        await registry.get_or_start("task", CdpEndpoint("ws://127.0.0.1:9/devtools/browser/x"))
    assert registry.get("task") is None and registry.supervisors == ()


async def test_tasks_in_a_shared_browser_see_only_their_own_tabs(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    first = await start(registry, browser, "one")
    second = await start(registry, browser, "two")
    assert [tab.target_id for tab in first.snapshot().tabs] == ["P1"]
    assert [tab.target_id for tab in second.snapshot().tabs] == ["P2"]
    await browser.dialog(page=2)
    await second.wait_for(lambda view: view.pending_dialogs or None, 5)
    assert first.snapshot().pending_dialogs == ()
    infos = [{"targetId": "P1"}, {"targetId": "P2"}, {"targetId": "USERS"}]
    browser.on("Target.getTargets", {"targetInfos": infos})
    assert (await first.call("Target.getTargets"))["targetInfos"] == [{"targetId": "P1"}]


async def test_a_popup_of_a_tab_belongs_to_its_task_and_others_are_left_alone(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    for target, opener in (("P8", "P1"), ("P9", "USERS")):
        info = {"targetId": target, "type": "page", "url": "", "title": "", "attached": False, "openerId": opener}
        await browser.emit("Target.targetCreated", {"targetInfo": info})
    await supervisor.wait_for(lambda view: len(view.tabs) == 2 or None, 5)
    attached = [call.params["targetId"] for call in browser.calls if call.method == "Target.attachToTarget"]
    assert attached == ["P1", "P8"]
    assert next(tab for tab in supervisor.snapshot().tabs if tab.selected).target_id == "P1"


async def test_a_flood_of_events_loses_nothing_but_the_overflow_of_the_ring_and_counts_it(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    for number in range(5_000):
        args = [{"type": "string", "value": f"message {number}"}]
        await browser.emit("Runtime.consoleAPICalled", {"type": "log", "args": args}, "S1")
    await browser.emit("Runtime.consoleAPICalled", {"type": "error", "args": [{"value": "last"}]}, "S1")
    view = await supervisor.wait_for(lambda v: v if v.console_errors else None, GUARD_S)
    assert view.console_other[-1].text == "message 4999"
    assert len(view.console_other) + view.console_dropped == 5_000
    assert await supervisor.evaluate("1") == 2


async def test_nonsense_from_the_browser_is_counted_and_harms_nobody(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    for text in ("not json", "[]", '{"id":"x"}', '{"method":7}', '{"id":99999,"result":{}}', '"\\ud800"'):
        await browser.send_raw(text)
    assert await supervisor.evaluate("1") == 2
    assert supervisor.browser.runner.malformed == 5


async def test_a_callers_broken_condition_is_the_callers_error(
    browser: FakeBrowser, registry: SupervisorRegistry
) -> None:
    supervisor = await start(registry, browser)
    waiting = asyncio.create_task(
        supervisor.wait_for(lambda view: 1 / len(view.pending_dialogs) if view.recent_dialogs else None, 5)
    )
    await asyncio.sleep(0)
    await browser.dialog()
    await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": ""}, "S1")
    with pytest.raises(ZeroDivisionError):
        await waiting
    assert await supervisor.evaluate("1") == 2
