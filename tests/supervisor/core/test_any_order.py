"""Any order of inputs: the core never raises, and what must always hold holds."""

from typing import Any

from fakes.browser_events import (
    attached,
    context,
    detached,
    dialog_closed,
    dialog_opening,
    frame_attached,
    frame_detached,
    navigated,
)
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.supervisor.core import console, dialogs
from watchkeeper.supervisor.core.commands import DeliverAnswer, FreeTab, Prepare, SeedFrames, Send
from watchkeeper.supervisor.core.inputs import (
    Adopt,
    AnswerDialog,
    Disconnected,
    Event,
    Failed,
    Input,
    Reconnected,
    Replied,
    SelectTab,
    Tick,
)
from watchkeeper.supervisor.core.reducer import _SESSION_EVENTS, _TARGET_EVENTS, next_deadline, step
from watchkeeper.supervisor.core.routing import route
from watchkeeper.supervisor.core.state import BrowserState, Options
from watchkeeper.supervisor.core.view import view
from watchkeeper.supervisor.core.wire import decode, encode

IDS = st.sampled_from(["A", "B", "C", "D"])
SESSIONS = st.sampled_from(["S-A", "S-B", "S-C", "S-D"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | IDS | SESSIONS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "targetId",
        "sessionId",
        "targetInfo",
        "frame",
        "frameId",
        "parentFrameId",
        "id",
        "type",
        "context",
        "args",
        "entry",
    ]
)
JUNK = st.builds(
    Event,
    st.none() | SESSIONS,
    st.sampled_from([*_SESSION_EVENTS, *_TARGET_EVENTS, "Unknown.event"]),
    st.dictionaries(KEYS, JSON, max_size=4),
)
TREE = st.recursive(
    st.builds(lambda i: {"frame": {"id": i}}, IDS),
    lambda inner: st.builds(lambda i, c: {"frame": {"id": i}, "childFrames": c}, IDS, st.lists(inner, max_size=2)),
    max_leaves=4,
)
SENSIBLE: st.SearchStrategy[Input] = st.one_of(
    st.builds(attached, IDS, SESSIONS),
    st.builds(lambda t, s, p: attached(t, s, parent=p, kind="iframe"), IDS, SESSIONS, SESSIONS),
    st.builds(detached, SESSIONS),
    st.builds(frame_attached, IDS, IDS, SESSIONS),
    st.builds(frame_detached, IDS, st.sampled_from(["remove", "swap"]), SESSIONS),
    st.builds(navigated, IDS, st.just("http://a.test/"), st.sampled_from(["L1", "L2"]), SESSIONS),
    st.builds(context, st.integers(1, 4), IDS, SESSIONS),
    st.builds(lambda s, f: dialog_opening(session_id=s, frameId=f), SESSIONS, IDS),
    st.builds(lambda r, s: dialog_closed(r, session_id=s), st.booleans(), SESSIONS),
    st.builds(Event, SESSIONS, st.just("Inspector.targetCrashed"), st.just({})),
    st.builds(lambda t: Event(None, "Target.targetDestroyed", {"targetId": t}), IDS),
    st.builds(AnswerDialog, st.sampled_from(["d-1", "d-2", "d-9"]), st.booleans(), st.none(), st.just("agent")),
    st.builds(lambda s, t: Replied(SeedFrames(s), {"frameTree": t}), SESSIONS, TREE),
    st.builds(lambda s: Failed(Prepare(s, "Page.enable"), 0, "late"), SESSIONS),
    st.builds(
        lambda c, m: Failed(DeliverAnswer("d-1"), c, m),
        st.sampled_from([0, -32602]),
        st.sampled_from(["no", "active page"]),
    ),
    st.builds(lambda s, u: Replied(FreeTab(s, "d-1", u), {}), SESSIONS, st.sampled_from(["", "http://a.test/"])),
    st.builds(lambda s: Failed(FreeTab(s, "d-1"), 0, "late"), SESSIONS),
    st.builds(lambda f, s: Event(s, "Page.frameStartedNavigating", {"frameId": f, "loaderId": "L2"}), IDS, SESSIONS),
    st.builds(Adopt, IDS),
    st.builds(SelectTab, IDS),
    st.just(Tick()),
    st.builds(Disconnected, st.just("gone")),
    st.builds(Reconnected, st.frozensets(IDS)),
)
POLICIES = st.sampled_from(["must_respond", "auto_accept", "auto_dismiss"])


