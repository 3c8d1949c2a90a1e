"""``step``: the one place where the state changes.

Rules: total and pure. Every input leads to a state; inputs that make no sense leave it as it was. Events of sessions
that we do not know are ignored, for their session is gone or not ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..bridge import debugger, xhr
from . import bridged, console, dialogs, fields, frames, held, sessions, targets
from .commands import (
    Asked,
    Command,
    CrashInterrupts,
    DeliverAnswer,
    DetachInterrupts,
    DialogInterrupts,
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
    return state, sessions.prepare(session_id, state.options.bridge, state.options.nonce)


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
    state = replace(
        state,
        sessions=left,
        frames=known_frames,
        held=known_scripts,
        dialogs=dialogs.sessions_gone(state.dialogs, gone, now),
    )
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
    """A renderer is gone. It answers nothing any more; a navigation revives it. The news comes twice."""
    if session.crashed:
        return state, _NOTHING
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


def _dialog_opening(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    frame_id = fields.text(params, "frameId") or session.target_id
    tab_id = _tab_id(state, session.page_id)
    return _open(state, dialogs.described(params, session.page_id, tab_id, frame_id, now))


def _open(state: BrowserState, dialog: dialogs.Dialog) -> Step:
    known, dialog = dialogs.opened(state.dialogs, dialog)
    state = replace(state, dialogs=known)
    if state.options.dialog_policy == "must_respond":
        return state, (DialogInterrupts(state.targets.related(dialog.page_id), dialog.dialog_id),)
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
    commands = bridged.deliver(dialog, response) if dialog.via != "native" else _native_answer(state, dialog, response)
    if not commands:
        return state, _NOTHING
    return replace(state, dialogs=dialogs.decided(state.dialogs, dialog_id, response)), commands


def _native_answer(state: BrowserState, dialog: dialogs.Dialog, response: dialogs.Response) -> tuple[Command, ...]:
    """Native dialogs are answered on the page's session, also those of out-of-process iframes."""
    session = state.sessions.of_target(dialog.page_id)
    if session is None:
        return _NOTHING
    params: dict[str, Any] = {"accept": response.accept}
    if response.text is not None:
        params["promptText"] = response.text
    return (Send(session.session_id, "Page.handleJavaScriptDialog", params, DeliverAnswer(dialog.dialog_id)),)


def _tab_id(state: BrowserState, page_id: str) -> str:
    page = state.targets.pages.get(page_id)
    return page.tab_id if page else ""


# --- bridges ----------------------------------------------------------------------------------------------------------


def _script_parsed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    known = held.script_parsed(state.held, session.session_id, params, debugger.SCRIPT_URL)
    return (state if known is state.held else replace(state, held=known)), _NOTHING


