"""Errors of the supervisor: one tree, each error addressed to the one who can mend it.

Rules: an error says what happened (``message``) and which tool, argument or setting helps (``hint``); ``code`` names
its kind for programs and never changes. ``str(error)`` is the message. No secret enters a message: whoever raises an
error about an endpoint shows its redacted form.

    SupervisorError
    ├─ BrowserNotFound, LaunchFailed, EndpointUnreachable      no browser to speak to
    ├─ TransportClosed, BacklogFull                            between transport and runner
    ├─ ConnectionLost, TargetCrashed, TargetClosed, NoPage     what we spoke to is gone
    ├─ CallTimeout, ProtocolError                              a call that failed
    ├─ CallInterrupted                                         a call that something else ended
    │  └─ DialogOpened, TabStuck
    ├─ DialogError                                             an answer that reached no dialog
    │  └─ NoDialogOpen, UnknownDialog, AmbiguousDialog, DialogBeingAnswered, BadPromptText
    ├─ InvalidArgument, UnknownFrame, UnknownTarget            a call that was refused before it changed anything
    ├─ MethodRefused, UrlRefused, FileRefused
    └─ NavigationFailed, EvaluationFailed                     the page's side failed
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .core.view import Dialog


class SupervisorError(Exception):
    """What everything here is. ``message`` and ``hint`` are sentences for people and for models."""

    code: ClassVar[str] = "supervisor_error"

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class BrowserNotFound(SupervisorError):
    """No browser is installed where we look, or the given executable does not exist."""

    code = "browser_not_found"


class LaunchFailed(SupervisorError):
    """The browser was started and did not come up.

    ``kind`` says why: ``sandbox``, ``no_display``, ``profile_in_use``, ``missing_library``, ``snap``, ``too_old``,
    ``default_profile``, ``not_executable``, ``timeout`` or ``unknown``; ``detail`` is the end of what it printed.
    """

    code = "launch_failed"

    def __init__(self, message: str, hint: str, *, kind: str = "unknown", detail: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.detail = detail


class EndpointUnreachable(SupervisorError):
    """A CDP endpoint that refuses, does not answer in time, or is something else.

    ``status`` is the HTTP status where it refused with one.
    """

    code = "endpoint_unreachable"

    def __init__(self, message: str, hint: str, *, status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class TransportClosed(SupervisorError):
    """The connection is over; ``reason`` says why. The runner turns it into what each waiting call has lost."""

    code = "transport_closed"

    def __init__(self, reason: str, hint: str = "Navigate again: that connects anew.") -> None:
        super().__init__(reason, hint)
        self.reason = reason


class BacklogFull(SupervisorError):
    """The browser has not read what was sent for so long that no more is queued. Nothing of this call was sent."""

    code = "backlog_full"


class ConnectionLost(SupervisorError):
    """The browser ended or the connection to it broke while a call was waiting, or before it was sent."""

    code = "connection_lost"


class TargetCrashed(SupervisorError):
    """The renderer of this tab or frame crashed; it answers nothing until it is navigated."""

    code = "target_crashed"


class TargetClosed(SupervisorError):
    """The tab or frame was closed, or moved to another process, while a call was waiting."""

    code = "target_closed"


class NoPage(SupervisorError):
    """The task has no tab."""

    code = "no_page"


class CallTimeout(SupervisorError):
    """No answer within the call's deadline."""

    code = "timeout"


class ProtocolError(SupervisorError):
    """The browser answered with an error. ``cdp_code`` is its JSON-RPC code."""

    code = "protocol_error"

    def __init__(self, message: str, hint: str, *, cdp_code: int = 0) -> None:
        super().__init__(message, hint)
        self.cdp_code = cdp_code


class CallInterrupted(SupervisorError):
    """Something that happened in the page ended the call before its answer came."""

    code = "interrupted"


class DialogOpened(CallInterrupted):
    """A dialog is open and holds the page; the call may take effect once it is answered."""

    code = "dialog_opened"

    def __init__(self, message: str, hint: str, *, dialogs: "tuple[Dialog, ...]" = ()) -> None:
        super().__init__(message, hint)
        self.dialogs = dialogs


class TabStuck(CallInterrupted):
    """The tab has not answered since it was attached; the hint says how it is freed."""

    code = "tab_stuck"


class DialogError(SupervisorError):
    """An answer that could not be given to a dialog."""

    code = "dialog_error"


class NoDialogOpen(DialogError):
    """Nothing is open; the message says what closed last, and how."""

    code = "no_dialog_open"


class UnknownDialog(DialogError):
    """No open dialog has this id; the message lists those that are open."""

    code = "unknown_dialog"


class AmbiguousDialog(DialogError):
    """Several dialogs are open and none was named; the message lists them."""

    code = "ambiguous_dialog"


class DialogBeingAnswered(DialogError):
    """An answer to this dialog is on its way already."""

    code = "dialog_being_answered"


class BadPromptText(DialogError):
    """``prompt_text`` for a dialog that takes none, or one that is too long."""

    code = "bad_prompt_text"


class InvalidArgument(SupervisorError):
    """An argument of the wrong form or range. Nothing was done."""

    code = "invalid_argument"


class UnknownFrame(SupervisorError):
    """No frame of this task has this id or short name; the message lists the nearest."""

    code = "unknown_frame"


class UnknownTarget(SupervisorError):
    """No target of this task has this id."""

    code = "unknown_target"


class MethodRefused(SupervisorError):
    """A CDP method that would break the supervisor or reach past the task. The hint names the tool to use instead."""

    code = "method_refused"


class UrlRefused(SupervisorError):
    """The URL is malformed, or the settings forbid it."""

    code = "url_refused"


class FileRefused(SupervisorError):
    """The file or folder lies where the settings do not allow it."""

    code = "file_refused"


class NavigationFailed(SupervisorError):
    """The browser could not load the page. ``net_error`` is its name for that: ``net::ERR_NAME_NOT_RESOLVED``."""

    code = "navigation_failed"

    def __init__(self, message: str, hint: str, *, net_error: str = "") -> None:
        super().__init__(message, hint)
        self.net_error = net_error


class EvaluationFailed(SupervisorError):
    """A script that was run in the page threw, or gave what cannot be written as JSON."""

    code = "evaluation_failed"
