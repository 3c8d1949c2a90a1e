"""What stands in password fields, so that raw results do not show it.

Rules: a snapshot never has these values; a script or a raw command could read them, so they are masked in what such
calls give. Read when the result is there, from every frame that answers at once; short values, which would mask half
of the language, are left, and so are fields within shadow trees. A script that takes a value apart gets past this: it
keeps the careless from harm.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor

MASK = "[password]"
LEAST = 4
READ_TIMEOUT_S = 1.0
_READ = "[...document.querySelectorAll('input[type=password]')].map((field) => field.value)"


async def without_passwords(value: Any, supervisor: "Supervisor") -> Any:
    """A JSON value with what now stands in password fields of the selected tab masked."""
    if not _has_text(value):
        return value
    frames = supervisor.snapshot().frames
    read = await asyncio.gather(*(_of_frame(supervisor, frame.frame_id) for frame in frames))
    values = sorted({one for found in read for one in found if len(one) >= LEAST}, key=len, reverse=True)
    return _masked(value, values) if values else value


async def _of_frame(supervisor: "Supervisor", frame_id: str) -> list[str]:
    from watchkeeper.supervisor import SupervisorError

    try:
        found = await supervisor.evaluate(_READ, frame_id=frame_id, await_promise=False, timeout=READ_TIMEOUT_S)
    except SupervisorError:
        return []  # held, gone or busy: it gave no result either
    return [str(one) for one in found] if isinstance(found, list) else []


def _has_text(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) >= LEAST
    if isinstance(value, Mapping):
        return any(map(_has_text, value.values()))
    return isinstance(value, list) and any(map(_has_text, value))


def _masked(value: Any, values: Iterable[str]) -> Any:
    if isinstance(value, str):
        for one in values:
            value = value.replace(one, MASK)
        return value
    if isinstance(value, Mapping):
        return {key: _masked(inner, values) for key, inner in value.items()}
    return [_masked(inner, values) for inner in value] if isinstance(value, list) else value
