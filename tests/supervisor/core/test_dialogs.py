"""Dialogs in the core: who ended what, and which answers are possible."""

import pytest
from fakes.browser_events import PAGE, SESSION, after, attached, detached, dialog_closed, dialog_opening, navigated, run

from watchkeeper.supervisor.core.commands import DeliverAnswer, DialogInterrupts, Prepare, Send
from watchkeeper.supervisor.core.dialogs import MESSAGE_CAP, RECENT
from watchkeeper.supervisor.core.inputs import AnswerDialog, Disconnected, Event, Failed, Replied, Tick
from watchkeeper.supervisor.core.reducer import next_deadline
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


def test_an_answer_that_finds_no_dialog_ends_it_as_remote() -> None:
    refused = Failed(DeliverAnswer("d-1"), -32602, "No dialog is showing")
    (dialog,) = view(after(dialog_opening(), AnswerDialog("d-1", True, None, "agent"), refused)).recent_dialogs
    assert (dialog.closed_by, dialog.response) == ("remote", None)


def test_a_navigation_ends_a_dialog_as_navigation() -> None:
    state = after(dialog_opening(), navigated(loader="L2"))
    assert view(state).recent_dialogs[0].closed_by == "navigation"
    closed_first = after(dialog_opening(), dialog_closed(False), navigated(loader="L2"))
    assert view(closed_first).recent_dialogs[0].closed_by == "navigation"


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
