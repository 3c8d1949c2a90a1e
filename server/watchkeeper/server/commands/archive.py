"""``watchkeeper archive``: what the archive holds, and deleting from it.

Rules: asks nothing, and says what it deleted. An archive that is not there yet is empty, and is not made by looking.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .. import archives
from ..errors import ToolError
from ..settings import Settings

if TYPE_CHECKING:
    from watchkeeper.context.archive import Archive
    from watchkeeper.context.store import Session

MEGABYTE = 1_000_000
_BRANCH = re.compile(r" #\d+\Z")


def archive_command(parsed: argparse.Namespace, settings: Settings) -> int:
    """Raises ToolError, ArchiveError."""
    principal = getattr(parsed, "principal", None) or ""
    where = archives.location(settings, principal)
    if isinstance(where, Path) and not where.exists():
        return _without(parsed, where)
    archive = archives.opened(settings, principal)
    try:
        match parsed.action:
            case "list":
                return _list(archive, where, as_json=parsed.json)
            case "forget":
                return _forget(archive, parsed.session)
            case _:
                return _prune(archive, *_limits(parsed, settings))
    finally:
        archive.close()


def _without(parsed: argparse.Namespace, where: Path) -> int:
    if parsed.action == "forget":
        raise _unknown(parsed.session)
    _print("[]" if parsed.action == "list" and parsed.json else f"There is no archive yet: {where} does not exist.")
    return 0


def _list(archive: "Archive", where: str | Path, *, as_json: bool) -> int:
    sessions = archive.sessions()
    if as_json:
        described = [
            {
                "session": s.name,
                "messages": s.messages,
                "characters": s.characters,
                "first_at": s.first_at,
                "last_at": s.last_at,
            }
            for s in sessions
        ]
        _print(json.dumps(described, indent=2, ensure_ascii=False))
        return 0
    # The address of a database may hold a password.
    _print(f"{where if isinstance(where, Path) else 'The PostgreSQL database'}: {_counted(sessions)}")
    if sessions:
        _print(f"\n{'last added to (UTC)':<19} {'messages':>9} {'MB':>9}  session")
    for s in sessions:
        at = time.strftime("%Y-%m-%d %H:%M", time.gmtime(s.last_at))
        _print(f"{at:<19} {s.messages:>9,} {s.characters / MEGABYTE:>9,.2f}  {s.name}")
    return 0


def _forget(archive: "Archive", name: str) -> int:
    # The lossless engine keeps what was edited away in branches: "name #2".
    gone = [s for s in archive.sessions() if s.name == name or _BRANCH.sub("", s.name) == name]
    if not gone:
        raise _unknown(name)
    for session in gone:
        archive.forget(session.name)
    _tell(gone)
    return 0


def _limits(parsed: argparse.Namespace, settings: Settings) -> tuple[float | None, float | None]:
    days, megabytes = parsed.days, parsed.megabytes
    if days is None and megabytes is None:  # what is given on the command line stands alone
        days, megabytes = settings.context.archive_keep_days, settings.context.archive_keep_megabytes
    if days is None and megabytes is None:
        raise ToolError(
            "nothing_to_do",
            "Nothing says what to keep, so nothing was deleted.",
            "Give --days or --megabytes, or set context.archive_keep_days or context.archive_keep_megabytes.",
        )
    return days, megabytes


def _prune(archive: "Archive", days: float | None, megabytes: float | None) -> int:
    before = archive.sessions()
    gone = set(archive.retain(days=days, megabytes=megabytes))
    _tell([s for s in before if s.name in gone])
    return 0


def _tell(gone: "list[Session]") -> None:
    for session in gone:
        _print(
            f"Deleted {session.name}: {_number(session.messages, 'message')}, {session.characters / MEGABYTE:,.2f} MB."
        )
    if not gone:
        _print("Nothing was to be deleted.")


def _counted(sessions: "list[Session]") -> str:
    megabytes = sum(s.characters for s in sessions) / MEGABYTE
    return f"{_number(len(sessions), 'conversation')}, {megabytes:,.2f} MB"


def _number(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def _unknown(name: str) -> ToolError:
    return ToolError(
        "unknown_session",
        f"The archive has no conversation {name[:80]!r}; nothing was deleted.",
        "`watchkeeper archive list` shows their names.",
    )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
