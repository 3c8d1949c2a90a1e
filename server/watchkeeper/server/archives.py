"""Where the archive is, how it is opened, and how long it keeps what it holds; all of it from settings.

Rules: each principal has a file of its own, in PostgreSQL a schema, so that a search of everything finds only what is
theirs. Opening deletes nothing; the server, not a command that looks, applies ``context.archive_keep_days`` and
``…_megabytes``.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from .settings import Settings

if TYPE_CHECKING:
    from watchkeeper.context.archive import Archive

BUILT_IN = "compressor"
EXPAND_TOOLS = {BUILT_IN: "archive_expand", "lcm": "lcm_expand"}
"""By engine, what gives back the original behind a handle. Other engines keep what they like, where they like."""
log = logging.getLogger(__name__)


def expand_tool(settings: Settings) -> str:
    """The tool that gives originals back; empty where there is no archive, or the tool is not offered."""
    context = settings.context
    if (context.engine == BUILT_IN and not context.archive) or "core" not in settings.server.toolsets:
        return ""
    return EXPAND_TOOLS.get(context.engine, "")


def location(settings: Settings, principal: str = "") -> str | Path:
    """The file, or the ``postgresql://`` address, of the active engine's archive."""
    from watchkeeper.context.archive import default_location

    chosen = str(settings.context.engines.get(settings.context.engine, {}).get("path") or "")
    if "://" in chosen:
        return chosen
    where = Path(chosen or default_location()).expanduser()
    return where.with_name(f"{where.stem}-{principal}{where.suffix}") if principal else where


def opened(settings: Settings, principal: str = "") -> "Archive":
    """Raises ArchiveError where it cannot be used."""
    from watchkeeper.context.archive import open_archive

    return open_archive(location(settings, principal), owner=principal)


def retained(archive: "Archive", settings: Settings) -> "Archive":
    """The archive without what settings say to keep no longer; each conversation that goes is logged."""
    days, megabytes = settings.context.archive_keep_days, settings.context.archive_keep_megabytes
    if days is not None or megabytes is not None:
        for name in archive.retain(days=days, megabytes=megabytes):
            log.info("deleted %r from the archive, as context.archive_keep_days and …_megabytes say", name)
    return archive