def check(state: BrowserState) -> None:
    """What must hold after every step."""
    targets, sessions, frames, known = state.targets, state.sessions.by_id, state.frames, state.dialogs
    assert targets.selected is None or targets.selected in targets.pages
    assert len({page.tab_id for page in targets.pages.values()}) == len(targets.pages)
    for session in sessions.values():
        assert session.parent_id is None or session.parent_id in sessions
    for frame in frames.by_id.values():
        assert frame.session_id in sessions
    for page_id in {frame.page_id for frame in frames.by_id.values()}:
        ordered = frames.of_page(page_id)
        assert len(ordered) == len({f.frame_id for f in ordered}), "every frame once: no cycle"
        assert len({f.short for f in ordered}) == len(ordered)
    assert all(key[0] in sessions for key in frames.contexts)
    ids = [d.dialog_id for d in (*known.pending, *known.recent)]
    assert len(ids) == len(set(ids)) and len(known.recent) <= dialogs.RECENT
    assert all(d.closed_at is None for d in known.pending)
    assert all(d.closed_at is not None and d.closed_by is not None for d in known.recent)
    assert len(state.console.errors) <= console.ERRORS and len(state.console.others) <= console.OTHERS
    if state.connection.phase == "lost":
        assert not known.pending
    assert all(d.page_id in targets.pages for d in known.pending), "no dialog outlives its tab"
    seen = view(state)
    assert seen.frame_tree.truncated == (
        len(seen.frame_tree.children) + (seen.frame_tree.top is not None) < len(seen.frames)
    )


@given(st.lists(SENSIBLE | JUNK, max_size=40), POLICIES)
def test_whatever_happens_the_core_goes_on_and_its_rules_hold(happened: list[Input], policy: Any) -> None:
    state = BrowserState(options=Options(dialog_policy=policy))
    answered: set[str] = set()
    for moment, item in enumerate(happened):
        before = state
        state, commands = step(state, item, 1000.0 + moment)
        check(state)
        due = next_deadline(state)
        assert due is None or due > 0
        for command in commands:
            if isinstance(command, Send) and isinstance(command.tag, DeliverAnswer):
                dialog = before.dialogs.get(command.tag.dialog_id) or state.dialogs.get(command.tag.dialog_id)
                assert dialog is not None and dialog.closed_at is None
                answered.add(command.tag.dialog_id)
    for dialog in state.dialogs.recent:
        if dialog.closed_by in ("agent", "auto_policy", "watchdog"):
            assert dialog.dialog_id in answered, "only what we sent an answer to ended by our answer"


@given(
    st.lists(SENSIBLE, max_size=30), st.none() | IDS | st.sampled_from(["f1", "f2", "t1", "nonsense"]), st.booleans()
)
def test_a_call_for_a_frame_is_never_sent_to_another_frames_session(
    happened: list[Input], frame: str | None, by_context: bool
) -> None:
    state = BrowserState()
    for moment, item in enumerate(happened):
        state, _ = step(state, item, 1000.0 + moment)
    found = route(state, "Runtime.evaluate", {"expression": "1"}, frame_id=frame)
    if frame is not None and hasattr(found, "session_id"):
        owner = state.frames.find(frame, state.targets.selected)
        assert owner is not None and found.session_id == owner.session_id
        context = state.frames.main_context(owner.frame_id)
        assert found.needs_isolated_world == (context is None)
        assert context is None or context.frame_id == owner.frame_id


@given(st.binary(max_size=60) | st.text(max_size=60) | st.builds(str, JSON))
def test_no_message_from_the_browser_makes_the_decoder_raise(message: str | bytes) -> None:
    decode(message)


def test_lone_surrogates_survive_the_wire() -> None:
    sent = encode(1, "S", "Runtime.evaluate", {"expression": "'\ud800'"})
    sent.encode("utf-8")
    assert "\"'\\ud800'\"" in sent
