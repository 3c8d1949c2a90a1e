"""Events by which bridges speak to us: the page stops, we read what it asks, a dialog opens.

Rules: a pause or a request that is not a question of ours is let go at once. Before the dialog of an iframe opens, the
sandboxes above it are read.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..bridge import debugger, xhr
from . import bridged, dialog_flow, dialogs, fields, held
from .commands import Asked, ReadSandbox, Send
from .sessions import Session
from .state import NOTHING, BrowserState, Step


def script_parsed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Debugger.scriptParsed``"""
    known = held.script_parsed(state.held, session.session_id, params, debugger.SCRIPT_URL)
    return (state if known is state.held else replace(state, held=known)), NOTHING


def paused(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Debugger.paused``"""
    if not debugger.is_ours(params):
        return state, (Send(session.session_id, "Debugger.resume"),)
    return state, (bridged.take_over(state.held, session, debugger.innermost(params)),)


def resumed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Debugger.resumed``: the page goes on, by our answer, or because somebody or a navigation let it."""
    for dialog in state.dialogs.pending:
        if dialog.via == "debugger" and dialog.session_id == session.session_id:
            known = state.dialogs if dialog.written else dialogs.undelivered(state.dialogs, dialog.dialog_id)
            state = replace(state, dialogs=dialogs.closed(known, dialog.dialog_id, None, None, now))
    return state, NOTHING


def request_paused(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Fetch.requestPaused``"""
    if state.options.bridge != "xhr" or not xhr.is_bridge(params):
        return state, NOTHING
    request_id, frame_id = fields.text(params, "requestId"), fields.text(params, "frameId") or session.target_id
    question = xhr.read(params, state.options.nonce)
    if question is None:
        refuse = {"requestId": request_id, "errorReason": "BlockedByClient"}
        return state, (Send(session.session_id, "Fetch.failRequest", refuse),)
    asked_by = Asked(session.session_id, request_id, frame_id, "xhr", question, xhr.origin(params))
    if question.type == "beforeunload":
        return _told(state, session, asked_by, now)
    return asked(state, asked_by, now)


def question_read(state: BrowserState, session_id: str, handle: str, frame_id: str, result: Any, now: float) -> Step:
    """The reply to what took a question over from a page that the debugger holds."""
    question = debugger.read(result)
    if question is None:
        return state, (Send(session_id, "Debugger.resume"),)
    session = state.sessions.by_id.get(session_id)
    frame_id = frame_id or (session.target_id if session else "")
    return asked(state, Asked(session_id, handle, frame_id, "debugger", question), now)


def asked(state: BrowserState, asked_by: Asked, now: float) -> Step:
    """A bridge holds a question: look for a sandbox above its frame, then open the dialog."""
    return look_above(state, asked_by, asked_by.frame_id, now)


def look_above(state: BrowserState, asked_by: Asked, frame_id: str, now: float) -> Step:
    """Ask for the sandbox of this frame's element; open the dialog where no frame above it has one."""
    frame = state.frames.by_id.get(frame_id)
    parent = state.frames.by_id.get(frame.parent_id) if frame and frame.parent_id else None
    session = state.sessions.by_id.get(parent.session_id) if parent else None
    if asked_by.via == "xhr" and session is not None and session.session_id == asked_by.session_id:
        session = None  # a synchronous request blocks its whole process: there is nobody to ask
    if session is not None:
        find = Send(session.session_id, "DOM.getFrameOwner", {"frameId": frame_id}, ReadSandbox(asked_by, frame_id))
        return state, (find,)
    dialog = _dialog(state, asked_by, now)
    return (state, NOTHING) if dialog is None else dialog_flow.opened(state, dialog)


def sandbox_read(state: BrowserState, tag: ReadSandbox, result: Mapping[str, Any], now: float) -> Step:
    """First the element of a frame is found, then its attributes are read."""
    frame = state.frames.by_id.get(tag.owner_of)
    parent = state.frames.by_id.get(frame.parent_id) if frame and frame.parent_id else None
    if parent is None:
        return look_above(state, tag.asked, tag.owner_of, now)
    if not tag.node_id:
        node_id = fields.integer(result, "backendNodeId")
        describe = Send(
            parent.session_id, "DOM.describeNode", {"backendNodeId": node_id}, replace(tag, node_id=node_id or -1)
        )
        return state, (describe,)
    if held.forbids_modals(fields.mapping(result, "node").get("attributes")):
        return state, bridged.silence(tag.asked)
    return look_above(state, tag.asked, parent.frame_id, now)


def sandbox_unread(state: BrowserState, tag: ReadSandbox, now: float) -> Step:
    """A frame whose sandbox cannot be read is taken for one that has none."""
    frame = state.frames.by_id.get(tag.owner_of)
    return look_above(state, tag.asked, (frame.parent_id if frame else None) or "", now)


def _told(state: BrowserState, session: Session, asked_by: Asked, now: float) -> Step:
    """A page that would have asked before it was left: no request can hold it then, so it is left, and this is told."""
    over = bridged.silence(asked_by)
    dialog = _dialog(state, asked_by, now)
    if dialog is None:
        return state, over
    known, dialog = dialogs.opened(state.dialogs, dialog)
    known = dialogs.decided(known, dialog.dialog_id, dialogs.Response(True, None, "auto_policy"))
    return replace(state, dialogs=dialogs.closed(known, dialog.dialog_id, None, None, now)), over


def _dialog(state: BrowserState, asked_by: Asked, now: float) -> dialogs.Dialog | None:
    owner = state.sessions.by_id.get(asked_by.session_id)
    if owner is None:
        return None
    params, tab_id = asked_by.question.as_params(), dialog_flow.tab_id(state, owner.page_id)
    dialog = dialogs.described(params, owner.page_id, tab_id, asked_by.frame_id, now)
    return replace(
        dialog, via=asked_by.via, session_id=asked_by.session_id, handle=asked_by.handle, origin=asked_by.origin
    )
