"""The way of a dialog: it opens, somebody decides, the answer is delivered or refused, it closes.

Rules: the intent is recorded before the command is sent. A native dialog is answered on its page's session. A refusal
while the dialog is open as far as we were told means that the browser takes no answer for it: the tab is freed. What
belongs to a frame that is gone is over.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..bridge import leaving
from . import bridged, dialogs, fields, freeing, sessions
from .commands import Command, DeliverAnswer, DialogInterrupts, FreeTab, Send
from .inputs import ClosedBy
from .sessions import Session
from .state import NOTHING, BrowserState, Step


def opening(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Page.javascriptDialogOpening``"""
    if fields.text(params, "type") == "beforeunload" and _decided_to_stay(state, session.page_id, now):
        # The bridge has asked already. What opens now is how a page stays, and wants no second answer.
        return state, (Send(session.session_id, "Page.handleJavaScriptDialog", {"accept": False}),)
    frame_id = fields.text(params, "frameId") or session.target_id
    return opened(state, dialogs.described(params, session.page_id, tab_id(state, session.page_id), frame_id, now))


def opened(state: BrowserState, dialog: dialogs.Dialog) -> Step:
    """A dialog is open, by whichever way: it is answered by the policy, or ends the calls that wait."""
    known, dialog = dialogs.opened(state.dialogs, dialog)
    state = replace(state, dialogs=known)
    if state.options.dialog_policy == "must_respond":
        return state, (DialogInterrupts(state.targets.related(dialog.page_id), dialog.dialog_id),)
    accept = state.options.dialog_policy == "auto_accept"
    text = dialogs.answer_text(dialog, accept, None)
    return answered(state, dialog.dialog_id, dialogs.Response(accept, text, "auto_policy"))


def tab_id(state: BrowserState, page_id: str) -> str:
    page = state.targets.pages.get(page_id)
    return page.tab_id if page else ""


def answered(state: BrowserState, dialog_id: str, response: dialogs.Response) -> Step:
    """Somebody decided; nothing happens where the dialog is over, or somebody decided before."""
    dialog = _pending(state, dialog_id)
    if dialog is None or dialog.response is not None:
        return state, NOTHING
    if dialog.via == "native":
        session = state.sessions.of_target(dialog.page_id)
        if session is None:
            return state, NOTHING
        params: dict[str, Any] = {"accept": response.accept}
        if response.text is not None:
            params["promptText"] = response.text
        commands: tuple[Command, ...] = (
            Send(session.session_id, "Page.handleJavaScriptDialog", params, DeliverAnswer(dialog_id)),
        )
    else:
        commands = bridged.deliver(dialog, response)
    return replace(state, dialogs=dialogs.decided(state.dialogs, dialog_id, response)), commands


def delivered(state: BrowserState, dialog_id: str, now: float) -> Step:
    """A command that answers a dialog was accepted."""
    dialog = _pending(state, dialog_id)
    if dialog is None or dialog.via == "native":
        return state, NOTHING  # the closing event says how it ended
    if dialog.via == "xhr":
        return replace(state, dialogs=dialogs.closed(state.dialogs, dialog_id, None, None, now)), NOTHING
    return replace(state, dialogs=dialogs.written(state.dialogs, dialog_id)), (bridged.let_go(dialog),)


def refused(state: BrowserState, dialog_id: str, code: int, message: str, now: float) -> Step:
    """A command that answers a dialog was refused (``code``), or not answered in time (0)."""
    dialog = _pending(state, dialog_id)
    if dialog is None:
        return state, NOTHING  # it closed before our answer came; the event, which comes first, said so
    if code == 0:  # the answer may still arrive, but another try must be possible
        return replace(state, dialogs=dialogs.undelivered(state.dialogs, dialog_id)), NOTHING
    if dialog.via != "native":
        # The page is not where it was held. Nothing is known of how it went on, but it must not stay held.
        known = dialogs.closed(dialogs.undelivered(state.dialogs, dialog_id), dialog_id, None, None, now)
        released = (bridged.let_go(dialog),) if dialog.via == "debugger" else NOTHING
        return replace(state, dialogs=known), released
    session = state.sessions.of_target(dialog.page_id)
    if session is None:
        return replace(state, dialogs=dialogs.undelivered(state.dialogs, dialog_id)), NOTHING
    freed = freeing.after_refusal(session.session_id, dialog_id, _address(state, dialog.page_id), message)
    restores = any(isinstance(c, Send) and isinstance(c.tag, FreeTab) and c.tag.restore for c in freed)
    return replace(state, dialogs=dialogs.unanswerable(state.dialogs, dialog_id, "asked" if restores else "")), freed


def tab_freed(state: BrowserState, tag: FreeTab, now: float) -> Step:
    """The navigation that frees a tab is done. What is sent from here on finds the page at its own address."""
    return _after_freeing(state, tag, now), freeing.restored(tag)


def not_freed(state: BrowserState, tag: FreeTab, now: float) -> Step:
    """A tab could not be freed: where its dialog is open still, another try must be possible."""
    state = _after_freeing(state, tag, now)
    return replace(state, dialogs=dialogs.undelivered(state.dialogs, tag.dialog_id)), NOTHING


def _after_freeing(state: BrowserState, tag: FreeTab, now: float) -> BrowserState:
    dialog = _pending(state, tag.dialog_id)
    if dialog is None:
        return state
    if dialog.restoring == "closed":
        return replace(state, dialogs=dialogs.closed(state.dialogs, dialog.dialog_id, False, None, now))
    return replace(state, dialogs=dialogs.restoring(state.dialogs, dialog.dialog_id, ""))


