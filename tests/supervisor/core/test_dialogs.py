"""Dialogs in the core: who ended what, and which answers are possible."""

from typing import Any

import pytest
from fakes.browser_events import (
    PAGE,
    SESSION,
    after,
    attached,
    context,
    detached,
    dialog_closed,
    dialog_opening,
    frame_attached,
    frame_detached,
    navigated,
    run,
)

from watchkeeper.supervisor.bridge.question import Question
from watchkeeper.supervisor.core.commands import (
    Asked,
    DeliverAnswer,
    DialogInterrupts,
    FreeTab,
    Prepare,
    ReadSandbox,
    Send,
)
from watchkeeper.supervisor.core.dialogs import MESSAGE_CAP, RECENT
from watchkeeper.supervisor.core.inputs import AnswerDialog, Disconnected, Event, Failed, Input, Replied, Tick
from watchkeeper.supervisor.core.reducer import next_deadline, step
from watchkeeper.supervisor.core.state import BrowserState, Options
from watchkeeper.supervisor.core.view import view


def answers(commands: list[object]) -> list[Send]:
    return [c for c in commands if isinstance(c, Send) and c.method == "Page.handleJavaScriptDialog"]


def test_a_dialog_that_opens_is_pending_and_ends_the_calls_of_its_tab() -> None:
    state, commands = run([dialog_opening("prompt", "Name?", defaultPrompt="x")])
    (dialog,) = view(state).pending_dialogs
    assert (dialog.id, dialog.type, dialog.message, dialog.default_prompt) == ("d-1", "prompt", "Name?", "x")
    assert (dialog.tab_id, dialog.frame_id, dialog.opened_at) == ("t1", PAGE, 1000.0)
    assert commands == [DialogInterrupts(frozenset({PAGE}), "d-1")]


def test_an_answer_is_recorded_before_it_is_sent_and_is_never_called_remote() -> None:
    state, commands = run([dialog_opening(), AnswerDialog("d-1", True, None, "agent")])
    assert view(state).pending_dialogs[0].answering
    assert answers(commands) == [Send(SESSION, "Page.handleJavaScriptDialog", {"accept": True}, DeliverAnswer("d-1"))]
    (dialog,) = view(after(dialog_closed(True), state=state, now=1002.0)).recent_dialogs
    assert (dialog.closed_by, dialog.response, dialog.closed_at) == ("agent", "accept", 1002.0)


def test_a_dialog_that_is_being_answered_is_not_answered_twice() -> None:
    _, commands = run(
        [dialog_opening(), AnswerDialog("d-1", True, None, "agent"), AnswerDialog("d-1", False, None, "agent")]
    )
    assert len(answers(commands)) == 1


def test_a_dialog_that_somebody_else_closed_is_remote_with_what_they_answered() -> None:
    state = after(dialog_opening("prompt"), dialog_closed(True, "theirs"))
    (dialog,) = view(state).recent_dialogs
    assert (dialog.closed_by, dialog.response, dialog.response_text) == ("remote", "accept", "theirs")


def test_an_answer_that_another_client_overtook_is_theirs() -> None:
    state = after(dialog_opening(), AnswerDialog("d-1", True, None, "agent"), dialog_closed(False))
    assert view(state).recent_dialogs[0].closed_by == "remote"


@pytest.mark.parametrize(("policy", "accept"), [("auto_accept", True), ("auto_dismiss", False)])
def test_a_policy_answers_at_once_and_interrupts_nobody(policy: str, accept: bool) -> None:
    options = Options(dialog_policy=policy)  # type: ignore[arg-type]
    state, commands = run([dialog_opening("prompt", defaultPrompt="def"), dialog_closed(accept)], options=options)
    (sent,) = answers(commands)
    assert sent.params["accept"] is accept
    assert sent.params.get("promptText") == ("def" if accept else None)
    assert not [c for c in commands if isinstance(c, DialogInterrupts)]
    assert view(state).recent_dialogs[0].closed_by == "auto_policy"


def test_the_watchdog_dismisses_when_the_time_is_up_and_not_before() -> None:
    options = Options(dialog_timeout_s=300.0)
    state, _ = run([dialog_opening(), Replied(Prepare(SESSION, "Page.enable"), {})], options=options)
    assert next_deadline(state) == 1300.0
    early, commands = run([Tick()], state=state, now=1299.9)
    assert commands == []
    late, commands = run([Tick()], state=early, now=1300.0)
    assert answers(commands)[0].params == {"accept": False}
    assert next_deadline(late) is None
    assert view(after(dialog_closed(False), state=late, now=1300.1)).recent_dialogs[0].closed_by == "watchdog"


def test_an_answer_without_reply_may_be_tried_again() -> None:
    state = after(dialog_opening(), AnswerDialog("d-1", True, None, "agent"), Failed(DeliverAnswer("d-1"), 0, "late"))
    assert not view(state).pending_dialogs[0].answering