def _paused(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    if not debugger.is_ours(params):
        return state, (Send(session.session_id, "Debugger.resume"),)
    return state, (bridged.take_over(state.held, session, debugger.innermost(params)),)


def _resumed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """The page goes on: by our answer, or because somebody or a navigation let it."""
    for dialog in state.dialogs.pending:
        if dialog.via == "debugger" and dialog.session_id == session.session_id:
            known = state.dialogs if dialog.written else dialogs.undelivered(state.dialogs, dialog.dialog_id)
            state = replace(state, dialogs=dialogs.closed(known, dialog.dialog_id, None, None, now))
    return state, _NOTHING


def _request_paused(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    if state.options.bridge != "xhr" or not xhr.is_bridge(params):
        return state, _NOTHING
    request_id, frame_id = fields.text(params, "requestId"), fields.text(params, "frameId") or session.target_id
    question = xhr.read(params, state.options.nonce)
    if question is None:
        refuse = {"requestId": request_id, "errorReason": "BlockedByClient"}
        return state, (Send(session.session_id, "Fetch.failRequest", refuse),)
    return _ask(state, Asked(session.session_id, request_id, frame_id, "xhr", question, xhr.origin(params)), now)


def _ask(state: BrowserState, asked: Asked, now: float) -> Step:
    """A bridge holds a question: look for a sandbox above its frame, then open the dialog."""
    return _look_above(state, asked, asked.frame_id, now)


def _look_above(state: BrowserState, asked: Asked, frame_id: str, now: float) -> Step:
    frame = state.frames.by_id.get(frame_id)
    parent = state.frames.by_id.get(frame.parent_id) if frame and frame.parent_id else None
    session = state.sessions.by_id.get(parent.session_id) if parent else None
    if asked.via == "xhr" and session is not None and session.session_id == asked.session_id:
        session = None  # a synchronous request blocks its whole process: there is nobody to ask
    if session is not None:
        find = Send(session.session_id, "DOM.getFrameOwner", {"frameId": frame_id}, ReadSandbox(asked, frame_id))
        return state, (find,)
    owner = state.sessions.by_id.get(asked.session_id)
    if owner is None:
        return state, _NOTHING
    params = asked.question.as_params()
    dialog = dialogs.described(params, owner.page_id, _tab_id(state, owner.page_id), asked.frame_id, now)
    return _open(
        state,
        replace(dialog, via=asked.via, session_id=asked.session_id, handle=asked.handle, origin=asked.origin),
    )


def _sandbox_read(state: BrowserState, tag: ReadSandbox, result: Mapping[str, Any], now: float) -> Step:
    frame = state.frames.by_id.get(tag.owner_of)
    parent = state.frames.by_id.get(frame.parent_id) if frame and frame.parent_id else None
    if parent is None:
        return _look_above(state, tag.asked, tag.owner_of, now)
    if not tag.node_id:
        node_id = fields.integer(result, "backendNodeId")
        describe = Send(
            parent.session_id, "DOM.describeNode", {"backendNodeId": node_id}, replace(tag, node_id=node_id or -1)
        )
        return state, (describe,)
    if held.forbids_modals(fields.mapping(result, "node").get("attributes")):
        return state, bridged.silence(tag.asked)
    return _look_above(state, tag.asked, parent.frame_id, now)


def _watchdog(state: BrowserState, now: float) -> Step:
    commands: list[Command] = []
    late = sessions.overdue(state.sessions, now)
    state = state if late is state.sessions else replace(state, sessions=late)
    for dialog in dialogs.overdue(state.dialogs, state.options.dialog_timeout_s, now):
        state, sent = _answer(state, dialog.dialog_id, dialogs.Response(False, None, "watchdog"))
        commands.extend(sent)
    return state, tuple(commands)


# --- console ----------------------------------------------------------------------------------------------------------


def _console_event(
    read: Callable[[Mapping[str, Any], str, float], console.ConsoleEntry],
) -> Callable[[BrowserState, Session, Mapping[str, Any], float], Step]:
    def handle(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
        entry = read(params, session.page_id, now)
        known = console.put(state.console, entry, may_repeat=session.replaying)
        return (state if known is state.console else replace(state, console=known)), _NOTHING

    return handle


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
        case Prepare(session_id, "Log.enable"):
            return replace(state, sessions=sessions.caught_up(state.sessions, session_id)), _NOTHING
        case Prepare(session_id, _):
            return replace(state, sessions=sessions.prepared(state.sessions, session_id)), _NOTHING
        case DeliverAnswer(dialog_id):
            return _delivered(state, dialog_id, now)
        case ReadQuestion(session_id, handle, frame_id):
            question = debugger.read(reply.result)
            if question is None:
                return state, (Send(session_id, "Debugger.resume"),)
            session = state.sessions.by_id.get(session_id)
            frame_id = frame_id or (session.target_id if session else "")
            return _ask(state, Asked(session_id, handle, frame_id, "debugger", question), now)
        case ReadSandbox():
            return _sandbox_read(state, reply.tag, reply.result, now)


def _failed(state: BrowserState, failure: Failed, now: float) -> Step:
    match failure.tag:
        case Prepare():
            return state, _NOTHING  # the session stays as it is: unprepared, and by and by stuck
        case DeliverAnswer(dialog_id):
            if failure.code == 0:  # no answer in time: it may still arrive, but another try must be possible
                return replace(state, dialogs=dialogs.undelivered(state.dialogs, dialog_id)), _NOTHING
            # "No dialog is showing": somebody else closed it, and the closing event did not reach us.
            known = dialogs.undelivered(state.dialogs, dialog_id)
            return replace(state, dialogs=dialogs.closed(known, dialog_id, None, None, now)), _NOTHING
        case SeedFrames():
            return state, _NOTHING
        case ReadQuestion(session_id):
            return state, (Send(session_id, "Debugger.resume"),)  # the page must not stay held
        case ReadSandbox(asked, owner_of):
            frame = state.frames.by_id.get(owner_of)
            return _look_above(state, asked, (frame.parent_id if frame else None) or "", now)


def _delivered(state: BrowserState, dialog_id: str, now: float) -> Step:
    """A command that answers a dialog was accepted."""
    dialog = next((d for d in state.dialogs.pending if d.dialog_id == dialog_id), None)
    if dialog is None or dialog.via == "native":
        return state, _NOTHING  # the closing event says how it ended
    if dialog.via == "xhr":
        return replace(state, dialogs=dialogs.closed(state.dialogs, dialog_id, None, None, now)), _NOTHING
    return replace(state, dialogs=dialogs.written(state.dialogs, dialog_id)), (bridged.let_go(dialog),)


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
    "Debugger.paused": _paused,
    "Debugger.resumed": _resumed,
    "Debugger.scriptParsed": _script_parsed,
    "Fetch.requestPaused": _request_paused,
    "Inspector.targetCrashed": _crashed,
    "Log.entryAdded": _console_event(console.noted),
    "Page.frameAttached": _frame_attached,
    "Page.frameDetached": _frame_detached,
    "Page.frameNavigated": _frame_navigated,
    "Page.javascriptDialogClosed": _dialog_closed,
    "Page.javascriptDialogOpening": _dialog_opening,
    "Page.lifecycleEvent": _frame_lived,
    "Page.navigatedWithinDocument": _frame_moved,
    "Runtime.consoleAPICalled": _console_event(console.logged),
    "Runtime.exceptionThrown": _console_event(console.thrown),
    "Runtime.executionContextCreated": _context_created,
    "Runtime.executionContextDestroyed": _context_destroyed,
    "Runtime.executionContextsCleared": _contexts_cleared,
}
