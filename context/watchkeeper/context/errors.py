"""Everything this part raises on purpose.

    ContextError
    ├── InvalidMessages      a message list of the wrong shape; `index` says where
    ├── InvalidArgument      another argument that cannot be used; nothing was changed
    ├── UnknownEngine        no engine of that name; the hint names where was searched
    ├── EngineFailed         an engine raised or gave back something that is no message list
    ├── SummarizerFailed     a summariser gave nothing usable; `kind` says why
    ├── TranscriptError      a transcript that cannot be found, read or written (transcripts/model.py)
    ├── ArchiveError         the archive cannot do what was asked (store.py)
    └── Cancelled            the caller asked to stop; nothing was changed

Each says what happened (`message`), under a name programs can test (`code`), and what mends it (`hint`).
"""

from __future__ import annotations

from typing import Literal

FailureKind = Literal[
    "authentication",  # key missing, wrong or without rights
    "quota",  # rate limit or credit used up
    "network",  # not reached, connection lost, server error
    "timeout",  # an attempt or the whole took too long
    "empty",  # an answer without content
    "truncated",  # the answer ended at its token limit
    "oversized",  # the answer is larger than what it summarises, or than was asked for
    "malformed",  # the answer is not what was asked for and cannot be read
    "refused",  # the model or a content filter declined
    "window",  # the model's window is too small for any useful part of the conversation
    "unavailable",  # not installed, not configured, or the client does not offer it
]


class ContextError(Exception):
    """Base of the tree.

    Attributes:
        code: snake_case name of what happened.
        message: one sentence for a person.
        hint: the argument, setting or call that mends it; may be empty.
    """

    code = "context_error"

    def __init__(self, message: str, hint: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class InvalidMessages(ContextError):
    """A message list of the wrong shape. `index` is the first offending message, None when the whole is wrong."""

    code = "invalid_messages"

    def __init__(self, message: str, hint: str = "", *, index: int | None = None) -> None:
        super().__init__(message, hint)
        self.index = index


class InvalidArgument(ContextError):
    """An argument that cannot be used."""

    code = "invalid_argument"


class UnknownEngine(ContextError):
    """No engine of that name."""

    code = "unknown_engine"


class EngineFailed(ContextError):
    """An engine raised, or gave back something that is no message list."""

    code = "engine_failed"


class SummarizerFailed(ContextError):
    """A summariser gave nothing usable. The extractive floor takes its place, and the report says so."""

    code = "summarizer_failed"

    def __init__(self, kind: FailureKind, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind: FailureKind = kind


class Cancelled(ContextError):
    """The caller asked to stop. Nothing was changed."""

    code = "cancelled"

    def __init__(self, message: str = "compression was cancelled; nothing was changed") -> None:
        super().__init__(message)


__all__ = [
    "Cancelled",
    "ContextError",
    "EngineFailed",
    "FailureKind",
    "InvalidArgument",
    "InvalidMessages",
    "SummarizerFailed",
    "UnknownEngine",
]