@pytest.mark.parametrize(
    ("refusal", "goes_to", "restored"),
    [
        ("No dialog is showing", "http://a.test/#watchkeeper", True),
        ("Not attached to an active page", "watchkeeper:nowhere", False),
    ],
)
def test_a_dialog_that_takes_no_answer_is_ended_by_a_navigation_that_leaves_the_page_where_it_is(
    refusal: str, goes_to: str, restored: bool
) -> None:
    answer = AnswerDialog("d-1", True, None, "agent")
    refused = Failed(DeliverAnswer("d-1"), -32602, refusal)
    state, sent = run([dialog_opening(), answer, refused])
    free = sent[-1]
    assert isinstance(free, Send) and (free.method, free.params["url"]) == ("Page.navigate", goes_to)
    assert view(state).pending_dialogs[0].answering, "open until the browser says otherwise"
    assert isinstance(free.tag, FreeTab)
    closed_first, _ = run([dialog_closed(False)], state=state)
    assert bool(view(closed_first).pending_dialogs) is restored, "over when what is sent finds the page as it was"
    state, sent = run([Replied(free.tag, {})], state=closed_first)
    (dialog,) = view(state).recent_dialogs
    assert (dialog.closed_by, dialog.response, dialog.unanswerable) == ("agent", "dismiss", True)
    assert [c.method for c in sent if isinstance(c, Send)] == (["Runtime.evaluate"] if restored else [])


def test_a_tab_that_cannot_be_freed_keeps_its_dialog_and_the_watchdog_does_not_spin() -> None:
    options = Options(dialog_timeout_s=1)
    state, sent = run([dialog_opening(), Tick()], options=options)
    refused = Failed(DeliverAnswer("d-1"), -32602, "No dialog is showing")
    state, sent = run([refused], state=state)
    assert isinstance(sent[0], Send) and isinstance(sent[0].tag, FreeTab)
    state, _ = run([Failed(sent[0].tag, 0, "late"), Tick()], state=state, now=9999)
    assert [d.answering for d in view(state).pending_dialogs] == [False]
    assert next_deadline(after(Replied(Prepare(SESSION, "Page.enable"), {}), state=state)) is None


def test_an_answer_that_came_too_late_leaves_what_was_told_as_it_is() -> None:
    refused = Failed(DeliverAnswer("d-1"), -32602, "No dialog is showing")
    events = (dialog_opening(), AnswerDialog("d-1", True, None, "agent"), dialog_closed(False), refused)
    state, sent = run(events)
    (dialog,) = view(state).recent_dialogs
    assert (dialog.closed_by, dialog.response) == ("remote", "dismiss")
    assert len([c for c in sent if isinstance(c, Send)]) == 1


def started_navigating(loader: str = "L2") -> Event:
    params = {"frameId": PAGE, "loaderId": loader, "url": "http://a.test/next", "navigationType": "differentDocument"}
    return Event(SESSION, "Page.frameStartedNavigating", params)


def test_a_navigation_ends_a_dialog_as_navigation() -> None:
    state = after(dialog_opening(), navigated(loader="L2"))
    assert view(state).recent_dialogs[0].closed_by == "navigation"
    by_its_start = after(dialog_opening(), started_navigating(), dialog_closed(False))
    assert view(by_its_start).recent_dialogs[0].closed_by == "navigation"
    by_its_end = after(started_navigating(), dialog_opening(), dialog_closed(False), navigated(loader="L2"))
    assert view(by_its_end).recent_dialogs[0].closed_by == "navigation"


def test_a_page_that_navigates_because_somebody_else_dismissed_its_dialog_does_not_hide_that() -> None:
    state = after(dialog_opening(), dialog_closed(False), started_navigating(), navigated(loader="L2"))
    assert (view(state).recent_dialogs[0].closed_by, view(state).recent_dialogs[0].response) == ("remote", "dismiss")


@pytest.mark.parametrize("end", [Event(SESSION, "Inspector.targetCrashed", {}), detached(SESSION)])
def test_a_dialog_that_the_browser_closes_as_its_page_ends_is_lost(end: Event) -> None:
    state, _ = step(after(dialog_opening()), dialog_closed(False), 1005.0)
    state, _ = step(state, end, 1005.01)
    assert view(state).recent_dialogs[0].closed_by == "lost"


CHILD = [
    frame_attached("CHILD"),
    attached("CHILD", "S-CHILD", parent=SESSION, kind="iframe"),
    frame_detached("CHILD", "swap"),
    navigated("CHILD", "http://b.test/", "LC", "S-CHILD", parentId=PAGE),
    dialog_opening(frameId="CHILD"),
]


def test_a_native_dialog_of_a_removed_frame_is_lost_and_what_it_leaves_behind_is_cleared() -> None:
    """What is left behind would crash the browser with the next command that touches dialogs of the tab."""
    state, sent = run([*CHILD, frame_detached("CHILD"), detached("S-CHILD", parent=SESSION)])
    assert [d.closed_by for d in view(state).recent_dialogs] == ["lost"]
    after_removal = [c.method for c in sent if isinstance(c, Send) and c.session_id == SESSION]
    assert after_removal[:3] == ["Page.disable", "Page.navigate", "Page.enable"]


