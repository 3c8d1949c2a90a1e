"""What a real browser sent, replayed through the core: the same view comes of it as when it was recorded."""

from typing import Any

import pytest
from fakes.traces import FOLDER, replay

from watchkeeper.supervisor.core.commands import CrashInterrupts, Send
from watchkeeper.supervisor.core.state import BrowserState
from watchkeeper.supervisor.core.view import View, view


def end(name: str) -> View:
    *_, (state, _, _) = replay(name)
    return view(state)


def dialogs(seen: View) -> list[tuple[str, str, str | None, str | None]]:
    return [(d.message, d.via, d.closed_by, d.response) for d in seen.recent_dialogs]


def frames(seen: View) -> list[tuple[str, bool]]:
    return [(frame.url.removeprefix("http://"), frame.is_oopif) for frame in seen.frames]


def test_a_frame_that_changes_process_and_back_is_one_frame_with_the_right_session() -> None:
    seen: list[tuple[str, bool]] = []
    ids: set[str] = set()
    for state, _, _ in replay("process_swaps"):
        child = [f for f in view(state).frames[1:] if f.url.endswith("/inner")]
        assert len(child) <= 1
        for frame in child:
            owner = state.sessions.by_id[frame.session_id]
            assert frame.is_oopif == (owner.target_id == frame.frame_id)
            ids.add(frame.frame_id)
            now = (frame.url.removeprefix("http://"), frame.is_oopif)
            if not seen or seen[-1] != now:
                seen.append(now)
    assert len(ids) == 1
    settled = [("a.test/inner", False), ("b.test/inner", True), ("a.test/inner", False), ("b.test/inner", True)]
    assert [now for now in seen if now in settled] == settled


def test_a_dialog_of_a_nested_process_names_its_frame_and_is_closed_by_the_answer() -> None:
    opened: list[str] = []
    for state, _, _ in replay("dialog_in_nested_process"):
        opened.extend(d.frame_id for d in view(state).pending_dialogs if d.frame_id not in opened)
    seen = view(state)
    assert frames(seen) == [("a.test/", False), ("b.test/nest", True), ("a.test/inner", True)]
    assert opened == [seen.frames[2].frame_id]
    assert dialogs(seen) == [("Name?", "debugger", "agent", "accept")]
    assert seen.recent_dialogs[0].response_text == "Ada" and seen.pending_dialogs == ()


def test_a_page_that_comes_back_from_the_cache_has_its_frames_of_every_process_again() -> None:
    seen = sorted(frames(end("back_from_the_cache")))
    assert seen == [("a.test/", False), ("a.test/inner", False), ("b.test/inner", True)]


def test_a_crash_ends_calls_and_dialog_and_a_navigation_revives_the_tab() -> None:
    crashed: list[BrowserState] = []
    for state, _, commands in replay("crash_with_a_dialog"):
        if any(isinstance(command, CrashInterrupts) for command in commands):
            crashed.append(state)
    assert len(crashed) == 1, "the news comes twice and counts once"
    assert view(crashed[0]).tabs[0].crashed and dialogs(view(crashed[0])) == [("?", "native", "lost", None)]
    seen = view(state)
    assert not seen.tabs[0].crashed and dialogs(seen) == [("?", "native", "lost", None)]
    assert frames(seen) == [("a.test/#again", False)]


def test_a_popup_has_its_opener_and_its_dialog_names_its_tab() -> None:
    seen = end("popup_with_a_dialog")
    assert [(tab.tab_id, tab.opener, tab.selected) for tab in seen.tabs] == [("t1", None, True), ("t2", "t1", False)]
    assert [(d.tab_id, d.closed_by) for d in seen.recent_dialogs] == [("t2", "agent")]


def test_a_page_that_is_left_takes_its_dialog_along_and_the_next_one_arrives() -> None:
    seen = end("dialog_of_a_page_that_is_left")
    assert dialogs(seen) == [("Really?", "native", "agent", "dismiss")] and seen.recent_dialogs[0].unanswerable
    assert frames(seen) == [("a.test/next", False)]


def test_a_displaced_dialog_is_ended_and_the_address_is_put_back() -> None:
    sent: list[Send] = []
    for _, _, commands in replay("displaced_dialog"):
        sent.extend(command for command in commands if isinstance(command, Send))
    assert dialogs(end("displaced_dialog")) == [
        ("inner", "native", "remote", "dismiss"),
        ("outer", "native", "agent", "dismiss"),
    ]
    assert "http://a.test/" in sent[-1].params["expression"]


def test_a_dialog_of_a_removed_frame_is_lost_and_those_after_it_can_be_answered() -> None:
    seen = end("removed_frame_with_a_dialog")
    assert dialogs(seen) == [("inner", "native", "lost", None), ("after", "native", "agent", "accept")]
    assert len(seen.frames) == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("navigation_ends_a_dialog", ("?", "native", "navigation", None)),
        ("page_navigates_after_another_client_dismissed", ("?", "native", "remote", "dismiss")),
    ],
)
def test_who_closed_a_dialog_of_a_page_that_then_navigates(name: str, told: Any) -> None:
    seen = end(name)
    assert dialogs(seen) == [told]
    assert frames(seen) == [("a.test/next", False)]


def test_every_trace_is_replayed_here() -> None:
    text = FOLDER.parent.joinpath("supervisor", "core", "test_traces.py").read_text()
    assert [path.stem for path in FOLDER.glob("*.jsonl") if f'"{path.stem}"' not in text] == []
