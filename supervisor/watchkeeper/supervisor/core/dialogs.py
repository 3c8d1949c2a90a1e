"""Dialogs: which are open, who decided how they end, and how they ended.

Rules: owns pending and recent dialogs. An intent is recorded before the command that carries it is sent, so a dialog
that we answered is never called ``remote``; a dialog that is being answered cannot be answered again. A dialog leaves
``pending`` when the browser says that it closed, or when its tab or the connection is gone. ``recent`` is a ring of 20.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#event-javascriptDialogOpening
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from . import fields
from .inputs import ClosedBy

RECENT = 20
MESSAGE_CAP = 10_240
NAVIGATION_WINDOW_S = 1.0
DialogPolicy = Literal["must_respond", "auto_dismiss", "auto_accept"]
Via = Literal["native", "debugger", "xhr"]


@dataclass(frozen=True, slots=True)
class Response:
    """What was decided: ``text`` is what an accepted prompt returns to the page."""

    accept: bool
    text: str | None
    by: ClosedBy


@dataclass(frozen=True, slots=True)
class Dialog:
    """Times are seconds since the epoch. ``response`` is the intent while the dialog is pending, the outcome after."""

    dialog_id: str
    type: str
    message: str
    default_prompt: str
    url: str
    frame_id: str
    page_id: str
    tab_id: str
    opened_at: float
    via: Via = "native"
    session_id: str = ""
    handle: str = ""
    """Where a bridge holds the page: the session, and a call frame id or a Fetch request id."""
    origin: str = ""
    truncated: bool = False
    response: Response | None = None
    written: bool = False
    """The debugger bridge has written the answer into the page, which has yet to go on."""
    closed_at: float | None = None
    closed_by: ClosedBy | None = None


@dataclass(frozen=True, slots=True)
class Dialogs:
    pending: tuple[Dialog, ...] = ()
    recent: tuple[Dialog, ...] = ()
    opened: int = 0
    """How many there ever were; numbers the next one."""

    def get(self, dialog_id: str) -> Dialog | None:
        return next((d for d in (*self.pending, *reversed(self.recent)) if d.dialog_id == dialog_id), None)

    def of_page(self, page_id: str) -> tuple[Dialog, ...]:
        return tuple(d for d in self.pending if d.page_id == page_id)


def opened(dialogs: Dialogs, dialog: Dialog) -> tuple[Dialogs, Dialog]:
    """A dialog opened: it gets its number, and its texts are capped."""
    number = dialogs.opened + 1
    texts = (dialog.message, dialog.default_prompt)
    dialog = replace(
        dialog,
        dialog_id=f"d-{number}",
        message=dialog.message[:MESSAGE_CAP],
        default_prompt=dialog.default_prompt[:MESSAGE_CAP],
        url=dialog.url[:MESSAGE_CAP],
        truncated=any(len(text) > MESSAGE_CAP for text in texts),
    )
    return replace(dialogs, pending=(*dialogs.pending, dialog), opened=number), dialog


def described(params: Mapping[str, Any], page_id: str, tab_id: str, frame_id: str, now: float) -> Dialog:
    """A dialog from ``Page.javascriptDialogOpening``, or from a bridge's question in the same words."""
    return Dialog(
        "",
        fields.text(params, "type") or "alert",
        fields.text(params, "message"),
        fields.text(params, "defaultPrompt"),
        fields.text(params, "url"),
        frame_id,
        page_id,
        tab_id,
        now,
    )


def decided(dialogs: Dialogs, dialog_id: str, response: Response) -> Dialogs:
    """Record the intent. Refused in silence where it comes too late: the caller checks before."""
    return _change(dialogs, dialog_id, lambda d: d if d.response else replace(d, response=response))


def undelivered(dialogs: Dialogs, dialog_id: str) -> Dialogs:
    """The answer did not reach the browser and the dialog is still open: it may be answered again."""
    return _change(dialogs, dialog_id, lambda d: replace(d, response=None))


def written(dialogs: Dialogs, dialog_id: str) -> Dialogs:
    return _change(dialogs, dialog_id, lambda d: replace(d, written=True))


def closed(dialogs: Dialogs, dialog_id: str, accept: bool | None, text: str | None, now: float) -> Dialogs:
    """The browser says that a dialog closed; ``accept`` None where it does not say how."""
    dialog = next((d for d in dialogs.pending if d.dialog_id == dialog_id), None)
    if dialog is None:
        return dialogs
    ours = dialog.response
    if ours is not None and accept in (None, ours.accept):
        return _end(dialogs, dialog, ours.by, ours, now)
    outcome = (
        None if accept is None else Response(accept, text if accept and dialog.type == "prompt" else None, "remote")
    )
    return _end(dialogs, dialog, "remote", outcome, now)


def page_gone(dialogs: Dialogs, page_id: str | None, now: float) -> Dialogs:
    """The tab (None: the connection) is gone, and its dialogs with it."""
    for dialog in dialogs.pending:
        if page_id in (None, dialog.page_id):
            dialogs = _end(dialogs, dialog, "lost", None, now)
    return dialogs


def sessions_gone(dialogs: Dialogs, session_ids: Collection[str], now: float) -> Dialogs:
    """Sessions through which bridges held pages are gone: so are the questions."""
    for dialog in dialogs.pending:
        if dialog.session_id in session_ids:
            dialogs = _end(dialogs, dialog, "lost", None, now)
    return dialogs


def navigated(dialogs: Dialogs, page_id: str, frame_id: str, now: float) -> Dialogs:
    """A frame has a new document: what the old one asked is over, and what just ended unasked ended by this."""
    for dialog in dialogs.pending:
        if dialog.page_id == page_id and frame_id in (dialog.frame_id, page_id):
            dialogs = _end(dialogs, dialog, "navigation", None, now)
    recent = tuple(
        replace(d, closed_by="navigation", response=None)
        if d.closed_by == "remote"
        and d.page_id == page_id
        and frame_id in (d.frame_id, page_id)
        and (d.response is None or not d.response.accept)
        and now - (d.closed_at or 0) <= NAVIGATION_WINDOW_S
        else d
        for d in dialogs.recent
    )
    return dialogs if recent == dialogs.recent else replace(dialogs, recent=recent)


def overdue(dialogs: Dialogs, timeout_s: float, now: float) -> tuple[Dialog, ...]:
    """Dialogs that nobody answered in time."""
    return tuple(d for d in dialogs.pending if d.response is None and now >= d.opened_at + timeout_s)


def next_deadline(dialogs: Dialogs, timeout_s: float) -> float | None:
    return min((d.opened_at + timeout_s for d in dialogs.pending if d.response is None), default=None)


def answer_text(dialog: Dialog, accept: bool, text: str | None) -> str | None:
    """What an accepted prompt returns: CDP would answer ``''`` where no text is given, people expect the default."""
    if not accept or dialog.type != "prompt":
        return None
    return dialog.default_prompt if text is None else text


def _end(dialogs: Dialogs, dialog: Dialog, by: ClosedBy, response: Response | None, now: float) -> Dialogs:
    ended = replace(dialog, closed_at=now, closed_by=by, response=response)
    return replace(
        dialogs,
        pending=tuple(d for d in dialogs.pending if d.dialog_id != dialog.dialog_id),
        recent=(*dialogs.recent[-RECENT + 1 :], ended),
    )


def _change(dialogs: Dialogs, dialog_id: str, change: Callable[[Dialog], Dialog]) -> Dialogs:
    return replace(dialogs, pending=tuple(change(d) if d.dialog_id == dialog_id else d for d in dialogs.pending))
