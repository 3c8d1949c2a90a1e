"""Find the browsers that are installed here.

Rules: looks for files, starts nothing, reads no registry. The order is that of preference: Chrome, Chromium, Edge,
Brave as installed for everybody, then what test tools downloaded. A browser that several names lead to is named once.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["chrome", "chromium", "edge", "brave"]

LINUX_COMMANDS: tuple[tuple[Kind, str], ...] = (
    ("chrome", "google-chrome-stable"),
    ("chrome", "google-chrome"),
    ("chromium", "chromium"),
    ("chromium", "chromium-browser"),
    ("edge", "microsoft-edge-stable"),
    ("edge", "microsoft-edge"),
    ("brave", "brave-browser-stable"),
    ("brave", "brave-browser"),
    ("brave", "brave"),
)
LINUX_FOLDERS = "/usr/local/bin:/usr/bin:/bin:/snap/bin"
"""Searched after ``PATH``, which may be short where a desktop program starts us."""

MAC_APPS: tuple[tuple[Kind, str], ...] = (
    ("chrome", "Google Chrome"),
    ("chromium", "Chromium"),
    ("edge", "Microsoft Edge"),
    ("brave", "Brave Browser"),
)
WINDOWS_FILES: tuple[tuple[Kind, str], ...] = (
    ("chrome", r"Google\Chrome\Application\chrome.exe"),
    ("chromium", r"Chromium\Application\chrome.exe"),
    ("edge", r"Microsoft\Edge\Application\msedge.exe"),
    ("brave", r"BraveSoftware\Brave-Browser\Application\brave.exe"),
)
WINDOWS_ROOTS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")

DOWNLOADS = {
    "linux": (
        (".cache/ms-playwright", "chromium-*/chrome-linux*/chrome"),
        (".cache/puppeteer", "chrome/linux-*/chrome-linux*/chrome"),
    ),
    "darwin": (
        ("Library/Caches/ms-playwright", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*"),
        (".cache/puppeteer", "chrome/mac*/chrome-mac*/*.app/Contents/MacOS/*"),
    ),
    "win32": (
        ("AppData/Local/ms-playwright", "chromium-*/chrome-win*/chrome.exe"),
        (".cache/puppeteer", "chrome/win*/chrome-win*/chrome.exe"),
    ),
}
"""Folders below the home folder in which Playwright and Puppeteer keep browsers, and the executables therein."""


@dataclass(frozen=True, slots=True)
class Found:
    kind: Kind
    path: Path


def find_browser() -> Path | None:
    """The browser that is taken when none is configured."""
    return next((found.path for found in find_browsers()), None)


def find_browsers() -> list[Found]:
    """All that are found, the preferred one first."""
    found: dict[Path, Found] = {}
    for candidate in candidates(sys.platform, os.environ, Path.home()):
        if is_executable(candidate.path):
            found.setdefault(_identity(candidate.path), candidate)
    return list(found.values())


def candidates(platform: str, environment: Mapping[str, str], home: Path) -> Iterator[Found]:
    """Where a browser would be, in order of preference. ``platform`` as ``sys.platform`` has it."""
    if platform == "win32":
        for kind, file in WINDOWS_FILES:
            for root in WINDOWS_ROOTS:
                if environment.get(root):
                    yield Found(kind, Path(rf"{environment[root]}\{file}"))
    elif platform == "darwin":
        for kind, app in MAC_APPS:
            for root_folder in (Path("/Applications"), home / "Applications"):
                yield Found(kind, root_folder / f"{app}.app/Contents/MacOS/{app}")
    else:
        for kind, command in LINUX_COMMANDS:
            path = shutil.which(command, path=f"{environment.get('PATH', '')}:{LINUX_FOLDERS}")
            if path:
                yield Found(kind, Path(path))
    for folder, pattern in DOWNLOADS.get(platform, DOWNLOADS["linux"]):
        for path_found in sorted((home / folder).glob(pattern), key=_newest_first):
            yield Found("chromium", path_found)


def is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def is_snap(path: Path) -> bool:
    """Whether this browser runs confined by snap, which sees neither ``/tmp`` nor hidden folders of the home folder."""
    return path.is_relative_to("/snap") or path.resolve() == Path("/usr/bin/snap")


def _identity(path: Path) -> Path:
    # All snap commands are links to one program, which looks at the name that it was called by.
    return path if is_snap(path) else path.resolve()


def _newest_first(path: Path) -> tuple[int, ...]:
    return tuple(-int(digits) for digits in "".join(c if c.isdigit() else " " for c in str(path)).split())
