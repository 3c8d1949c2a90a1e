"""Why a browser did not start, from what it printed and how it ended.

Rules: pure. The first line that is recognised names the kind; what is not recognised is shown as it is, cut to its end.
"""

import re
import signal
from dataclasses import dataclass

from ..errors import LaunchFailed

DETAIL_LINES = 6
DETAIL_CHARS = 1000
MINIMUM_MAJOR = 120


@dataclass(frozen=True, slots=True)
class _Kind:
    kind: str
    pattern: str
    message: str
    hint: str


_KINDS = (
    _Kind(
        "default_profile",
        r"remote debugging requires a non-default data directory",
        "The browser refuses remote debugging on its default profile (Chrome does since version 136).",
        "Give browser.user_data_dir a folder of its own, or leave it out for a temporary profile.",
    ),
    _Kind(
        "missing_library",
        r"error while loading shared libraries: (?P<what>\S+?):|version `(?P<version>GLIBC\S+)' not found",
        "The browser lacks a library of the system: {what}.",
        "Install the browser with the system's package manager, which brings the libraries that it needs.",
    ),
    _Kind(
        "snap",
        r"requires the chromium snap|snap-confine|cannot (?:create|perform) .*snap|is not a snap cgroup"
        r"|snap: command not",
        "The browser is a snap that cannot run here.",
        "Install a browser that is not a snap (Google's .deb, say) and name it in browser.executable.",
    ),
    _Kind(
        "sandbox",
        r"No usable sandbox|Running as root without --no-sandbox|SUID sandbox helper binary|zygote_host_impl_linux"
        r"|Failed to move to new namespace|sandbox/linux/.*(?:FATAL|Check failed)",
        "The browser's sandbox cannot start on this machine.",
        "Let user namespaces be used (in a container: a seccomp profile that allows them; on Ubuntu 23.10 and newer: an"
        " AppArmor profile for this browser). Where the container itself is the sandbox, add --no-sandbox to"
        " browser.extra_args.",
    ),
    _Kind(
        "no_display",
        r"Missing X server or \$DISPLAY|[Uu]nable to open X display|cannot open display|platform failed to initialize"
        r"|Failed to connect to Wayland display",
        "The browser should open a window, and there is no display.",
        "Set browser.headless to true, or start where DISPLAY or WAYLAND_DISPLAY is set.",
    ),
    _Kind(
        "profile_in_use",
        r"profile appears to be in use|Opening in existing browser session|SingletonLock|ProcessSingleton",
        "The profile is in use by another browser.",
        "Close that browser, or give another browser.user_data_dir, or none for a temporary profile.",
    ),
    _Kind(
        "not_executable",
        r"exec: .*(?:Permission denied|not found|Exec format error)|cannot execute",
        "The browser's executable cannot be run here.",
        "Check browser.executable: its permissions, and that it is built for this kind of machine.",
    ),
)

FATAL_BUT_RUNNING = re.compile(_KINDS[0].pattern)
"""Said by a browser that goes on running, and will never speak to us."""


def explain(printed: str, exit_code: int | None, waited_s: float) -> LaunchFailed:
    """The error for a browser that printed this and ended with this code (None: it still runs), or kept silent."""
    detail = tail(printed)
    for kind in _KINDS:
        match = re.search(kind.pattern, printed)
        if match:
            named = match.groupdict()
            what = named.get("what") or named.get("version") or ""
            return LaunchFailed(kind.message.format(what=what), kind.hint, kind=kind.kind, detail=detail)
    said = f" It printed: {detail}" if detail else ""
    if exit_code is None:
        return LaunchFailed(
            f"The browser was started but did not answer within {waited_s:g} s.{said}",
            "The machine may be overloaded: try again. If it stays so, check browser.executable and"
            " browser.extra_args.",
            kind="timeout",
            detail=detail,
        )
    return LaunchFailed(
        f"The browser ended while it started ({ended(exit_code)}).{said}",
        "Check browser.executable and browser.extra_args; started by hand with --headless it may say more.",
        detail=detail,
    )


def check_version(product: str) -> None:
    """Raises: LaunchFailed (``too_old``)."""
    match = re.search(r"/(\d+)\.", product)
    if match and int(match[1]) < MINIMUM_MAJOR:
        raise LaunchFailed(
            f"The browser ({product}) is too old: version {MINIMUM_MAJOR} is the oldest that will do.",
            "Update it, or name another in browser.executable.",
            kind="too_old",
        )


def ended(exit_code: int) -> str:
    """How a process ended, in words."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"killed by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")


def tail(printed: str) -> str:
    """The last lines of what was printed, without what every browser prints where there is no desktop."""
    lines = [line.strip() for line in printed.splitlines() if line.strip() and "dbus/" not in line]
    return " | ".join(lines[-DETAIL_LINES:])[-DETAIL_CHARS:]
