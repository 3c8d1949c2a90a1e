"""A client's file: read whole, compared, and replaced in one step.

Rules: the file behind a link is replaced, not the link. What was there stays beside it as ``….watchkeeper-backup``, and
mode and owner stay. What changed between reading and writing is noticed, and nothing is written then. A file of
another kind, or of another encoding than UTF-8, is refused.
"""

import contextlib
import difflib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ToolError

LARGEST = 64 << 20
BACKUP = ".watchkeeper-backup"
LOCK_STALE_S = 10.0
LOCK_WAIT_S = 5.0
_MARK = "\ufeff"  # some editors on Windows begin a file with it


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """``path`` as it is named, ``real`` behind links; ``data`` is None where there is none, ``text`` empty then."""

    path: Path
    real: Path
    data: bytes | None
    text: str

    @property
    def blank(self) -> bool:
        """Whether it is missing, or holds nothing."""
        return not self.text.strip()


def read(path: Path) -> ConfigFile:
    """Raises ToolError where it is no file that could be changed."""
    try:
        real = path.resolve()
        found = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise _refused(path, "is a link that leads nowhere", "Remove the link, or mend it.") from None
        return ConfigFile(path, path.resolve(), None, "")
    except (OSError, RuntimeError) as error:
        raise _refused(path, f"cannot be looked at: {getattr(error, 'strerror', error)}", "") from None
    if not stat.S_ISREG(found.st_mode):
        raise _refused(path, "is no ordinary file", "Name another with --file.")
    if found.st_size > LARGEST:
        raise _refused(path, f"has more than {LARGEST >> 20} MiB", "Name another with --file.")
    try:
        data = real.read_bytes()
        return ConfigFile(path, real, data, data.decode("utf-8").removeprefix(_MARK))
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}", "See to its permissions.") from None
    except UnicodeDecodeError:
        raise _refused(path, "is not UTF-8", "Save it as UTF-8 in an editor.") from None


def write(before: ConfigFile, text: str | None, *, locked: bool = False) -> Path | None:
    """Replace the file; None removes it, which is for files of ours alone. Gives the backup's path, if there is one.

    ``locked``: under the client's own lock, which is the folder ``<file>.lock``.
    Raises: ToolError ``changed_meanwhile``, ``busy``, ``cannot_write``: nothing was written.
    """
    real = before.real
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with _lock(real) if locked else contextlib.nullcontext():
            if read(before.path).data != before.data:
                raise ToolError(
                    "changed_meanwhile",
                    f"{before.path} was changed while you looked; nothing was written to it.",
                    "Run the command again.",
                )
            backup = None
            if before.data is not None and text is not None:
                backup = real.with_name(real.name + BACKUP)
                _replace(backup, before.data, like=real)
            if text is None:
                real.unlink(missing_ok=True)
            else:
                mark = _MARK if (before.data or b"").startswith(_MARK.encode()) else ""
                _replace(real, (mark + text).encode("utf-8"), like=real)
            return backup
    except OSError as error:
        raise ToolError(
            "cannot_write",
            f"{before.path} cannot be written: {error.strerror}.",
            "See to the permissions of its folder; a program that holds it open may be in the way.",
        ) from None


def _replace(path: Path, data: bytes, *, like: Path) -> None:
    """Write beside it and move into place; mode and owner are those of ``like``, or its owner's alone."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # readable by its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            if like.exists():
                found = like.stat()
                Path(name).chmod(stat.S_IMODE(found.st_mode))
                if hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.getuid(), os.getgid()):
                    with contextlib.suppress(PermissionError):  # then it is ours, as with any editor
                        os.chown(name, found.st_uid, found.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _lock(real: Path) -> Iterator[None]:
    """The lock that clients in JavaScript use: a folder; one that was not touched for ten seconds is stale.

    Source: https://github.com/moxystudio/node-proper-lockfile#design
    """
    folder = real.with_name(real.name + ".lock")
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            folder.mkdir()
            break
        except FileExistsError:
            with contextlib.suppress(OSError):  # released, or taken by another, at this moment
                if time.time() - folder.stat().st_mtime > LOCK_STALE_S:
                    folder.rmdir()
                    continue
        if time.monotonic() > until:
            raise ToolError("busy", f"The client holds {folder}.", "Close it, or try again.")
        time.sleep(0.05)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def difference(before: ConfigFile, text: str | None) -> str:
    """A unified diff, as people read it."""
    old = before.text.splitlines()
    new = (text or "").splitlines()
    names = (str(before.path) if before.data is not None else "/dev/null", str(before.path) if text else "/dev/null")
    return "\n".join(difflib.unified_diff(old, new, *names, lineterm=""))


def _refused(path: Path, what: str, hint: str) -> ToolError:
    return ToolError("not_a_config_file", f"{path} {what}; nothing was written.", hint or "Name another with --file.")
