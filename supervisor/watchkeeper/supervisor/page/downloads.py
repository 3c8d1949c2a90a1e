"""Downloads of a task: into one folder, under safe names, reported from beginning to end.

Rules: nothing is saved before a folder was named. A file appears under its name when it is whole; the name a site
suggests is made harmless and never replaces a file that is there. A ring of the last downloads.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Browser/#method-setDownloadBehavior
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary, proxy

from ..core import fields
from ..core.inputs import Event
from ..errors import CallTimeout, InvalidArgument
from .port import PagePort

KEPT = 50
NAME_CAP = 150
State = Literal["in_progress", "completed", "canceled"]
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\u200b-\u200f\u202a-\u202e\u2066-\u2069]')


@dataclass(slots=True)
class Download:
    """``path`` is where the file is, once it is whole. ``total`` 0: the site did not say."""

    number: int
    guid: str
    url: str
    suggested: str
    state: State = "in_progress"
    received: int = 0
    total: int = 0
    path: Path | None = None


class Downloads:
    """Made by ``downloads_of``."""

    def __init__(self, port: PagePort) -> None:
        self._port = port
        self._known: dict[str, Download] = {}
        self._folder: Path | None = None
        self._stop: Callable[[], None] | None = None
        self._changed = asyncio.Event()
        self._count = 0

    async def save_to(self, folder: Path) -> None:
        """Save downloads in a folder from now on. Raises InvalidArgument where it is none."""
        if not await asyncio.to_thread(folder.is_dir):
            raise InvalidArgument(f"{folder} is no folder.", "Make it first, or name another one.")
        if self._stop is None:
            self._stop = self._port.listen(self._hear)
        self._folder = folder
        behaviour = {"behavior": "allowAndName", "downloadPath": str(folder), "eventsEnabled": True}
        await self._port.call("Browser.setDownloadBehavior", behaviour)

    def list(self) -> tuple[Download, ...]:
        return tuple(self._known.values())

    async def cancel(self, number: int) -> None:
        found = self._numbered(number)
        await self._port.call("Browser.cancelDownload", {"guid": found.guid})

    async def wait(self, number: int, timeout: float) -> Download:
        """Until a download is over. Raises CallTimeout, InvalidArgument (unknown number)."""
        found = self._numbered(number)
        try:
            async with asyncio.timeout(timeout):
                while found.state == "in_progress":
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise CallTimeout(
                f"The download of {found.suggested[:80]!r} has {found.received:,} of {found.total:,} bytes.",
                "It goes on; wait again.",
            ) from None
        return found

    def _numbered(self, number: int) -> Download:
        found = next((d for d in self._known.values() if d.number == number), None)
        if found is None:
            raise InvalidArgument(f"There is no download {number}.", "List the downloads first.")
        return found

    def _hear(self, event: Event) -> None:
        params = event.params
        guid = fields.text(params, "guid")
        if event.method == "Page.downloadWillBegin" and guid not in self._known:
            self._count += 1
            url, name = fields.text(params, "url")[:2000], fields.text(params, "suggestedFilename")
            self._known[guid] = Download(self._count, guid, url, name[:NAME_CAP])
            while len(self._known) > KEPT:
                self._known.pop(next(iter(self._known)))
        elif event.method == "Page.downloadProgress" and guid in self._known:
            found = self._known[guid]
            found.received = int(_number(params.get("receivedBytes")))
            found.total = int(_number(params.get("totalBytes")))
            if found.state == "in_progress" and fields.text(params, "state") == "completed":
                found.path = self._place(found)
                found.state = "completed"
            elif found.state == "in_progress" and fields.text(params, "state") == "canceled":
                found.state = "canceled"
        else:
            return
        self._changed.set()

    def _place(self, found: Download) -> Path | None:
        """Give a whole file its name. A rename within one folder, so it takes no time."""
        if self._folder is None:
            return None
        saved = self._folder / found.guid
        target = free_path(self._folder, safe_name(found.suggested))
        try:
            saved.rename(target)
        except OSError:
            return saved if saved.exists() else None
        return target


def safe_name(suggested: str) -> str:
    """A file name without folders, control characters, or what hides a file."""
    name = _UNSAFE.sub("_", suggested.replace("\\", "/").rsplit("/", 1)[-1]).strip(". ")
    stem, dot, suffix = name.rpartition(".")
    if dot and len(suffix) <= 10:
        return f"{stem[:NAME_CAP]}.{suffix}"
    return name[:NAME_CAP] or "download"


def free_path(folder: Path, name: str) -> Path:
    """``name``, or with a number where a file of the name is there."""
    path = folder / name
    number = 1
    while path.exists():
        path = folder / f"{Path(name).stem} ({number}){Path(name).suffix}"
        number += 1
    return path


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


_downloads: WeakKeyDictionary[PagePort, Downloads] = WeakKeyDictionary()


def downloads_of(port: PagePort) -> Downloads:
    """The downloads of a task."""
    found = _downloads.get(port)
    if found is None:
        found = _downloads[port] = Downloads(proxy(port))
    return found