@pytest.mark.parametrize("bridge", ["never", "debugger"])
def test_dialogs_of_a_crashed_frame_are_lost_and_a_native_one_is_taken_down(bridge: Any) -> None:
    opening: list[Input] = CHILD[-1:]
    if bridge == "debugger":
        asked = Asked("S-CHILD", "1.0", "CHILD", "debugger", Question("confirm", "?", "", "http://b.test/"))
        opening = [Replied(ReadSandbox(asked, "CHILD", 7), {"node": {}})]
    state, sent = run([*CHILD[:-1], *opening])
    assert len(view(state).pending_dialogs) == 1
    state, sent = run([Event("S-CHILD", "Inspector.targetCrashed", {})], state=state)
    assert [d.closed_by for d in view(state).recent_dialogs] == ["lost"]
    assert [c.method for c in sent if isinstance(c, Send)] == (
        ["Page.handleJavaScriptDialog"] if bridge == "never" else []
    )


def test_who_dismisses_by_machine_is_recognised_and_the_bridge_asks_before_pages_are_left() -> None:
    options = Options(bridge="debugger", nonce="n")
    state = after(context(1), context(2, is_default=False), options=options)
    state, _ = step(state, dialog_opening("beforeunload"), 2000.0)
    state, sent = step(state, dialog_closed(False), 2000.01)
    assert state.backend_dismisses
    assert [c.method for c in sent if isinstance(c, Send)] == [
        "Page.addScriptToEvaluateOnNewDocument",
        "Runtime.evaluate",
    ], "in documents that follow, and in the one that is there"
    _, sent_to_new = step(state, attached("NEW", "S-NEW"), 2001.0)
    assert len([c for c in sent_to_new if isinstance(c, Send) and "source" in c.params]) == 2
    state = after(options=options)
    state, _ = step(state, dialog_opening(), 2000.0)
    state, _ = step(state, dialog_closed(False), 2002.0)
    assert not state.backend_dismisses, "a person may have done that"


def test_what_a_page_stays_by_is_not_asked_a_second_time() -> None:
    asked = Asked(SESSION, "1.0", PAGE, "debugger", Question("beforeunload", "", "", "http://a.test/"))
    opened = Replied(ReadSandbox(asked, PAGE, 7), {"node": {}})
    stay = AnswerDialog("d-1", False, None, "agent")
    state, sent = run(
        [opened, stay, Replied(DeliverAnswer("d-1"), {}), Event(SESSION, "Debugger.resumed", {})],
        options=Options(bridge="debugger"),
    )
    assert [(d.type, d.via, d.closed_by) for d in view(state).recent_dialogs] == [("beforeunload", "debugger", "agent")]
    state, sent = run([dialog_opening("beforeunload")], state=state, now=1003.5)
    assert view(state).pending_dialogs == ()
    assert [c.params for c in sent if isinstance(c, Send)] == [{"accept": False}]


@pytest.mark.parametrize(
    "loss",
    [
        Disconnected("gone"),
        detached(SESSION),
        Event(None, "Target.targetDestroyed", {"targetId": PAGE}),
        Event(SESSION, "Inspector.targetCrashed", {}),
    ],
)
def test_a_dialog_whose_tab_or_connection_is_gone_is_lost(loss: Event | Disconnected) -> None:
    state = after(dialog_opening(), loss)
    assert view(state).pending_dialogs == ()
    assert view(state).recent_dialogs[0].closed_by == "lost"


def test_two_dialogs_in_one_tab_are_told_apart_by_their_frames() -> None:
    state = after(dialog_opening(message="A", frameId=PAGE), dialog_opening(message="B", frameId="CHILD"))
    state = after(dialog_closed(True, frameId="CHILD"), state=state)
    assert [d.message for d in view(state).pending_dialogs] == ["A"]
    assert [d.message for d in view(state).recent_dialogs] == ["B"]


def test_dialogs_of_other_tabs_stay_open() -> None:
    state = after(attached("OTHER", "S-OTHER"), dialog_opening(session_id="S-OTHER"), navigated(loader="L2"))
    assert [d.tab_id for d in view(state).pending_dialogs] == ["t2"]


def test_recent_is_a_ring_and_texts_are_capped_visibly() -> None:
    state: BrowserState | None = None
    for _ in range(RECENT + 5):
        state = after(dialog_opening(message="x" * (MESSAGE_CAP + 1)), dialog_closed(True), state=state)
    assert state is not None
    recent = view(state).recent_dialogs
    assert [d.id for d in recent] == [f"d-{n}" for n in range(6, RECENT + 6)]
    assert all(len(d.message) == MESSAGE_CAP and d.as_dict()["truncated"] for d in recent)


def test_a_session_that_does_not_answer_is_stuck_until_it_does() -> None:
    state = after(Tick(), now=1002.9)
    assert not view(state).tabs[0].stuck
    state = after(Tick(), state=state, now=1003.0 + 1e6)
    assert view(state).tabs[0].stuck
    assert not view(after(Replied(Prepare(SESSION, "Page.enable"), {}), state=state)).tabs[0].stuck
