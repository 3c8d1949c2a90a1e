"""Routing: a call for a frame runs in that frame or not at all."""

import pytest
from fakes.browser_events import PAGE, SESSION, after, attached, context, frame_attached, navigated

from watchkeeper.supervisor.core.inputs import Event
from watchkeeper.supervisor.core.routing import Route, Unroutable, route

STATE = after(
    context(1, unique="top"),
    frame_attached("INNER"),
    navigated("INNER", "http://a.test/inner", "L2"),
    context(2, "INNER", unique="inner"),
    frame_attached("CHILD"),
    attached("CHILD", "S-CHILD", parent=SESSION, kind="iframe"),
    navigated("CHILD", "http://b.test/", "L3", "S-CHILD"),
    context(1, "CHILD", "S-CHILD", unique="child"),
)


@pytest.mark.parametrize(
    ("frame", "session", "unique"),
    [("f1", SESSION, "top"), ("INNER", SESSION, "inner"), ("f2", SESSION, "inner"), ("CHILD", "S-CHILD", "child")],
)
def test_a_script_goes_to_the_session_and_context_of_its_frame(frame: str, session: str, unique: str) -> None:
    found = route(STATE, "Runtime.evaluate", {"expression": "1"}, frame_id=frame)
    assert isinstance(found, Route)
    assert (found.session_id, found.params["uniqueContextId"]) == (session, unique)


def test_a_frame_without_a_known_context_gets_a_world_of_its_own_never_the_top_pages() -> None:
    state = after(frame_attached("NEW"), state=STATE)
    found = route(state, "Runtime.evaluate", {"expression": "1"}, frame_id="NEW")
    assert isinstance(found, Route) and found.needs_isolated_world and found.frame_id == "NEW"


def test_a_method_that_takes_a_frame_is_confined_by_it() -> None:
    found = route(STATE, "Page.navigate", {"url": "http://a.test/"}, frame_id="f2")
    assert isinstance(found, Route) and found.params["frameId"] == "INNER"


@pytest.mark.parametrize(
    "method", ["DOM.getDocument", "Page.captureScreenshot", "Input.dispatchKeyEvent", "CSS.enable"]
)
def test_a_method_that_cannot_be_confined_to_a_frame_runs_nothing_and_says_what_does(method: str) -> None:
    found = route(STATE, method, {}, frame_id="f2")
    assert isinstance(found, Unroutable) and found.kind == "refused" and found.hint
    assert isinstance(route(STATE, method, {}, frame_id="CHILD"), Route), "the root of a process is its own session"


def test_a_method_on_an_object_goes_to_the_session_that_holds_it() -> None:
    found = route(STATE, "Runtime.callFunctionOn", {"objectId": "o"}, frame_id="f2")
    assert isinstance(found, Route) and "uniqueContextId" not in found.params


def test_the_owner_of_a_frame_is_asked_of_its_parents_session() -> None:
    found = route(STATE, "DOM.getFrameOwner", {}, frame_id="CHILD")
    assert isinstance(found, Route) and (found.session_id, found.params["frameId"]) == (SESSION, "CHILD")


def test_an_unknown_frame_is_answered_with_the_nearest() -> None:
    found = route(STATE, "Runtime.evaluate", {}, frame_id="INNNER")
    assert isinstance(found, Unroutable) and found.kind == "unknown_frame"
    assert "f2 (http://a.test/inner)" in found.hint


def test_browser_methods_reach_the_browser_but_no_other_tasks_targets() -> None:
    found = route(STATE, "Storage.getCookies", {}, context_id="CONTEXT")
    assert isinstance(found, Route) and (found.session_id, found.params) == (None, {"browserContextId": "CONTEXT"})
    foreign = route(STATE, "Target.closeTarget", {"targetId": "SOMEBODY-ELSES"}, context_id="CONTEXT")
    assert isinstance(foreign, Unroutable) and foreign.kind == "unknown_target"
    other = route(STATE, "Storage.getCookies", {"browserContextId": "OTHER"}, context_id="CONTEXT")
    assert isinstance(other, Unroutable) and other.kind == "refused"
    own = route(STATE, "Target.closeTarget", {"targetId": "t1"}, context_id="CONTEXT")
    assert isinstance(own, Route) and own.params["targetId"] == PAGE


@pytest.mark.parametrize(
    "method", ["Page.handleJavaScriptDialog", "Browser.close", "Target.setAutoAttach", "Page.disable"]
)
def test_commands_that_would_break_the_supervisor_are_refused_with_what_serves(method: str) -> None:
    for frame in (None, "f2"):
        found = route(STATE, method, {}, frame_id=frame)
        assert isinstance(found, Unroutable) and found.kind == "refused" and found.hint


def test_a_crashed_page_is_not_asked_but_can_be_navigated() -> None:
    state = after(Event(SESSION, "Inspector.targetCrashed", {}), state=STATE)
    asked = route(state, "Runtime.evaluate", {"expression": "1"}, frame_id="f1")
    assert isinstance(asked, Unroutable) and asked.kind == "crashed"
    assert isinstance(route(state, "Page.navigate", {"url": "http://a.test/"}), Route)
    revived = after(navigated(loader="L9"), state=state)
    assert isinstance(route(revived, "Runtime.evaluate", {"expression": "1"}), Route)


def test_without_a_tab_the_caller_is_sent_to_browser_navigate() -> None:
    state = after(Event(None, "Target.targetDestroyed", {"targetId": PAGE}), state=STATE)
    found = route(state, "Page.reload", {})
    assert isinstance(found, Unroutable) and found.kind == "no_page" and "browser_navigate" in found.hint