def closed(state: BrowserState, session: Session, params: Mapping[str, Any], now: float) -> Step:
    """``Page.javascriptDialogClosed``"""
    open_here = [d for d in state.dialogs.of_page(session.page_id) if d.via == "native"]
    frame_id = fields.text(params, "frameId")
    closing = next((d for d in open_here if d.frame_id == frame_id), next(iter(open_here), None))
    if closing is None:
        return state, NOTHING
    if closing.restoring:
        return replace(state, dialogs=dialogs.restoring(state.dialogs, closing.dialog_id, "closed")), NOTHING
    accept, text = fields.flag(params, "result"), fields.text(params, "userInput")
    by_navigation = not accept and _navigating_since(state, closing) >= closing.opened_at
    displaced = any(d.opened_at > closing.opened_at for d in open_here)
    by: ClosedBy = "navigation" if by_navigation else "remote"
    known = dialogs.closed(state.dialogs, closing.dialog_id, accept, text, now, by=by)
    state = replace(state, dialogs=known)
    hasty = now - closing.opened_at <= dialogs.HASTE_S and not accept
    explained = by_navigation or displaced or closing.unanswerable or (closing.response and not closing.response.accept)
    if not hasty or explained or state.backend_dismisses:
        return state, NOTHING
    return _ask_from_now_on(replace(state, backend_dismisses=True))


def overdue(state: BrowserState, now: float) -> Step:
    """The watchdog dismisses what nobody answered in time."""
    commands: list[Command] = []
    for dialog in dialogs.overdue(state.dialogs, state.options.dialog_timeout_s, now):
        state, sent = answered(state, dialog.dialog_id, dialogs.Response(False, None, "watchdog"))
        commands.extend(sent)
    return state, tuple(commands)


def frames_gone(before: BrowserState, state: BrowserState, by: ClosedBy, now: float) -> Step:
    """Dialogs of frames that ``before`` had and ``state`` has not are over, and what they leave behind is cleared."""
    gone = [
        d
        for d in state.dialogs.pending
        if d.frame_id in before.frames.by_id and d.frame_id not in state.frames.by_id and d.frame_id != d.page_id
    ]
    if not gone:
        return state, NOTHING
    known = dialogs.gone(state.dialogs, [d.dialog_id for d in gone], by, now)
    commands: list[Command] = []
    for page_id in {d.page_id for d in gone if d.via == "native"}:
        session = state.sessions.of_target(page_id)
        if session is not None:
            prepare = sessions.prepare(
                session.session_id, state.options.bridge, state.options.nonce, asks=state.backend_dismisses
            )
            commands.extend(freeing.after_removal(session.session_id, _address(state, page_id), prepare))
    return replace(state, dialogs=known), tuple(commands)


def renderer_gone(state: BrowserState, session: Session, now: float) -> Step:
    """An iframe's renderer crashed: nobody waits for its dialogs any more, but the browser still shows a native one."""
    frames = state.frames.by_id
    over = [
        d
        for d in state.dialogs.pending
        if d.session_id == session.session_id
        or (d.frame_id in frames and frames[d.frame_id].session_id == session.session_id)
    ]
    page = state.sessions.of_target(session.page_id)
    commands = tuple(
        Send(page.session_id, "Page.handleJavaScriptDialog", {"accept": False})
        for d in over
        if d.via == "native" and page is not None
    )
    return replace(state, dialogs=dialogs.gone(state.dialogs, [d.dialog_id for d in over], "lost", now)), commands


def _ask_from_now_on(state: BrowserState) -> Step:
    """Somebody closes dialogs by machine: the bridge asks before a page is left, too, also those that are there."""
    bridge, nonce = state.options.bridge, state.options.nonce
    commands = [c for s in state.sessions.by_id for c in sessions.ask_before_leaving(s, bridge, nonce)]
    expression = leaving.script(bridge, nonce)
    for context in state.frames.contexts.values():
        if context.is_default:
            params = {"expression": expression, "uniqueContextId": context.unique_id, "includeCommandLineAPI": True}
            commands.append(Send(context.session_id, "Runtime.evaluate", params))
    return state, tuple(commands)


def _pending(state: BrowserState, dialog_id: str) -> dialogs.Dialog | None:
    return next((d for d in state.dialogs.pending if d.dialog_id == dialog_id), None)


def _address(state: BrowserState, page_id: str) -> str:
    top = state.frames.by_id.get(page_id)
    return top.url if top else ""


def _navigating_since(state: BrowserState, dialog: dialogs.Dialog) -> float:
    """When the last navigation of a dialog's frame, or of its tab, began; 0 where none did."""
    frames = state.frames.by_id
    return max(frames[f].navigating_since if f in frames else 0.0 for f in (dialog.frame_id, dialog.page_id))


def _decided_to_stay(state: BrowserState, page_id: str, now: float) -> bool:
    """Whether a bridge asked just now whether to leave this page, and the answer was to stay."""
    return any(
        d.type == "beforeunload"
        and d.via != "native"
        and d.page_id == page_id
        and d.response is not None
        and not d.response.accept
        and now - (d.closed_at or now) <= dialogs.NAVIGATION_WINDOW_S
        for d in (*state.dialogs.pending, *state.dialogs.recent)
    )
