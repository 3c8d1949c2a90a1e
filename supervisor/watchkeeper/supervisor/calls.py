"""One CDP call of a caller: routed, checked, sent, and ended early where no answer can come.

Rules: a call that would wait behind a dialog is not sent. Beside a page that the debugger holds most calls go on, but
none waits for a promise, for none settles. A call for a frame waits a moment for the frame's context, then makes a
world of its own there; it never runs elsewhere.
"""

from collections.abc import Mapping
from typing import Any

from .core import fields
from .core.methods import BROWSER_PROCESS
from .core.quoting import quoted
from .core.routing import Route, Unroutable, route
from .core.state import BrowserState
from .errors import (
    CallTimeout,
    EvaluationFailed,
    MethodRefused,
    NoPage,
    SupervisorError,
    TabStuck,
    TargetClosed,
    TargetCrashed,
    UnknownFrame,
    UnknownTarget,
)
from .interruption import dialog_opened
from .shell import Shell

CONTEXT_TIMEOUT_S = 1.0
BESIDE_NAVIGATION_TIMEOUT_S = 5.0
BESIDE_DIALOG_TIMEOUT_S = 3.0
_ERRORS: Mapping[str, type[SupervisorError]] = {
    "unknown_frame": UnknownFrame,
    "unknown_target": UnknownTarget,
    "no_page": NoPage,
    "refused": MethodRefused,
    "crashed": TargetCrashed,
    "stuck": TabStuck,
}


async def call(
    shell: Shell,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    frame_id: str | None = None,
    target_id: str | None = None,
    session_id: str | None = None,
    timeout: float | None = None,
) -> Mapping[str, Any]:
    """As ``Supervisor.call``, which says what is raised."""
    shell.require_connection()
    with shell.use.during():
        return await _call(shell, method, params or {}, frame_id, target_id, session_id, shell.clamped(timeout))


async def _call(
    shell: Shell,
    method: str,
    params: Mapping[str, Any],
    frame_id: str | None,
    target_id: str | None,
    session_id: str | None,
    timeout: float,
) -> Mapping[str, Any]:
    found = _routed(shell, method, params, frame_id, target_id, session_id)
    _past_dialogs(shell, method, found, timeout)
    if found.needs_isolated_world:
        found = await _with_context(shell, method, found, params)
    shell.boundary.check_call(method, found.params)
    if method == "Page.navigateToHistoryEntry":
        await _check_history(shell, found, timeout)
    found, timeout = _past_dialogs(shell, method, found, timeout)
    if _awaits_response(shell.state, method, found):
        timeout = min(timeout, BESIDE_NAVIGATION_TIMEOUT_S)
    if found.needs_isolated_world:
        found = await _in_isolated_world(shell, found, timeout)
    try:
        result = await shell.browser.runner.call(
            found.session_id, method, found.params, timeout=timeout, page_id=found.page_id
        )
    except CallTimeout:
        if found.page_id is not None and shell.state.dialogs.pending:
            raise dialog_opened(method, shell.snapshot().pending_dialogs) from None
        if _awaits_response(shell.state, method, found):
            raise CallTimeout(
                f"{method} was not answered: the tab waits for the response of a navigation, and answers nothing until "
                "then.",
                "Wait for the page, open another address with browser_navigate, or call Page.stopLoading.",
            ) from None
        raise
    return _own_part(shell.state, method, result)


def _awaits_response(state: BrowserState, method: str, found: Route) -> bool:
    top = state.frames.by_id.get(found.page_id or "")
    return top is not None and top.awaits_response and method not in BROWSER_PROCESS


def evaluated(result: Mapping[str, Any]) -> Any:
    """The value of a ``Runtime.evaluate`` by value. Raises EvaluationFailed where the script threw."""
    details = fields.mapping(result, "exceptionDetails")
    if details:
        exception = fields.mapping(details, "exception")
        said = fields.text(exception, "description") or str(exception.get("value", fields.text(details, "text")))
        raise EvaluationFailed(f"The script threw: {quoted(said[:2000])}.", "Mend the script; the page was not left.")
    value = fields.mapping(result, "result")
    return value.get("value", value.get("unserializableValue"))


