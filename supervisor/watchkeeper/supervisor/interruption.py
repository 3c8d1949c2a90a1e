"""Calls that a dialog ended, or that were not sent because of one: what the caller is told.

Rules: the error names every open dialog, and says whether the call may have taken effect.
"""

from .core.view import Dialog
from .errors import DialogOpened


def dialog_opened(method: str, dialogs: tuple[Dialog, ...], *, sent: bool = True) -> DialogOpened:
    """The error of a call that a dialog ended, or that was not sent because of one."""
    shown = ", ".join(f"{d.id} ({d.type})" for d in dialogs) or "a dialog"
    what = f"ended {method}, which may have taken effect" if sent else f"is open, so {method} was not sent"
    return DialogOpened(f"{shown} {what}.", "Answer it with browser_dialog.", dialogs=dialogs)
