"""Answering a dialog: which one is meant, whether the answer is fit for it, and what the page got.

Rules: everything is checked before anything is recorded or sent; each refusal says what would work.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from .browser import COMMAND_TIMEOUT_S
from .calls import call
from .core import freeing
from .core.dialogs import MESSAGE_CAP, Dialogs, answer_text
from .core.dialogs import Dialog as DialogState
from .core.inputs import AnswerDialog
from .core.state import BrowserState
from .core.view import Dialog, Tab
from .errors import (
    AmbiguousDialog,
    BadPromptText,
    CallTimeout,
    DialogBeingAnswered,
    NoDialogOpen,
    SupervisorError,
    UnknownDialog,
)
from .shell import Shell

ANSWER_TIMEOUT_S = COMMAND_TIMEOUT_S + 1
"""Longer than the command that answers may take, so that its outcome is known."""
BARRIER_TIMEOUT_S = 0.5
FREE_TIMEOUT_S = 5.0
Action = Literal["accept", "dismiss"]


@dataclass(frozen=True, slots=True)
class DialogAnswer:
    """``delivered``: the browser confirmed that the dialog closed by this answer. ``note`` says it in words."""

    dialog: Dialog | None
    delivered: bool
    note: str

    @classmethod
    def of(cls, dialog: Dialog | None, action: Action, text: str | None) -> "DialogAnswer":
        """What became of an answer, from what is known of the dialog now."""
        if dialog is None or dialog.closed_at is None:
            return cls(
                dialog,
                False,
                "The browser did not confirm the answer in time. Take a browser_snapshot to see whether it is open.",
            )
        if dialog.closed_by == "agent" and dialog.unanswerable:
            returned = {"alert": "alert() returned", "prompt": "prompt() returned null"}.get(
                dialog.type, f"{dialog.type}() returned false"
            )
            return cls(
                dialog,
                action == "dismiss",
                "The browser takes no answer for this dialog any more (its page was being left, or another dialog took "
                f"its place). The tab was freed: {returned}.",
            )
        if dialog.closed_by == "agent":
            got = {"alert": "alert() returned", "beforeunload": "the page stays"}.get(
                dialog.type, f"{dialog.type}() returned {'true' if action == 'accept' else 'false'}"
            )
            if dialog.type == "beforeunload" and action == "accept":
                got = "the page is left"
            elif dialog.type == "prompt":
                got = "prompt() returned " + (
                    "null" if action == "dismiss" else f"the text ({len(text or '')} characters)"
                )
            return cls(dialog, True, f"Delivered: {got}.")
        if dialog.closed_by == "lost":
            note = "Not confirmed: the tab or the connection was lost before the browser said what became of it."
            return cls(dialog, False, note)
        ends = {
            "remote": "the browser or another client closed it first",
            "navigation": "the page navigated away first",
            "watchdog": "the time-out dismissed it first",
            "auto_policy": "the dialog policy answered it first",
        }
        return cls(dialog, False, f"Not delivered: {ends.get(dialog.closed_by or 'remote', 'it closed otherwise')}.")

    def as_dict(self) -> dict[str, Any]:
        return {
            "delivered": self.delivered,
            "note": self.note,
            "dialog": self.dialog.as_dict() if self.dialog else None,
        }


async def answer_dialog(shell: Shell, action: Action, prompt_text: str | None, dialog_id: str | None) -> DialogAnswer:
    """As ``Supervisor.answer_dialog``, which says what is raised."""
    stuck = next((tab for tab in shell.snapshot().tabs if tab.stuck), None)
    if stuck is not None and dialog_id is None and not shell.state.dialogs.pending:
        return await _free_tab(shell, stuck, action)
    dialog = _chosen(shell.state.dialogs, action, prompt_text, dialog_id)
    accept = action == "accept"
    text = answer_text(dialog, accept, prompt_text)
    shell.require_connection()
    shell.feed(AnswerDialog(dialog.dialog_id, accept, text, "agent"))

    def over(state: BrowserState) -> bool | None:
        now = state.dialogs.get(dialog.dialog_id)
        return True if now is None or now.closed_at is not None or now.response is None else None

    try:
        await shell.wait_for_state(over, ANSWER_TIMEOUT_S)
    except CallTimeout:
        pass  # told below: what is known of the dialog now is the answer
    if dialog.via == "debugger":
        await _gone_on(shell, dialog)
    known = [*shell.snapshot().recent_dialogs, *shell.snapshot().pending_dialogs]
    return DialogAnswer.of(next((d for d in known if d.id == dialog.dialog_id), None), action, text)


async def _gone_on(shell: Shell, dialog: DialogState) -> None:
    """Until the script that asked has gone on to its end, or to the next dialog; bounded.

    A page that is let go handles first what is in its queue, so a script sent right after the answer could find
    the page as it was before. A promise settles only once the interrupted script is done.
    """
    try:
        await shell.browser.runner.call(
            dialog.session_id,
            "Runtime.evaluate",
            {"expression": "0", "awaitPromise": True},
            timeout=BARRIER_TIMEOUT_S,
            page_id=dialog.page_id,
        )
    except SupervisorError:
        return  # it went on: it asks again, is busy, or is gone


def _chosen(dialogs: Dialogs, action: Action, prompt_text: str | None, dialog_id: str | None) -> DialogState:
    """The open dialog that an answer is for. Raises the DialogError that says why there is none."""
    if dialog_id is not None:
        dialog = next((d for d in dialogs.pending if d.dialog_id == dialog_id), None)
        if dialog is None:
            raise _not_open(dialogs, dialog_id)
    elif not dialogs.pending:
        raise _none_open(dialogs)
    elif len(dialogs.pending) > 1:
        listed = "; ".join(f"{d.dialog_id}: {d.type} {d.message[:80]!r}" for d in dialogs.pending)
        raise AmbiguousDialog(f"{len(dialogs.pending)} dialogs are open: {listed}.", "Give dialog_id.")
    else:
        dialog = dialogs.pending[0]
    if dialog.response is not None:
        raise DialogBeingAnswered(
            f"Dialog {dialog.dialog_id} is being answered already, by {dialog.response.by}.",
            "Take a browser_snapshot: recent_dialogs will say how it ended.",
        )
    if prompt_text is not None:
        _check_text(dialog, action, prompt_text)
    return dialog


def _check_text(dialog: DialogState, action: Action, prompt_text: str) -> None:
    if action == "dismiss":
        raise BadPromptText("prompt_text goes with action 'accept' only.", "Leave prompt_text out to dismiss.")
    if dialog.type != "prompt":
        raise BadPromptText(
            f"Dialog {dialog.dialog_id} is of type {dialog.type}; only a prompt takes text.", "Leave prompt_text out."
        )
    if len(prompt_text) > MESSAGE_CAP:
        raise BadPromptText(
            f"prompt_text has {len(prompt_text)} characters; at most {MESSAGE_CAP} are possible.", "Shorten it."
        )


def _none_open(dialogs: Dialogs) -> NoDialogOpen:
    if not dialogs.recent:
        return NoDialogOpen("No dialog is open, and none was before.", "Go on with the page.")
    last = dialogs.recent[-1]
    how = f" ({'accept' if last.response.accept else 'dismiss'})" if last.response else ""
    return NoDialogOpen(
        f"No dialog is open. The last one, {last.dialog_id} ({last.type}), was closed by {last.closed_by}{how}.",
        "Go on with the page.",
    )


def _not_open(dialogs: Dialogs, dialog_id: str) -> UnknownDialog | NoDialogOpen:
    known = dialogs.get(dialog_id)
    if known is not None:
        how = f" ({'accept' if known.response.accept else 'dismiss'})" if known.response else ""
        return NoDialogOpen(
            f"Dialog {dialog_id} is not open any more: closed by {known.closed_by}{how}.",
            _open_now(dialogs),
        )
    return UnknownDialog(f"There is no dialog {dialog_id[:40]!r}.", _open_now(dialogs))


def _open_now(dialogs: Dialogs) -> str:
    if not dialogs.pending:
        return "No dialog is open now."
    return "Open now: " + ", ".join(f"{d.dialog_id} ({d.type})" for d in dialogs.pending) + "."


async def _free_tab(shell: Shell, tab: Tab, action: Action) -> DialogAnswer:
    """End a dialog that nobody can answer: one that was open before we came, so that no session of ours owns it.

    A navigation to the page's own address with another fragment makes the dialog return false, and the page keeps its
    state. The address is put back afterwards. ``accept`` is not possible.
    """
    if action == "accept":
        raise NoDialogOpen(
            f"Tab {tab.tab_id} does not answer, most likely because of a dialog that was open before it was attached. "
            "Such a dialog can only be dismissed.",
            "Call browser_dialog with action 'dismiss': the dialog returns false, and the page keeps its state.",
        )
    await call(shell, "Page.navigate", {"url": freeing.past(tab.url)}, target_id=tab.target_id)

    def answers(view: Any) -> bool | None:
        return None if any(t.stuck for t in view.tabs if t.tab_id == tab.tab_id) else True

    try:
        await shell.wait_for(answers, FREE_TIMEOUT_S)
    except CallTimeout:
        return DialogAnswer(None, False, f"Tab {tab.tab_id} still does not answer: open an address in it, or close it.")
    restore = f"history.replaceState(history.state, '', {json.dumps(tab.url)})"
    await call(shell, "Runtime.evaluate", {"expression": restore}, target_id=tab.target_id)
    return DialogAnswer(None, True, f"Tab {tab.tab_id} was freed: the dialog that held it returned false.")
