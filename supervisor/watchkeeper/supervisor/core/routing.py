"""Where a CDP call goes: which session, and what confines it to the frame it is meant for.

Rules: a call for a frame runs in that frame or not at all; nothing ever runs silently in the top page instead. A call
never reaches a target of another task. Pure: a ``Route`` or an ``Unroutable`` that says what would work.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Runtime/#method-evaluate (``uniqueContextId``)
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import fields
from .frames import Context, Frame
from .methods import (
    ADDRESSES_OBJECT,
    BROWSER_DOMAINS,
    BROWSER_PROCESS,
    INSTEAD_IN_FRAME,
    REFUSED,
    REFUSED_DOMAINS,
    TAKES_CONTEXT,
    TAKES_FRAME_ID,
)
from .sessions import Session
from .state import BrowserState

CANDIDATES = 5


@dataclass(frozen=True, slots=True)
class Route:
    """Send ``params`` on ``session_id`` (None: the browser). ``frame_id`` is the frame meant, when one is."""

    session_id: str | None
    params: Mapping[str, Any]
    page_id: str | None = None
    frame_id: str | None = None
    needs_isolated_world: bool = False
    """The frame has no main context that we know of: create a world in it first."""


@dataclass(frozen=True, slots=True)
class Unroutable:
    """Why a call cannot be sent. ``kind`` names the error."""

    kind: Literal["unknown_frame", "unknown_target", "no_page", "refused", "crashed", "stuck"]
    message: str
    hint: str


def route(
    state: BrowserState,
    method: str,
    params: Mapping[str, Any],
    *,
    frame_id: str | None = None,
    target_id: str | None = None,
    context_id: str | None = None,
) -> Route | Unroutable:
    """Find the session for a call.

    ``frame_id`` and ``target_id`` may be CDP ids or short names (``f3``, ``t2``); ``context_id`` is the task's browser
    context, None where the task shares the default one.
    """
    if method in REFUSED:
        return Unroutable("refused", f"{method} is not passed on.", REFUSED[method])
    domain = method.partition(".")[0]
    if domain in REFUSED_DOMAINS:
        return Unroutable("refused", f"{method} is not passed on.", REFUSED_DOMAINS[domain])
    if frame_id is None and target_id is None and domain in BROWSER_DOMAINS:
        return _browser_route(state, method, params, context_id)
    page_id = _page(state, target_id)
    if isinstance(page_id, Unroutable):
        return page_id
    if frame_id is None:
        session = state.sessions.of_target(page_id)
        if session is None:
            return Unroutable(
                "no_page",
                f"Tab {page_id} is not attached yet.",
                "Call again in a moment, or open the address with browser_navigate.",
            )
        return _checked(method, session, Route(session.session_id, params, page_id))
    frame = state.frames.find(frame_id, page_id)
    if frame is None:
        return _unknown_frame(state, frame_id, page_id)
    return _frame_route(state, method, params, frame)


def _frame_route(state: BrowserState, method: str, params: Mapping[str, Any], frame: Frame) -> Route | Unroutable:
    session = state.sessions.by_id.get(frame.session_id)
    if session is None:
        return Unroutable(
            "unknown_frame",
            f"Frame {frame.short} is moving between processes and has no session just now.",
            "Take a browser_snapshot and use the frame ids in it.",
        )
    here = Route(session.session_id, params, frame.page_id, frame.frame_id)
    if method == "DOM.getFrameOwner" and frame.parent_id is not None:
        parent = state.frames.by_id.get(frame.parent_id)
        owner = parent.session_id if parent is not None else session.session_id
        return Route(owner, {**params, "frameId": frame.frame_id}, frame.page_id, frame.frame_id)
    if method in TAKES_FRAME_ID:
        return _checked(method, session, _with(here, {"frameId": frame.frame_id}))
    if any(key in params for key in ADDRESSES_OBJECT):
        return _checked(method, session, here)
    if method in TAKES_CONTEXT:
        context = state.frames.main_context(frame.frame_id)
        if context is None:
            return _checked(method, session, Route(here.session_id, params, here.page_id, here.frame_id, True))
        return _checked(method, session, _with(here, {"uniqueContextId": context.unique_id}))
    if method in ("Runtime.globalLexicalScopeNames", "Runtime.compileScript"):
        number = _context_number(state.frames.main_context(frame.frame_id))
        if number is not None:
            return _checked(method, session, _with(here, {"executionContextId": number}))
    if frame.frame_id == session.target_id:
        return _checked(method, session, here)
    instead = INSTEAD_IN_FRAME.get(method.partition(".")[0], "Runtime.evaluate takes this frame_id.")
    return Unroutable(
        "refused",
        f"{method} cannot be confined to frame {frame.short}, which shares a process with its parent; nothing was run.",
        instead,
    )


def _browser_route(
    state: BrowserState, method: str, params: Mapping[str, Any], context_id: str | None
) -> Route | Unroutable:
    named = fields.text(params, "targetId")
    if named:
        page = state.targets.by_name(named)
        frame = state.frames.by_id.get(named)
        if page is None and frame is None:
            return Unroutable("unknown_target", f"Target {named[:80]} is not one of this task's.", _tabs(state))
        params = {**params, "targetId": page.target_id if page else named}
    elif method in ("Target.activateTarget", "Target.closeTarget", "Browser.getWindowForTarget"):
        if state.targets.selected is None:
            return _no_page()
        params = {**params, "targetId": state.targets.selected}
    other = fields.text(params, "browserContextId")
    if other and other != context_id:
        return Unroutable("refused", "Another task's browser context cannot be reached.", "Leave browserContextId out.")
    if context_id is not None and (method.startswith("Storage.") or method in _TAKES_BROWSER_CONTEXT):
        params = {**params, "browserContextId": context_id}
    return Route(None, params)


_TAKES_BROWSER_CONTEXT = frozenset(
    {
        "Browser.grantPermissions",
        "Browser.resetPermissions",
        "Browser.setDownloadBehavior",
        "Browser.setPermission",
        "Target.createTarget",
    }
)


def _page(state: BrowserState, target_id: str | None) -> str | Unroutable:
    if target_id is None:
        return state.targets.selected or _no_page()
    page = state.targets.by_name(target_id)
    if page is None:
        return Unroutable("unknown_target", f"There is no tab {target_id[:80]!r} in this task.", _tabs(state))
    return page.target_id


def _checked(method: str, session: Session, found: Route) -> Route | Unroutable:
    if session.crashed and method not in BROWSER_PROCESS:
        return Unroutable(
            "crashed",
            "The renderer of this page has crashed; it answers nothing.",
            "browser_navigate revives it; what the page held in memory is gone.",
        )
    if session.stuck and method not in BROWSER_PROCESS:
        return Unroutable(
            "stuck",
            "This page has not answered since it was attached: a dialog that was open before holds it, or it is busy.",
            "browser_dialog with action 'dismiss' frees it: the dialog returns false, and the page keeps its state.",
        )
    return found


def _with(found: Route, more: Mapping[str, Any]) -> Route:
    return Route(found.session_id, {**found.params, **more}, found.page_id, found.frame_id)


def _context_number(context: Context | None) -> int | None:
    return None if context is None else context.number


def _no_page() -> Unroutable:
    return Unroutable("no_page", "This task has no open tab.", "Open one with browser_navigate.")


def _tabs(state: BrowserState) -> str:
    known = ", ".join(f"{page.tab_id} ({page.url[:60]})" for page in list(state.targets.pages.values())[:CANDIDATES])
    return f"Open tabs: {known}." if known else "No tab is open: call browser_navigate first."


def _unknown_frame(state: BrowserState, name: str, page_id: str) -> Unroutable:
    known = state.frames.of_page(page_id)
    names = {frame.short: frame for frame in known} | {frame.frame_id: frame for frame in known}
    close = [names[n] for n in difflib.get_close_matches(name[:200], names, CANDIDATES, 0.5)]
    shown = list(dict.fromkeys([*close, *known]))[:CANDIDATES]
    listed = ", ".join(f"{frame.short} ({frame.url[:60] or 'no address yet'})" for frame in shown)
    return Unroutable(
        "unknown_frame",
        f"There is no frame {name[:80]!r} in the selected tab.",
        f"Frames: {listed}. The frame_tree of browser_snapshot has them all." if listed else "Take a browser_snapshot.",
    )
