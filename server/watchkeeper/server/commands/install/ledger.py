"""What ``install`` wrote where, and what stood there before: so that undoing finds exactly that.

Rules: one file in Watchkeeper's data folder, for its owner alone, since what stood there before may hold secrets. It is
written before a client's file is, so that nothing is written that nobody knows of. A damaged one counts as empty: what
is ours is recognised by its command anyhow.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ...security.files import write_private

MOST = 1_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One entry, or one element of a list of hooks, in a file.

    ``path`` leads to it, or to the list. ``before`` is the text that stood there, None where nothing did. ``had`` says
    how many keys of the path there were before. ``new_file``: whether the file was not there.
    """

    file: str
    path: tuple[str, ...]
    before: str | None = None
    had: int = 0
    new_file: bool = False


def location() -> Path:
    """Beside the archive."""
    from watchkeeper.context.archive import default_location

    return default_location().with_name("installed.json")


def pieces(path: Path) -> list[Piece]:
    try:
        told = json.loads(path.read_text("utf-8"))
        return [Piece(**{**one, "path": tuple(one["path"])}) for one in told["pieces"]]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def find(known: Iterable[Piece], file: Path, path: tuple[str, ...]) -> Piece | None:
    return next((piece for piece in known if piece.file == str(file) and piece.path == path), None)


def keep(path: Path, known: Iterable[Piece]) -> None:
    """Raises ToolError ``cannot_write``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {"pieces": [asdict(piece) for piece in list(known)[-MOST:]]}
    write_private(path, json.dumps(told, indent=1).encode())
