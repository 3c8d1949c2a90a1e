"""Errors of tools, addressed to the model that called: what happened, and what to do.

Rule: whatever has a ``code``, a ``message`` and a ``hint`` is told as it stands (so are the errors of the supervisor
and of the context part); anything else is our fault, and the client learns a number that stands in the log.
"""

from typing import Any


class ToolError(Exception):
    """``code`` is snake_case and never changes; ``more`` goes into the structured form."""

    def __init__(self, code: str, message: str, hint: str, **more: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.more = more


def told(error: BaseException) -> ToolError | None:
    """The error in the form of tools; None when it is none that speaks to callers."""
    if isinstance(error, ToolError):
        return error
    parts = [getattr(error, name, None) for name in ("code", "message", "hint")]
    if not all(isinstance(part, str) for part in parts):
        return None
    code, message, hint = (str(part) for part in parts)
    return ToolError(code, message, hint)
