"""The machine: temporary files, shared memory, a display, and whether a browser's sandbox can work."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from ...settings import Settings
from .finding import Finding, Findings

SMALL_SHM = 64 << 20


def examined(settings: Settings) -> Findings:
    yield from _temporary()
    if sys.platform != "linux":
        return
    yield from _shared_memory(Path("/dev/shm"))
    yield from _display(settings)
    yield from sandbox(settings, is_root=os.geteuid() == 0, kernel=Path("/proc/sys"))


def _temporary() -> Findings:
    try:
        with tempfile.TemporaryDirectory(prefix="watchkeeper-") as folder:
            yield Finding("ok", "temporary", f"temporary profiles can be made in {Path(folder).parent}")
    except OSError as error:
        said = f"no temporary folder can be made: {error.strerror}"
        yield Finding("wrong", "temporary", said, "Set TMPDIR to a folder of yours.")


def _shared_memory(folder: Path) -> Findings:
    if not folder.is_dir():
        said = f"there is no {folder}; browsers then use the disk"
        yield Finding("note", "shared memory", said, "Mount a tmpfs there: it is faster.")
    elif shutil.disk_usage(folder).total <= SMALL_SHM:
        said = f"{folder} is small, as in containers; browsers then use the disk"
        yield Finding("note", "shared memory", said, "docker run --shm-size=1g is faster.")


def _display(settings: Settings) -> Findings:
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    if settings.browser.headless is False:
        said = "browser.headless is false, and there is no display"
        yield Finding("wrong", "display", said, "Unset it, or set DISPLAY.")
    else:
        yield Finding("ok", "display", "no display: browsers start headless")


def sandbox(settings: Settings, *, is_root: bool, kernel: Path) -> Findings:
    """Whether Chromium could make the namespaces that its sandbox is made of. ``kernel``: /proc/sys.

    Sources: https://chromium.googlesource.com/chromium/src/+/main/docs/security/apparmor-userns-restrictions.md,
    https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces
    """
    if "--no-sandbox" in settings.browser.extra_args:
        said = (
            "browser.extra_args turns the browser's sandbox off: a page that breaks out of the browser has your files"
        )
        yield Finding("note", "sandbox", said, "Take --no-sandbox out, unless a container is the sandbox.")
    elif is_root:
        said = "we run as root, as which Chromium has no sandbox: a page that breaks out of the browser has everything"
        yield Finding("note", "sandbox", said, "Run as another user, unless a container is the sandbox.")
    elif _number(kernel / "user" / "max_user_namespaces") == 0:
        said = "user namespaces are switched off, so the browser's sandbox cannot start"
        yield Finding("wrong", "sandbox", said, "sudo sysctl user.max_user_namespaces=10000")
    elif _number(kernel / "kernel" / "unprivileged_userns_clone") == 0:
        said = "user namespaces are for root only, so the browser's sandbox cannot start"
        yield Finding("wrong", "sandbox", said, "sudo sysctl kernel.unprivileged_userns_clone=1")
    elif _number(kernel / "kernel" / "apparmor_restrict_unprivileged_userns") == 1:
        said = "AppArmor lets only programs with a profile of theirs use user namespaces (Ubuntu 23.10 and newer)"
        remedy = (
            "Chrome's and Ubuntu's own packages bring theirs. Another browser needs one in /etc/apparmor.d with "
            "`userns,`, or, for all programs, sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
        yield Finding("note", "sandbox", said, remedy)
    else:
        yield Finding("ok", "sandbox", "the browser's sandbox can use user namespaces")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
