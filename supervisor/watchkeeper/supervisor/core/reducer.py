"""``step``: the one place where the state changes.

Rules: total and pure. Every input leads to a state; inputs that make no sense leave it as it was. Events of sessions
that we do not know are ignored, for their session is gone or not ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from . import console, dialogs, fields, frames, sessions, targets
from .commands import (
    Command,
    CrashInterrupts,
    DeliverAnswer,
    DetachInterrupts,
    DialogInterrupts,
    Prepare,
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
    Reconnected,
    Replied,
    SelectTab,
    Tick,
)
from .sessions import Session
from .state import BrowserState, Connection

Step = tuple[BrowserState, tuple[Command, ...]]
_NOTHING: tuple[Command, ...] = ()


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
            return _answer(state, dialog_id, dialogs.Response(accept, text, by))
        case SelectTab(target_id):
            return replace(state, targets=targets.selected(state.targets, target_id)), _NOTHING
        case Adopt(target_id):
            return replace(state, targets=targets.added(state.targets, {"targetId": target_id})), _NOTHING
        case Tick():
            return _watchdog(state, now)
        case Disconnected(reason):
            return _disconnected(state, reason, now)
        case Reconnected():
            return replace(state, connection=Connection("up", state.connection.generation + 1)), _NOTHING


def next_deadline(state: BrowserState) -> float | None:
    """When ``Tick`` is due next, in seconds since the epoch."""
    return dialogs.next_deadline(state.dialogs, state.options.dialog_timeout_s)


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
    known = sessions.attached(state.sessions, session_id, target_id, event.session_id)
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
    return state, sessions.prepare(session_id)


def _detached(state: BrowserState, event: Event, now: float) -> Step:
    session = state.sessions.by_id.get(fields.text(event.params, "sessionId"))
    if session is None:
        return state, _NOTHING
    left = sessions.detached(state.sessions, session.session_id)
    gone = [s for s in state.sessions.by_id if s not in left.by_id]
    known_frames = state.frames
    for session_id in gone:
        known_frames = frames.session_gone(known_frames, session_id)
    state = replace(state, sessions=left, frames=known_frames)
    if session.depth == 0:
        state = _page_gone(state, session.target_id, now)
    return state, tuple(DetachInterrupts(session_id) for session_id in gone)


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
    """A renderer is gone. It answers nothing any more; a navigation revives it."""
    known = sessions.crashed(state.sessions, session.session_id, True)
    if session.depth > 0:
        return replace(state, sessions=known), (CrashInterrupts((session.session_id,)),)
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
    frame_id = fields.text(fields.mapping(params, "frame"), "id")
    state = replace(
        state,
        frames=frames.navigated(state.frames, session.session_id, session.page_id, params),
        dialogs=dialogs.navigated(state.dialogs, session.page_id, frame_id, now),
    )
    if session.crashed and frame_id == session.target_id:
        state = replace(
            state,
            sessions=sessions.crashed(state.sessions, session.session_id, False),
            targets=targets.crashed(state.targets, session.target_id, False),
        )
    if fields.text(params, "type") == "BackForwardCacheRestore":
        # Frames of a page that comes back from the cache are not announced again.
        return state, (Send(session.session_id, "Page.getFrameTree", tag=SeedFrames(session.session_id)),)
    return state, _NOTHING


def _frame_moved(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.moved(state.frames, params)), _NOTHING


def _frame_detached(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.detached(state.frames, params)), _NOTHING


def _frame_lived(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.lived(state.frames, params)), _NOTHING


def _context_created(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.context_created(state.frames, session.session_id, params)), _NOTHING


def _context_destroyed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.context_destroyed(state.frames, session.session_id, params)), _NOTHING


def _contexts_cleared(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, frames=frames.contexts_cleared(state.frames, session.session_id)), _NOTHING


# --- dialogs ----------------------------------------------------------------------------------------------------------


def _dialog_opened(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    frame_id = fields.text(params, "frameId") or session.target_id
    page = state.targets.pages.get(session.page_id)
    tab_id = page.tab_id if page else ""
    known, dialog = dialogs.opened(state.dialogs, params, session.page_id, tab_id, frame_id, now)
    state = replace(state, dialogs=known)
    if state.options.dialog_policy == "must_respond":
        return state, (DialogInterrupts(session.page_id, dialog.dialog_id),)
    accept = state.options.dialog_policy == "auto_accept"
    return _answer(
        state,
        dialog.dialog_id,
        dialogs.Response(accept, dialogs.answer_text(dialog, accept, None), "auto_policy"),
    )


def _dialog_closed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    open_here = [d for d in state.dialogs.of_page(session.page_id) if d.via == "native"]
    frame_id = fields.text(params, "frameId")
    closing = next((d for d in open_here if d.frame_id == frame_id), next(iter(open_here), None))
    if closing is None:
        return state, _NOTHING
    accept, text = fields.flag(params, "result"), fields.text(params, "userInput")
    return replace(state, dialogs=dialogs.closed(state.dialogs, closing.dialog_id, accept, text, now)), _NOTHING


def _answer(state: BrowserState, dialog_id: str, response: dialogs.Response) -> Step:
    dialog = next((d for d in state.dialogs.pending if d.dialog_id == dialog_id), None)
    if dialog is None or dialog.response is not None:
        return state, _NOTHING
    session = state.sessions.of_target(dialog.page_id)
    if session is None:
        return state, _NOTHING
    params: dict[str, Any] = {"accept": response.accept}
    if response.text is not None:
        params["promptText"] = response.text
    state = replace(state, dialogs=dialogs.decided(state.dialogs, dialog_id, response))
    return state, (Send(session.session_id, "Page.handleJavaScriptDialog", params, DeliverAnswer(dialog_id)),)


def _watchdog(state: BrowserState, now: float) -> Step:
    commands: list[Command] = []
    for dialog in dialogs.overdue(state.dialogs, state.options.dialog_timeout_s, now):
        state, sent = _answer(state, dialog.dialog_id, dialogs.Response(False, None, "watchdog"))
        commands.extend(sent)
    return state, tuple(commands)


# --- console ----------------------------------------------------------------------------------------------------------


def _logged(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, console=console.logged(state.console, params, session.page_id, now)), _NOTHING


def _thrown(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, console=console.thrown(state.console, params, session.page_id, now)), _NOTHING


def _noted(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    return replace(state, console=console.noted(state.console, params, session.page_id, now)), _NOTHING


# --- replies and the connection ---------------------------------------------------------------------------------------


def _replied(state: BrowserState, reply: Replied, now: float) -> Step:
    match reply.tag:
        case SeedFrames(session_id):
            session = state.sessions.by_id.get(session_id)
            if session is None:
                return state, _NOTHING
            tree = fields.mapping(reply.result, "frameTree")
            known = frames.reconciled(state.frames, session_id, session.page_id, tree)
            return replace(state, frames=known), _NOTHING
        case Prepare(session_id, _):
            return replace(state, sessions=sessions.prepared(state.sessions, session_id)), _NOTHING
        case DeliverAnswer():
            return state, _NOTHING  # the closing event says how it ended


def _failed(state: BrowserState, failure: Failed, now: float) -> Step:
    match failure.tag:
        case Prepare(session_id, _):
            return replace(state, sessions=sessions.stuck(state.sessions, session_id)), _NOTHING
        case DeliverAnswer(dialog_id):
            if failure.code == 0:  # no answer in time: it may still arrive, but another try must be possible
                return replace(state, dialogs=dialogs.undelivered(state.dialogs, dialog_id)), _NOTHING
            # "No dialog is showing": somebody else closed it, and the closing event did not reach us.
            known = dialogs.undelivered(state.dialogs, dialog_id)
            return replace(state, dialogs=dialogs.closed(known, dialog_id, None, None, now)), _NOTHING
        case SeedFrames():
            return state, _NOTHING


def _disconnected(state: BrowserState, reason: str, now: float) -> Step:
    state = replace(
        state,
        connection=replace(state.connection, phase="lost", reason=reason),
        sessions=sessions.Sessions(),
        frames=frames.Frames(),
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
    "Inspector.targetCrashed": _crashed,
    "Log.entryAdded": _noted,
    "Page.frameAttached": _frame_attached,
    "Page.frameDetached": _frame_detached,
    "Page.frameNavigated": _frame_navigated,
    "Page.javascriptDialogClosed": _dialog_closed,
    "Page.javascriptDialogOpening": _dialog_opened,
    "Page.lifecycleEvent": _frame_lived,
    "Page.navigatedWithinDocument": _frame_moved,
    "Runtime.consoleAPICalled": _logged,
    "Runtime.exceptionThrown": _thrown,
    "Runtime.executionContextCreated": _context_created,
    "Runtime.executionContextDestroyed": _context_destroyed,
    "Runtime.executionContextsCleared": _contexts_cleared,
}
