"""Folders and files that the server uses: where clients may read and write, the archive, the log, the hook's log."""

import os
import stat
import sys
from pathlib import Path

from watchkeeper.context.archive.location import default_location

from ... import archives
from ...security.files import allowed_folders
from ...settings import Settings
from .. import hook as compaction_hook
from .finding import Finding, Findings


def examined(settings: Settings) -> Findings:
    yield from _allowed(settings)
    yield from _archive(settings)
    yield from _log(settings)
    yield from _hook()


def _allowed(settings: Settings) -> Findings:
    if not settings.server.allowed_dirs and Path.cwd() in (Path(Path.cwd().anchor), Path.home()):
        own = default_location().with_name("files")  # made when it is used
        yield Finding("ok", "folders", f"started here, files are read and written in {own}")
        return
    for folder in allowed_folders(settings):
        if not folder.is_dir():
            said = f"server.allowed_dirs names {folder}, which is no folder"
            yield Finding("wrong", "folders", said, "Make it, or take it out of the setting.")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            said = f"files cannot be written in {folder}"
            yield Finding("note", "folders", said, "Name another in server.allowed_dirs, or see to its permissions.")
        elif folder in (Path(folder.anchor), Path.home().resolve()):
            said = f"clients may read and write everything in {folder}"
            yield Finding("note", "folders", said, "Name the folders that they need in server.allowed_dirs.")
        else:
            yield Finding("ok", "folders", f"files may be read and written in {folder}")


def _archive(settings: Settings) -> Findings:
    where = archives.location(settings)
    used = settings.context.archive or settings.context.engine != archives.BUILT_IN
    if not isinstance(where, Path) or not (used or where.exists()):
        return
    if not where.exists():
        folder = next(parent for parent in where.parents if parent.exists())
        if os.access(folder, os.W_OK | os.X_OK):
            yield Finding("ok", "archive", f"the archive will be made: {where}")
        else:
            said = f"the archive {where} cannot be made: {folder} is not writable"
            yield Finding("wrong", "archive", said, _path_remedy(settings))
        return
    if not os.access(where, os.R_OK | os.W_OK):
        said = f"the archive {where} cannot be read and written"
        yield Finding("wrong" if used else "note", "archive", said, _path_remedy(settings))
        return
    mode = stat.S_IMODE(where.stat().st_mode)
    if sys.platform != "win32" and mode & 0o077:
        said = f"others can read the archive {where}, which holds conversations word for word"
        yield Finding("note", "archive", said, f"chmod 600 {where}")
    else:
        yield Finding("ok", "archive", f"the archive is for you alone: {where}")


def _path_remedy(settings: Settings) -> str:
    return f"See to its permissions, or set context.engines.{settings.context.engine}.path to another file."


def _log(settings: Settings) -> Findings:
    named = settings.server.log_file
    if not named:
        return
    path = Path(named).expanduser()
    if os.access(path if path.exists() else path.parent, os.W_OK):
        yield Finding("ok", "log", f"the log is written to {path}")
    else:
        yield Finding("wrong", "log", f"server.log_file {path} cannot be written", "Name another, or make its folder.")


def _hook() -> Findings:
    said = compaction_hook.last_note()
    if not said:
        return
    if " failed: " in said:
        yield Finding("note", "hook", f"Claude Code's hook, last: {said}", f"More: {compaction_hook.log_file()}")
    else:
        yield Finding("ok", "hook", f"Claude Code's hook, last: {said}")
