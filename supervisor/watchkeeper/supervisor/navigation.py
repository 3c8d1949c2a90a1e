"""Opening an address: what became of it, said truthfully.

Rules: a navigation ends at once when a dialog opens (the page may go on when it is answered). One that gets no response
in time is stopped, for while it waits the page answers nothing. A page that asked to stay is not a network error.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-navigate,
.../Page/#event-lifecycleEvent
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .boundary import refused
from .calls import call
from .core import fields
from .core.dialogs import HASTE_S
from .core.dialogs import Dialog as DialogState
from .core.state import BrowserState
from .core.view import Dialog
from .errors import CallTimeout, DialogOpened, NavigationFailed, SupervisorError
from .interruption import dialog_opened
from .shell import Shell

Outcome = Literal["loaded", "loading", "waiting_for_dialog", "stayed", "download"]
DESCRIBE_TIMEOUT_S = 2.0
STOP_TIMEOUT_S = 2.0
CLOSE_WAIT_S = 1.0
_DESCRIBE = "[location.href, document.title, (performance.getEntriesByType('navigation')[0] || {}).responseStatus || 0]"
NETWORK_ERRORS: Mapping[str, str] = {
    "net::ERR_NAME_NOT_RESOLVED": "there is no such host name",
    "net::ERR_CONNECTION_REFUSED": "the server refuses connections; is it running, and on this port?",
    "net::ERR_CONNECTION_RESET": "the server broke the connection off",
    "net::ERR_CONNECTION_CLOSED": "the server closed the connection",
    "net::ERR_CONNECTION_TIMED_OUT": "the server does not answer",
    "net::ERR_TIMED_OUT": "the server does not answer",
    "net::ERR_ADDRESS_UNREACHABLE": "the address cannot be reached from here",
    "net::ERR_INTERNET_DISCONNECTED": "there is no network",
    "net::ERR_EMPTY_RESPONSE": "the server closed the connection without an answer",
    "net::ERR_TOO_MANY_REDIRECTS": "the addresses redirect in a circle",
    "net::ERR_UNSAFE_PORT": "browsers refuse to connect to this port",
    "net::ERR_BLOCKED_BY_CLIENT": "something in the browser blocked it",
    "net::ERR_INVALID_URL": "the address is not valid",
    "net::ERR_FILE_NOT_FOUND": "there is no such file",
    "net::ERR_SSL_PROTOCOL_ERROR": "the server does not speak TLS on this port",
    "net::ERR_CERT_AUTHORITY_INVALID": "the certificate is signed by nobody the browser trusts",
    "net::ERR_CERT_DATE_INVALID": "the certificate has expired or is not valid yet",
    "net::ERR_CERT_COMMON_NAME_INVALID": "the certificate is for another host name",
    "net::ERR_ABORTED": "the navigation was aborted (a download, an empty response, or another navigation)",
}


@dataclass(frozen=True, slots=True)
class Navigation:
    """``status`` is the HTTP status, 0 where there is none. ``dialogs`` are those open when the call ended."""

    outcome: Outcome
    url: str
    title: str = ""
    status: int = 0
    dialogs: tuple[Dialog, ...] = ()
    note: str = ""


async def navigate(shell: Shell, page_id: str, url: str, timeout: float) -> Navigation:
    """Open ``url`` in a tab. Raises NavigationFailed, CallTimeout, DialogOpened (one was open before), and what
    ``Supervisor.call`` raises."""
    open_before = [d for d in shell.state.dialogs.pending if d.page_id == page_id]
    if open_before:
        raise dialog_opened("the navigation", shell.snapshot().pending_dialogs, sent=False)
    return await _navigate(shell, page_id, url, timeout, may_ask_again=True)


async def _navigate(shell: Shell, page_id: str, url: str, timeout: float, *, may_ask_again: bool) -> Navigation:
    """``may_ask_again``: where a machine answered for the page, the bridge is set up to ask, and we try once more."""
    started, asked_at = shell.browser.now(), time.monotonic()
    try:
        reply = await call(shell, "Page.navigate", {"url": url}, target_id=page_id, timeout=timeout)
    except DialogOpened as interrupted:
        if may_ask_again and await _answered_by_machine(shell, page_id, started):
            return await _navigate(shell, page_id, url, timeout, may_ask_again=False)
        return Navigation(
            "waiting_for_dialog", url, dialogs=interrupted.dialogs, note="It goes on when the dialog is answered."
        )
    except CallTimeout:
        await _stop(shell, page_id)
        raise CallTimeout(
            f"{url[:200]} sent no response within {timeout:g} s; the navigation was stopped.",
            "The tab still shows the page before. Try again, give a longer timeout, or check the server.",
        ) from None
    error = fields.text(reply, "errorText")
    if reply.get("isDownload") is True:
        return Navigation("download", url, note="The address is a file to download; the page stays as it is.")
    if error:
        if error == "net::ERR_ABORTED" and _asked_to_stay(shell.state, page_id, started):
            if may_ask_again and await _answered_by_machine(shell, page_id, started):
                return await _navigate(shell, page_id, url, timeout, may_ask_again=False)
            await _closed(shell, page_id)
            return Navigation("stayed", url, note="The page asked to stay (beforeunload) and was not left.")
        raise _failed(shell, url, error, asked_at)
    outcome = await _loaded(shell, page_id, fields.text(reply, "loaderId"), timeout)
    if outcome == "waiting_for_dialog":
        return Navigation(outcome, _url(shell, page_id) or url, dialogs=shell.snapshot().pending_dialogs)
    shell.boundary.check_arrival(page_id, asked_at)
    done = await _described(shell, page_id, outcome, url)
    if any(d.via == "xhr" for d in _beforeunload(shell.state, page_id, started)):
        told = (
            "The page before would have asked whether to leave it; nobody can be asked on this backend, so it was left."
        )
        done = replace(done, note=f"{told} {done.note}".rstrip())
    return done


def _failed(shell: Shell, url: str, error: str, since: float) -> SupervisorError:
    """Of a connection through the gate the browser knows only that it failed; the gate knows why."""
    if error.startswith("net::ERR_SOCKS") and shell.gate is not None:
        outcome = shell.gate.explain(since)
        if outcome is not None and outcome.kind == "refused":
            return refused(outcome, url)
        if outcome is not None:
            error = outcome.net_error
    return failed(url, error)


def failed(url: str, error: str) -> NavigationFailed:
    """A network error in words."""
    meaning = NETWORK_ERRORS.get(error, "the browser gives no other reason")
    return NavigationFailed(
        f"{url[:200]} could not be opened: {meaning} ({error}).",
        "Check the address and that the server runs. The tab now shows the browser's error page.",
        net_error=error,
    )


async def _loaded(shell: Shell, page_id: str, loader_id: str, timeout: float) -> Outcome:
    """Wait until the new document has loaded, a dialog opened, or it has taken long enough."""
    if not loader_id:
        return "loaded"  # within the same document

    def settled(state: BrowserState) -> Outcome | None:
        if state.dialogs.of_page(page_id) and state.options.dialog_policy == "must_respond":
            return "waiting_for_dialog"
        page, frame = state.targets.pages.get(page_id), state.frames.by_id.get(page_id)
        if page is None or frame is None:
            return "loading"  # closed; the description that follows says so
        if frame.loader_id != loader_id:
            return None
        return "loaded" if frame.reached("load") else "loading" if page.crashed else None

    try:
        return await shell.wait_for_state(settled, min(timeout, shell.options.load_wait_s))
    except CallTimeout:
        return "loading"


async def _described(shell: Shell, page_id: str, outcome: Outcome, url: str) -> Navigation:
    note = "" if outcome == "loaded" else "It has not finished loading; a browser_snapshot shows what is there."
    try:
        told: Any = await call(
            shell,
            "Runtime.evaluate",
            {"expression": _DESCRIBE, "returnByValue": True},
            frame_id=page_id,
            timeout=DESCRIBE_TIMEOUT_S,
        )
    except DialogOpened as interrupted:
        return Navigation("waiting_for_dialog", _url(shell, page_id) or url, dialogs=interrupted.dialogs, note=note)
    except CallTimeout:
        return Navigation(outcome, _url(shell, page_id) or url, note=note or "The page is too busy to describe.")
    value = fields.mapping(told, "result").get("value")
    if not (isinstance(value, list) and len(value) == 3):
        return Navigation(outcome, _url(shell, page_id) or url, note=note)
    href, title, status = value
    return Navigation(outcome, str(href), str(title), status if isinstance(status, int) else 0, note=note)


async def _stop(shell: Shell, page_id: str) -> None:
    """End a navigation that waits for its response: until then the page answers nothing."""
    try:
        await call(shell, "Page.stopLoading", target_id=page_id, timeout=STOP_TIMEOUT_S)
    except SupervisorError:
        return  # the time-out that is being reported says more


def _asked_to_stay(state: BrowserState, page_id: str, since: float) -> bool:
    """Whether the page asked, and the answer was to stay; the closing event may still be on its way."""
    return any(d.response is not None and not d.response.accept for d in _beforeunload(state, page_id, since))


def _beforeunload(state: BrowserState, page_id: str, since: float) -> list[DialogState]:
    return [
        d
        for d in (*state.dialogs.recent, *state.dialogs.pending)
        if d.type == "beforeunload" and d.page_id == page_id and d.opened_at >= since
    ]


async def _answered_by_machine(shell: Shell, page_id: str, since: float) -> bool:
    """Whether the page asked and was answered "stay" by neither us nor a person, which takes a machine no time."""
    if shell.browser.owned and not shell.state.backend_dismisses:
        return False  # nobody else speaks to this browser

    def answered(state: BrowserState) -> bool | None:
        closed = [d for d in _beforeunload(state, page_id, since) if d.via == "native" and d.closed_at is not None]
        return any(d.closed_by == "remote" for d in closed) or None

    try:
        await shell.wait_for_state(answered, HASTE_S)
        # Until the page has gone on, the navigation that it refused is not over, and would take the next with it.
        await call(shell, "Runtime.evaluate", {"expression": "0"}, target_id=page_id, timeout=DESCRIBE_TIMEOUT_S)
    except SupervisorError:
        return False
    return shell.state.backend_dismisses


async def _closed(shell: Shell, page_id: str) -> None:
    """Until the answered dialog is known to be over, so that the result does not list it as open."""
    try:
        await shell.wait_for_state(lambda state: None if state.dialogs.of_page(page_id) else True, CLOSE_WAIT_S)
    except CallTimeout:
        return  # it is shown as being answered


def _url(shell: Shell, page_id: str) -> str:
    frame = shell.state.frames.by_id.get(page_id)
    return frame.url if frame else ""
