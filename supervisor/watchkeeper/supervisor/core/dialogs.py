"""Dialogs: which are open, who decided how they end, and how they ended.

Rules: owns pending and recent dialogs. An intent is recorded before the command that carries it is sent, so a dialog
that we answered is never called ``remote``; a dialog that is being answered cannot be answered again. A dialog leaves
``pending`` when the browser says that it closed, or when its tab or the connection is gone. ``recent`` is a ring of 20;
``ended`` counts all.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#event-javascriptDialogOpening
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from . import fields
from .inputs import ClosedBy

RECENT = 20
MESSAGE_CAP = 10_240
NAVIGATION_WINDOW_S = 1.0
AFTERMATH_S = 0.25
"""A page that crashes or closes has its dialogs closed first, in the same moment; the news of its end comes second."""
HASTE_S = 1.0
"""A dialog that somebody else dismisses so soon was dismissed by a machine."""
DialogPolicy = Literal["must_respond", "auto_dismiss", "auto_accept"]
Via = Literal["native", "debugger", "xhr"]
Ending = tuple[str, ClosedBy]
"""The type of a dialog (``other`` where it is none of CDP's four) and who closed it."""
TYPES = frozenset({"alert", "confirm", "prompt", "beforeunload"})


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
    restoring: Literal["", "asked", "closed"] = ""
    """The tab was freed by way of another address: it is over only when the address is being put back."""
    unanswerable: bool = False
    """The browser takes no answer for it any more; its tab was freed, by which it returns its default."""
    closed_at: float | None = None
    closed_by: ClosedBy | None = None


@dataclass(frozen=True, slots=True)
class Dialogs:
    pending: tuple[Dialog, ...] = ()
    recent: tuple[Dialog, ...] = ()
    opened: int = 0
    """How many there ever were; numbers the next one."""
    ended: Mapping[Ending, int] = field(default_factory=dict)
    """How many ended how; never changed in place."""

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


def unanswerable(dialogs: Dialogs, dialog_id: str, restoring: Literal["", "asked"]) -> Dialogs:
    return _change(dialogs, dialog_id, lambda d: replace(d, unanswerable=True, restoring=restoring))


def restoring(dialogs: Dialogs, dialog_id: str, stage: Literal["", "closed"]) -> Dialogs:
    return _change(dialogs, dialog_id, lambda d: replace(d, restoring=stage))


def closed(
    dialogs: Dialogs, dialog_id: str, accept: bool | None, text: str | None, now: float, *, by: ClosedBy = "remote"
) -> Dialogs:
    """The browser says that a dialog closed; ``accept`` None where it does not say how.

    ``by``: who closed it when it was not us.
    """
    dialog = next((d for d in dialogs.pending if d.dialog_id == dialog_id), None)
    if dialog is None:
        return dialogs
    ours = dialog.response
    if ours is not None and dialog.unanswerable:
        return _end(dialogs, dialog, ours.by, Response(False, None, ours.by), now)
    if ours is not None and accept in (None, ours.accept):
        return _end(dialogs, dialog, ours.by, ours, now)
    if by != "remote" or accept is None:
        return _end(dialogs, dialog, by, None, now)
    return _end(dialogs, dialog, by, Response(accept, text if accept and dialog.type == "prompt" else None, by), now)


def page_gone(dialogs: Dialogs, page_id: str | None, now: float) -> Dialogs:
    """The tab (None: the connection) is gone, and its dialogs with it; so did those end that closed just before."""
    for dialog in dialogs.pending:
        if page_id in (None, dialog.page_id):
            dialogs = _end(dialogs, dialog, "lost", None, now)
    if page_id is None:
        return dialogs
    return _told_anew(dialogs, "lost", lambda d: d.page_id == page_id and now - (d.closed_at or 0) <= AFTERMATH_S)


def gone(dialogs: Dialogs, dialog_ids: Collection[str], by: ClosedBy, now: float) -> Dialogs:
    """What these dialogs belonged to (a session, a frame) is gone."""
    for dialog in dialogs.pending:
        if dialog.dialog_id in dialog_ids:
            dialogs = _end(dialogs, dialog, by, None, now)
    return dialogs


def navigated(dialogs: Dialogs, page_id: str, frame_id: str, since: float, now: float) -> Dialogs:
    """A frame has a new document: what the old one asked is over.

    ``since``: when this navigation began. A dialog that was open then, or opened later, and was closed a moment ago
    although nobody answered, was closed by it.
    """
    for dialog in dialogs.pending:
        if dialog.page_id == page_id and frame_id in (dialog.frame_id, page_id):
            dialogs = _end(dialogs, dialog, "navigation", None, now)

    def by_this(d: Dialog) -> bool:
        closed_at = d.closed_at or 0
        here = d.page_id == page_id and frame_id in (d.frame_id, page_id)
        return here and since <= closed_at and now - closed_at <= NAVIGATION_WINDOW_S

    return _told_anew(dialogs, "navigation", by_this)


def _told_anew(dialogs: Dialogs, by: ClosedBy, which: Callable[[Dialog], bool]) -> Dialogs:
    """Closings that seemed somebody else's, dismissals all, turn out to have had another cause."""
    anew = {
        d.dialog_id
        for d in dialogs.recent
        if d.closed_by == "remote" and (d.response is None or not d.response.accept) and which(d)
    }
    if not anew:
        return dialogs
    ended, recent = dialogs.ended, []
    for d in dialogs.recent:
        if d.dialog_id in anew:
            ended = _counted(_counted(ended, d, "remote", -1), d, by, 1)
            d = replace(d, closed_by=by, response=None)
        recent.append(d)
    return replace(dialogs, recent=tuple(recent), ended=ended)


def overdue(dialogs: Dialogs, timeout_s: float, now: float) -> tuple[Dialog, ...]:
    """Dialogs that nobody answered in time."""
    return tuple(d for d in dialogs.pending if _waits(d) and now >= d.opened_at + timeout_s)


def next_deadline(dialogs: Dialogs, timeout_s: float) -> float | None:
    return min((d.opened_at + timeout_s for d in dialogs.pending if _waits(d)), default=None)


def _waits(dialog: Dialog) -> bool:
    return dialog.response is None and not dialog.unanswerable


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
        ended=_counted(dialogs.ended, dialog, by, 1),
    )


def _counted(ended: Mapping[Ending, int], dialog: Dialog, by: ClosedBy, change: int) -> Mapping[Ending, int]:
    ending: Ending = (dialog.type if dialog.type in TYPES else "other", by)
    return {**ended, ending: ended.get(ending, 0) + change}


def _change(dialogs: Dialogs, dialog_id: str, change: Callable[[Dialog], Dialog]) -> Dialogs:
    return replace(dialogs, pending=tuple(change(d) if d.dialog_id == dialog_id else d for d in dialogs.pending))
