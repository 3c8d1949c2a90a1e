"""The console: what pages logged, threw and were warned of.

Rules: two rings, errors (50) and the rest (200), so that chatter cannot push an error out. What falls out of a ring is
counted. Texts are capped on arrival.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/Runtime/#event-consoleAPICalled,
.../Runtime/#event-exceptionThrown, .../Log/#event-entryAdded
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import fields

ERRORS = 50
OTHERS = 200
TEXT_CAP = 2_000
ARGUMENTS_CAP = 20
_ERROR_LEVELS = frozenset({"error", "assert"})


@dataclass(frozen=True, slots=True)
class ConsoleEntry:
    """``level`` is CDP's word (``log``, ``warning``, ``error``, ...); ``at`` is in seconds since the epoch."""

    level: str
    text: str
    url: str
    line: int
    at: float
    target_id: str


@dataclass(frozen=True, slots=True)
class Console:
    errors: tuple[ConsoleEntry, ...] = ()
    others: tuple[ConsoleEntry, ...] = ()
    errors_dropped: int = 0
    others_dropped: int = 0


def logged(params: Mapping[str, Any], target_id: str, now: float) -> ConsoleEntry:
    """``Runtime.consoleAPICalled``"""
    arguments = fields.items(params, "args")
    parts = [_shown(argument) for argument in arguments[:ARGUMENTS_CAP]]
    frame = next(iter(fields.items(fields.mapping(params, "stackTrace"), "callFrames")), {})
    return ConsoleEntry(
        fields.text(params, "type"),
        " ".join(parts)[:TEXT_CAP],
        fields.text(frame, "url")[:TEXT_CAP],
        fields.integer(frame, "lineNumber") + 1 if frame else 0,
        _at(params, now),
        target_id,
    )


def thrown(params: Mapping[str, Any], target_id: str, now: float) -> ConsoleEntry:
    """``Runtime.exceptionThrown``"""
    details = fields.mapping(params, "exceptionDetails")
    exception = fields.mapping(details, "exception")
    described = fields.text(exception, "description") or _shown(exception)
    return ConsoleEntry(
        "error",
        (described or fields.text(details, "text"))[:TEXT_CAP],
        fields.text(details, "url")[:TEXT_CAP],
        fields.integer(details, "lineNumber") + 1,
        _at(params, now),
        target_id,
    )


def noted(params: Mapping[str, Any], target_id: str, now: float) -> ConsoleEntry:
    """``Log.entryAdded``: what the browser itself says of a page (failed loads, violations, interventions)."""
    entry = fields.mapping(params, "entry")
    return ConsoleEntry(
        fields.text(entry, "level"),
        fields.text(entry, "text")[:TEXT_CAP],
        fields.text(entry, "url")[:TEXT_CAP],
        fields.integer(entry, "lineNumber") + 1 if "lineNumber" in entry else 0,
        _at(entry, now),
        target_id,
    )


def own(level: str, text: str, url: str, target_id: str, now: float) -> ConsoleEntry:
    """A line of ours, beside what pages and browser say."""
    return ConsoleEntry(level, text[:TEXT_CAP], url[:TEXT_CAP], 0, now, target_id)


def put(console: Console, entry: ConsoleEntry, *, may_repeat: bool = False) -> Console:
    """Add an entry to its ring. ``may_repeat``: the browser repeats what it said before; known entries are left out."""
    if may_repeat and (entry in console.errors or entry in console.others):
        return console
    if entry.level in _ERROR_LEVELS:
        full = len(console.errors) >= ERRORS
        return replace(
            console,
            errors=(*console.errors[-ERRORS + 1 :], entry),
            errors_dropped=console.errors_dropped + full,
        )
    full = len(console.others) >= OTHERS
    return replace(
        console, others=(*console.others[-OTHERS + 1 :], entry), others_dropped=console.others_dropped + full
    )


def _at(params: Mapping[str, Any], now: float) -> float:
    """When it was said: the browser's own time, in seconds; ours, where it gives none that can be."""
    value = params.get("timestamp")
    return value / 1000 if isinstance(value, int | float) and 0 < value < 1e14 else now


def _shown(argument: Mapping[str, Any]) -> str:
    """A remote object in a few words: its value, or how the browser describes it."""
    for key in ("value", "unserializableValue", "description", "type"):
        value = argument.get(key)
        if isinstance(value, str):
            return value[:TEXT_CAP]
        if value is not None and key == "value":
            return str(value)[:TEXT_CAP]
    return ""