def _routed(
    shell: Shell,
    method: str,
    params: Mapping[str, Any],
    frame_id: str | None,
    target_id: str | None,
    session_id: str | None,
) -> Route:
    state = shell.state
    if session_id is not None:
        session = state.sessions.by_id.get(session_id)
        if session is None:
            raise TargetClosed(
                f"There is no CDP session {session_id[:80]!r} any more.",
                "Its page was closed or moved to another process. Take a browser_snapshot.",
            )
        return Route(session_id, params, session.page_id)
    found = route(state, method, params, frame_id=frame_id, target_id=target_id, context_id=shell.context_id)
    if isinstance(found, Unroutable):
        raise _ERRORS[found.kind](found.message, found.hint)
    return found


def _past_dialogs(shell: Shell, method: str, found: Route, timeout: float) -> tuple[Route, float]:
    """What to send beside the dialogs that are open, and how long to wait. Raises DialogOpened: nothing is sent."""
    state = shell.state
    if found.page_id is None or method in BROWSER_PROCESS or state.options.dialog_policy != "must_respond":
        return found, timeout
    related = state.targets.related(found.page_id)
    frames = state.frames.by_id
    for dialog in state.dialogs.pending:
        if dialog.page_id not in related:
            continue
        holder = dialog.session_id or (frames[dialog.frame_id].session_id if dialog.frame_id in frames else None)
        here = dialog.page_id == found.page_id
        blocked = dialog.via != "debugger" and holder in (None, found.session_id)
        if here and (blocked or method.startswith("Input.")):
            raise dialog_opened(method, shell.snapshot().pending_dialogs, sent=False)
        if dialog.via != "debugger" or not here:
            # Other sessions answer, unless they share the process that waits, which nobody tells us.
            timeout = min(timeout, BESIDE_DIALOG_TIMEOUT_S)
        elif found.params.get("awaitPromise") is True:
            # No promise settles while a page is held, not even one made of a plain value.
            params = {**found.params, "awaitPromise": False}
            found = Route(found.session_id, params, found.page_id, found.frame_id, found.needs_isolated_world)
    return found, timeout


async def _with_context(shell: Shell, method: str, found: Route, params: Mapping[str, Any]) -> Route:
    """A frame that has just come, or has just been navigated, is given a moment until its context is known."""
    frame_id = found.frame_id

    def known(state: BrowserState) -> Route | None:
        again = route(state, method, params, frame_id=frame_id, context_id=shell.context_id)
        return again if isinstance(again, Route) and not again.needs_isolated_world else None

    try:
        return await shell.wait_for_state(known, CONTEXT_TIMEOUT_S)
    except CallTimeout:
        return found


async def _in_isolated_world(shell: Shell, found: Route, timeout: float) -> Route:
    """A frame whose own context we do not know still runs our script, in a world of its own."""
    made = await shell.browser.runner.call(
        found.session_id,
        "Page.createIsolatedWorld",
        {"frameId": found.frame_id, "worldName": "watchkeeper"},
        timeout=timeout,
        page_id=found.page_id,
    )
    number = fields.integer(made, "executionContextId")
    return Route(found.session_id, {**found.params, "contextId": number}, found.page_id, found.frame_id)


async def _check_history(shell: Shell, found: Route, timeout: float) -> None:
    history = await shell.browser.runner.call(
        found.session_id, "Page.getNavigationHistory", {}, timeout=timeout, page_id=found.page_id
    )
    shell.boundary.check_history(history, found.params.get("entryId"))


def _own_part(state: BrowserState, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lists of targets show those of this task only."""
    if method != "Target.getTargets":
        return result
    own = state.targets.pages.keys() | state.frames.by_id.keys()
    infos = [info for info in fields.items(result, "targetInfos") if fields.text(info, "targetId") in own]
    return {**result, "targetInfos": infos}
