"""``step``: the one place where the state changes.

Rules: total and pure. Every input leads to a state; inputs that make no sense leave it as it was. Events of sessions
that we do not know are ignored, for their session is gone or not ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from . import bridge_flow, console, dialog_flow, dialogs, fields, frames, held, sessions, targets
from .commands import (
    CrashInterrupts,
    DeliverAnswer,
    DetachInterrupts,
    FreeTab,
    Prepare,
    ReadQuestion,
    ReadSandbox,
    SeedFrames,
    Send,
)
from .inputs import (
    Adopt,
    AnswerDialog,
    Disconnected,
    Event,
    Failed,
    Input,
    Noticed,
    Reconnected,
    Replied,
    SelectTab,
    Tick,
)
from .sessions import Session
from .state import NOTHING as _NOTHING
from .state import BrowserState, Connection, Step


def step(state: BrowserState, happened: Input, now: float) -> Step:
    """The state after ``happened`` at ``now`` (seconds since the epoch), and what to ask of the browser."""
    if state.connection.phase == "lost" and isinstance(happened, Event | Replied | Failed):
        return state, _NOTHING  # late echoes of a connection that is over
    match happened:
        case Event():
            return _event(state, happened, now)
        case Replied():
            return _replied(state, happened, now)
        case Failed():
            return _failed(state, happened, now)
        case AnswerDialog(dialog_id, accept, text, by):
            return dialog_flow.answered(state, dialog_id, dialogs.Response(accept, text, by))
        case SelectTab(target_id):
            return replace(state, targets=targets.selected(state.targets, target_id)), _NOTHING
        case Adopt(target_id):
            return replace(state, targets=targets.added(state.targets, {"targetId": target_id})), _NOTHING
        case Noticed():
            return _noticed(state, happened, now), _NOTHING
        case Tick():
            return _time_passed(state, now)
        case Disconnected(reason):
            return _disconnected(state, reason, now)
        case Reconnected(target_ids):
            for gone in state.targets.pages.keys() - target_ids:
                state = _page_gone(state, gone, now)
            return replace(state, connection=Connection("up", state.connection.generation + 1)), _NOTHING


def next_deadline(state: BrowserState) -> float | None:
    """When ``Tick`` is due next, in seconds since the epoch."""
    due = (
        dialogs.next_deadline(state.dialogs, state.options.dialog_timeout_s),
        sessions.next_deadline(state.sessions),
    )
    return min((moment for moment in due if moment is not None), default=None)


def _event(state: BrowserState, event: Event, now: float) -> Step:
    of_target = _TARGET_EVENTS.get(event.method)
    if of_target is not None:
        return of_target(state, event, now)
    of_session = _SESSION_EVENTS.get(event.method)
    session = state.sessions.by_id.get(event.session_id or "")
    if of_session is None or session is None:
        return state, _NOTHING
    return of_session(state, session, event.params, now)


# --- targets and sessions ---------------------------------------------------------------------------------------------


def _attached(state: BrowserState, event: Event, now: float) -> Step:
    info = fields.mapping(event.params, "targetInfo")
    session_id, target_id = fields.text(event.params, "sessionId"), fields.text(info, "targetId")
    kind = fields.text(info, "type")
    if not session_id or not target_id or kind not in sessions.ATTACHABLE:
        return state, _NOTHING
    if session_id in state.sessions.by_id:  # no id is ever used twice: what we know of it is out of date
        state, _ = _detached(state, event, now)
    if kind == "iframe" and event.session_id not in state.sessions.by_id:
        return state, _NOTHING
    known = sessions.attached(state.sessions, session_id, target_id, event.session_id, now)
    session = known.by_id[session_id]
    state = replace(
        state,
        sessions=known,
        targets=targets.added(state.targets, info) if kind == "page" else state.targets,
        frames=frames.rooted(
            state.frames,
            session_id,
            target_id,
            session.page_id,
            fields.text(info, "parentFrameId") or None,
            fields.text(info, "url"),
        ),
    )
    options = state.options
    return state, sessions.prepare(session_id, options.bridge, options.nonce, asks=state.backend_dismisses)


def _detached(state: BrowserState, event: Event, now: float) -> Step:
    session = state.sessions.by_id.get(fields.text(event.params, "sessionId"))
    if session is None:
        return state, _NOTHING
    left = sessions.detached(state.sessions, session.session_id)
    gone = [s for s in state.sessions.by_id if s not in left.by_id]
    known_frames, known_scripts = state.frames, state.held
    for session_id in gone:
        known_frames = frames.session_gone(known_frames, session_id)
        known_scripts = held.session_gone(known_scripts, session_id)
    before = state
    held_through = [d.dialog_id for d in state.dialogs.pending if d.session_id in gone]
    state = replace(
        state,
        sessions=left,
        frames=known_frames,
        held=known_scripts,
        dialogs=dialogs.gone(state.dialogs, held_through, "lost", now),
    )
    if session.depth == 0:
        state = _page_gone(state, session.target_id, now)
    state, commands = dialog_flow.frames_gone(before, state, "lost", now)
    return state, (*(DetachInterrupts(session_id) for session_id in gone), *commands)


def _destroyed(state: BrowserState, event: Event, now: float) -> Step:
    return _page_gone(state, fields.text(event.params, "targetId"), now), _NOTHING


def _page_gone(state: BrowserState, target_id: str, now: float) -> BrowserState:
    if target_id not in state.targets.pages:
        return state
    return replace(
        state,
        targets=targets.removed(state.targets, target_id),
        frames=frames.page_gone(state.frames, target_id),
        dialogs=dialogs.page_gone(state.dialogs, target_id, now),
    )


def _described(state: BrowserState, event: Event, now: float) -> Step:
    info = fields.mapping(event.params, "targetInfo")
    return replace(state, targets=targets.described(state.targets, info)), _NOTHING


def _target_crashed(state: BrowserState, event: Event, now: float) -> Step:
    session = state.sessions.of_target(fields.text(event.params, "targetId"))
    return (state, _NOTHING) if session is None else _crashed(state, session, event.params, now)


def _crashed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """A renderer is gone. It answers nothing any more; a navigation revives it. The news comes twice."""
    if session.crashed:
        return state, _NOTHING
    known = sessions.crashed(state.sessions, session.session_id, True)
    if session.depth > 0:
        state, commands = dialog_flow.renderer_gone(replace(state, sessions=known), session, now)
        return state, (CrashInterrupts((session.session_id,)), *commands)
    page = session.target_id
    state = replace(
        state,
        sessions=known,
        targets=targets.crashed(state.targets, page, True),
        dialogs=dialogs.page_gone(state.dialogs, page, now),
    )
    return state, (CrashInterrupts(tuple(s.session_id for s in known.of_page(page))),)


# --- frames -----------------------------------------------------------------------------------------------------------


def _frame_attached(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    known = frames.attached(state.frames, session.session_id, session.page_id, params)
    return replace(state, frames=known), _NOTHING


def _frame_navigated(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    described = fields.mapping(params, "frame")
    frame_id = fields.text(described, "id")
    known = state.frames.by_id.get(frame_id)
    began = known is not None and known.navigating_to == fields.text(described, "loaderId")
    since = known.navigating_since if known is not None and began else now
    before, state = (
        state,
        replace(
            state,
            frames=frames.navigated(state.frames, session.session_id, session.page_id, params),
            dialogs=dialogs.navigated(state.dialogs, session.page_id, frame_id, since, now),
        ),
    )
    state, commands = dialog_flow.frames_gone(before, state, "navigation", now)
    if session.crashed and frame_id == session.target_id:
        state = replace(
            state,
            sessions=sessions.crashed(state.sessions, session.session_id, False),
            targets=targets.crashed(state.targets, session.target_id, False),
        )
    if fields.text(params, "type") == "BackForwardCacheRestore":
        # Frames of a page that comes back from the cache are not announced again.
        commands = (*commands, Send(session.session_id, "Page.getFrameTree", tag=SeedFrames(session.session_id)))
    return state, commands


def _frame_stopped(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.stopped(state.frames, params)), _NOTHING


def _frame_navigating(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.navigating(state.frames, params, now)), _NOTHING


def _frame_moved(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.moved(state.frames, params)), _NOTHING


def _frame_detached(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    before, state = state, replace(state, frames=frames.detached(state.frames, params))
    return dialog_flow.frames_gone(before, state, "lost", now)


def _frame_lived(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.lived(state.frames, params)), _NOTHING


def _context_created(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.context_created(state.frames, session.session_id, params)), _NOTHING


def _context_destroyed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.context_destroyed(state.frames, session.session_id, params)), _NOTHING


def _contexts_cleared(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.contexts_cleared(state.frames, session.session_id)), _NOTHING


def _time_passed(state: BrowserState, now: float) -> Step:
    late = sessions.overdue(state.sessions, now)
    return dialog_flow.overdue(state if late is state.sessions else replace(state, sessions=late), now)


# --- console ----------------------------------------------------------------------------------------------------------


def _console_event(
    read: Callable[[Mapping[str, Any], str, float], console.ConsoleEntry],
) -> Callable[[BrowserState, Session, Mapping[str, Any], float], Step]:
    def handle(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
        entry = read(params, session.page_id, now)
        known = console.put(state.console, entry, may_repeat=session.replaying)
        return (state if known is state.console else replace(state, console=known)), _NOTHING

    return handle


def _noticed(state: BrowserState, said: Noticed, now: float) -> BrowserState:
    entry = console.own(said.level, said.text, said.url, state.targets.selected or "", now)
    return replace(state, console=console.put(state.console, entry))


# --- replies and the connection ---------------------------------------------------------------------------------------


def _replied(state: BrowserState, reply: Replied, now: float) -> Step:
    match reply.tag:
        case SeedFrames(session_id):
            session = state.sessions.by_id.get(session_id)
            if session is None:
                return state, _NOTHING
            tree = fields.mapping(reply.result, "frameTree")
            elsewhere = {s.target_id for s in state.sessions.of_page(session.page_id)} - {session.target_id}
            known = frames.reconciled(state.frames, session_id, session.page_id, tree, elsewhere)
            return replace(state, frames=known), _NOTHING
        case Prepare(session_id, "Log.enable"):
            return replace(state, sessions=sessions.caught_up(state.sessions, session_id)), _NOTHING
        case Prepare(session_id, _):
            return replace(state, sessions=sessions.prepared(state.sessions, session_id)), _NOTHING
        case DeliverAnswer(dialog_id):
            return dialog_flow.delivered(state, dialog_id, now)
        case FreeTab():
            return dialog_flow.tab_freed(state, reply.tag, now)
        case ReadQuestion(session_id, handle, frame_id):
            return bridge_flow.question_read(state, session_id, handle, frame_id, reply.result, now)
        case ReadSandbox():
            return bridge_flow.sandbox_read(state, reply.tag, reply.result, now)


def _failed(state: BrowserState, failure: Failed, now: float) -> Step:
    match failure.tag:
        case Prepare():
            return state, _NOTHING  # the session stays as it is: unprepared, and by and by stuck
        case DeliverAnswer(dialog_id):
            return dialog_flow.refused(state, dialog_id, failure.code, failure.message, now)
        case FreeTab():
            return dialog_flow.not_freed(state, failure.tag, now)
        case SeedFrames():
            return state, _NOTHING
        case ReadQuestion(session_id):
            return state, (Send(session_id, "Debugger.resume"),)  # the page must not stay held
        case ReadSandbox():
            return bridge_flow.sandbox_unread(state, failure.tag, now)


def _disconnected(state: BrowserState, reason: str, now: float) -> Step:
    state = replace(
        state,
        connection=replace(state.connection, phase="lost", reason=reason),
        sessions=sessions.Sessions(),
        frames=frames.Frames(),
        held=held.Held(),
        dialogs=dialogs.page_gone(state.dialogs, None, now),
    )
    return state, _NOTHING


_TARGET_EVENTS: Mapping[str, Callable[[BrowserState, Event, float], Step]] = {
    "Target.attachedToTarget": _attached,
    "Target.detachedFromTarget": _detached,
    "Target.targetInfoChanged": _described,
    "Target.targetDestroyed": _destroyed,
    "Target.targetCrashed": _target_crashed,
}
_SESSION_EVENTS: Mapping[str, Callable[[BrowserState, Session, Mapping[str, Any], float], Step]] = {
    "Debugger.paused": bridge_flow.paused,
    "Debugger.resumed": bridge_flow.resumed,
    "Debugger.scriptParsed": bridge_flow.script_parsed,
    "Fetch.requestPaused": bridge_flow.request_paused,
    "Inspector.targetCrashed": _crashed,
    "Log.entryAdded": _console_event(console.noted),
    "Page.frameAttached": _frame_attached,
    "Page.frameDetached": _frame_detached,
    "Page.frameNavigated": _frame_navigated,
    "Page.frameStartedNavigating": _frame_navigating,
    "Page.frameStoppedLoading": _frame_stopped,
    "Page.javascriptDialogClosed": dialog_flow.closed,
    "Page.javascriptDialogOpening": dialog_flow.opening,
    "Page.lifecycleEvent": _frame_lived,
    "Page.navigatedWithinDocument": _frame_moved,
    "Runtime.consoleAPICalled": _console_event(console.logged),
    "Runtime.exceptionThrown": _console_event(console.thrown),
    "Runtime.executionContextCreated": _context_created,
    "Runtime.executionContextDestroyed": _context_destroyed,
    "Runtime.executionContextsCleared": _contexts_cleared,
}
