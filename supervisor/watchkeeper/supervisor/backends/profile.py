"""Profile folders: temporary ones of ours, and ones that the person keeps.

Rules: a temporary folder is readable by its owner alone and ends with the browser. While its owner lives it holds a
lock in the folder, so folders left behind by a killed owner are recognised (even where process ids mean different
things, as in containers that share ``/tmp``) and removed by the next start. A kept folder is never deleted, and never
opened twice: a second browser would put its window into the first one, and end.
"""

import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Protocol

from ..errors import InvalidArgument, LaunchFailed
from .find import is_snap

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PREFIX = "watchkeeper-profile-"
UNFINISHED = "watchkeeper-new-"
LOCK = ".watchkeeper-lock"
REMOVE_WITHIN_S = 3.0
LONGEST_TEMPORARY = 55
"""Characters: Chromium makes a socket below its temporary folder, and a socket's path has at most 103 of them."""


class Profile(Protocol):
    path: Path
    environment: Mapping[str, str]
    """What the browser's environment has beside ours."""

    def remove(self) -> None: ...


class KeptProfile:
    """The person's own folder, made when it does not exist.

    Raises: InvalidArgument, LaunchFailed (``profile_in_use``).
    """

    environment: Mapping[str, str] = {}

    def __init__(self, folder: str) -> None:
        self.path = Path(folder).expanduser().absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidArgument(
                f"browser.user_data_dir ({self.path}) cannot be used as a folder: {error.strerror}.",
                "Give a folder that you may write to.",
            ) from None
        user = profile_user(self.path)
        if user is not None:
            raise LaunchFailed(
                f"The profile {self.path} is in use by {user}.",
                "Close that browser, or give another browser.user_data_dir, or none for a temporary profile.",
                kind="profile_in_use",
            )

    def remove(self) -> None:
        """Kept."""


class TemporaryProfile:
    def __init__(self, root: Path) -> None:
        sweep(root)
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))
        lock = _try_lock(unfinished / LOCK)
        assert lock is not None, "a folder that was just made is locked by nobody"
        self._lock = lock
        # Named only now: a sweep by another process never sees it without its lock.
        self.path = unfinished.with_name(PREFIX + unfinished.name.removeprefix(UNFINISHED))
        unfinished.rename(self.path)
        self.environment: Mapping[str, str] = {}
        temporary = self.path / "tmp"
        if len(str(temporary)) <= LONGEST_TEMPORARY:
            # A killed browser leaves its temporary files: here they go with the profile.
            temporary.mkdir(mode=0o700)
            self.environment = {"TMPDIR": str(temporary)}

    def remove(self) -> None:
        """Delete the folder, patiently: processes that end may still write. What stays, the next start removes."""
        deadline = time.monotonic() + REMOVE_WITHIN_S
        if sys.platform == "win32":
            self._lock.close()  # open files cannot be deleted there
        while True:
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists() or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self._lock.close()


def temporary_root(executable: Path) -> Path:
    """Where temporary profiles of this browser are made. A snap sees only its own folder."""
    if is_snap(executable):
        root = Path.home() / "snap" / executable.name / "common"
        if root.is_dir():
            return root
    return Path(tempfile.gettempdir())


def sweep(root: Path) -> None:
    """Remove temporary profiles whose owner is gone."""
    for folder in root.glob(f"{PREFIX}*"):
        try:
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or (sys.platform != "win32" and about.st_uid != os.getuid()):
                continue
            lock = _try_lock(folder / LOCK)
        except OSError:
            continue  # somebody else's, or just removed by its owner
        if lock is None:
            continue
        if sys.platform == "win32":
            lock.close()
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def profile_user(folder: Path) -> str | None:
    """Who has this profile open, in words; None when nobody has.

    Chromium marks it with a link ``SingletonLock`` to ``host-pid``, on Windows with an open file ``lockfile``.
    """
    if sys.platform == "win32":
        try:
            with (folder / "lockfile").open("r+b"):
                return None
        except FileNotFoundError:
            return None
        except OSError:
            return "another browser"
    try:
        host, _, pid = str((folder / "SingletonLock").readlink()).rpartition("-")
    except OSError:
        return None
    if host != socket.gethostname():
        return None  # left by another machine or container; Chromium itself decides
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return f"another user's browser (process {pid})"
    except (OSError, ValueError):
        return None
    return f"another browser (process {pid})"


def _try_lock(path: Path) -> IO[bytes] | None:
    """Open and lock a file; None when somebody else holds it."""
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
