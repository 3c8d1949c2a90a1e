"""Reading fields of JSON that a browser sent.

Rules: a field that is missing or of another type reads as its neutral value; nothing here raises, so that a malformed
event can never stop the reducer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]
_EMPTY: Object = {}


def text(params: Mapping[str, Any], key: str) -> str:
    """The string under ``key``, or ``""``."""
    value = params.get(key)
    return value if isinstance(value, str) else ""


def integer(params: Mapping[str, Any], key: str) -> int:
    """The integer under ``key``, or 0."""
    value = params.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def flag(params: Mapping[str, Any], key: str) -> bool:
    """True only where ``key`` holds ``true``."""
    return params.get(key) is True


def mapping(params: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under ``key``, or an empty one."""
    value = params.get(key)
    return value if isinstance(value, Mapping) else _EMPTY


def items(params: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """The objects in the list under ``key``; entries of another type are left out."""
    value = params.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else ()
