"""What doctor tells of one thing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``wrong`` keeps the server from its job; a ``note`` does not, but somebody may want to know or mend it."""

    level: Level
    about: str
    what: str
    remedy: str = ""


Findings = Iterator[Finding]
