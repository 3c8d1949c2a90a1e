"""What can happen to a supervised browser.

Rules: every input is frozen and plain; the shell builds them, ``reducer.step`` alone consumes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .commands import Tag

ClosedBy = Literal["agent", "auto_policy", "watchdog", "remote", "navigation", "lost"]


@dataclass(frozen=True, slots=True)
class Event:
    """A CDP event. ``session_id`` is None for the browser-level session."""

    session_id: str | None
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replied:
    """The browser answered a command that the reducer sent."""

    tag: Tag
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """A command that the reducer sent was refused, or not answered before its deadline (``code`` 0)."""

    tag: Tag
    code: int
    message: str


@dataclass(frozen=True, slots=True)
class AnswerDialog:
    """Somebody decided how a dialog ends. The intent is recorded before the command is sent."""

    dialog_id: str
    accept: bool
    text: str | None
    by: ClosedBy


@dataclass(frozen=True, slots=True)
class Adopt:
    """This target belongs to the task although no event says so: the task opened or selected it."""

    target_id: str


@dataclass(frozen=True, slots=True)
class SelectTab:
    target_id: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something that the shell knows and that belongs into the console. ``level`` as in the console."""

    level: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; deadlines may have been reached."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is gone: every session id, context and pause with it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A new connection to the same browser, with the targets that exist there; ours will be attached again."""

    target_ids: frozenset[str]


Input = Event | Replied | Failed | AnswerDialog | Adopt | SelectTab | Noticed | Tick | Disconnected | Reconnected
