"""What an action started: navigations, dialogs, new tabs, downloads.

Rules: listening begins before the action. When the action was answered, one more round trip through the page collects
what it started at once; what was started is waited for, bounded; what starts later belongs to nobody's action. A page
that is replaced under the action is a success of the action, not an error.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/Page/#event-frameRequestedNavigation,
.../Page/#event-frameStartedNavigating, .../Page/#event-frameStoppedLoading, .../Page/#event-windowOpen
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..core import fields
from ..core.inputs import Event
from ..core.quoting import quoted
from ..core.view import Dialog, Tab
from ..errors import CallInterrupted, CallTimeout, ProtocolError, SupervisorError, TargetClosed
from .port import PagePort
from .state import refuse_while_dialog_open

LOAD_WAIT_S = 10.0
UNSURE_WAIT_S = 1.0
ROUND_TRIP_S = 2.0
NEXT_TURN = "new Promise((resolve) => setTimeout(resolve))"
DESCRIBE = "[location.href, document.title, performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0]"
Phase = Literal["requested", "started", "committed", "loaded", "failed", "over"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A frame that shows another document now, or is about to. ``state`` is ``loaded``, ``loading``, ``waiting``
    (no response yet) or ``failed``."""

    frame: str
    url: str
    title: str
    status: int
    state: str


@dataclass(frozen=True, slots=True)
class Effects:
    """``moved_to``: the new address of a page that changed it without loading another document."""

    arrivals: tuple[Arrival, ...] = ()
    moved_to: str = ""
    tabs: tuple[Tab, ...] = ()
    dialogs: tuple[Dialog, ...] = ()
    downloads: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """In words, page text quoted."""
        told = []
        for arrival in self.arrivals:
            where = "the page" if arrival.frame == "" else f"frame {arrival.frame}"
            status = f", HTTP {arrival.status}" if arrival.status >= 400 else ""
            title = f" {quoted(arrival.title)}" if arrival.title else ""
            what = _ARRIVED[arrival.state]
            told.append(f"{where} {what}{title} {quoted(arrival.url)}{status}")
        if self.moved_to:
            told.append(f"the address is now {quoted(self.moved_to)}")
        told += [f"opened tab {tab.tab_id} {quoted(tab.url)}" for tab in self.tabs]
        told += [f"started the download of {quoted(name)}" for name in self.downloads]
        told += [f"dialog {d.id} is open: {d.type} {quoted(d.message[:300])}" for d in self.dialogs]
        return told


_ARRIVED = {
    "loaded": "is now",
    "loading": "is loading",
    "waiting": f"still waits, after {LOAD_WAIT_S:g} s, for a response from",
    "failed": "could not load",
}


@dataclass(slots=True)
class _Navigation:
    phase: Phase
    url: str
    wanted: bool
    """Of the tab, of the frame that was acted in, or started by a link or a form; not by some frame's script."""


@dataclass(slots=True)
class Watch:
    """Listens while an action runs: ``async with watched(port) as watch: ...; effects = await watch.settle(...)``."""

    port: PagePort
    frame_id: str
    _navigations: dict[str, _Navigation] = field(default_factory=dict)
    _moved_to: str = ""
    _windows: int = 0
    _ended: int = 0
    _downloads: dict[str, str] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _known: frozenset[str] = frozenset()
    _tabs: frozenset[str] = frozenset()
    _dialogs: frozenset[str] = frozenset()
    _top: str = ""
    _expected: str = ""

    async def perform(
        self, act: Callable[[], Awaitable[None]], after: Callable[[], Awaitable[Any]] | None = None
    ) -> Effects:
        """Do something, and give what it started. ``after`` is the round trip that lets it start.

        Raises DialogOpened where one was open before; one that opens now is an effect.
        """
        refuse_while_dialog_open(self.port, "the action")
        view = self.port.snapshot()
        self._known = frozenset(frame.frame_id for frame in view.frames)
        self._tabs = frozenset(tab.tab_id for tab in view.tabs)
        self._dialogs = frozenset(dialog.id for dialog in view.pending_dialogs)
        self._top = view.frames[0].frame_id if view.frames else ""
        stop = self.port.listen(self._hear)
        try:
            try:
                await act()
                await self._round_trip(after)
            except CallInterrupted:
                pass  # a dialog: it is told below
            except (TargetClosed, ProtocolError):
                # The page that acted was replaced or closed by what it did. Anything else is the caller's to know.
                if not self._navigations and not self._closed():
                    raise
            return await self._settled()
        finally:
            stop()

    def expect(self, frame_id: str) -> None:
        """The action is a navigation of this frame: wait for it although nothing was heard of it yet."""
        self._expected = frame_id

    def _closed(self) -> bool:
        tabs = {tab.tab_id for tab in self.port.snapshot().tabs}
        frames = {frame.frame_id for frame in self.port.snapshot().frames}
        return not self._tabs <= tabs or self.frame_id not in frames

    async def _round_trip(self, after: Callable[[], Awaitable[Any]] | None) -> None:
        """Let what was done take its course in the page; not longer than until something started."""
        trip = asyncio.ensure_future(
            after() if after is not None else self.port.evaluate(NEXT_TURN, timeout=ROUND_TRIP_S)
        )
        started = asyncio.ensure_future(self._wait_for_start())
        try:
            await asyncio.wait({trip, started}, return_when=asyncio.FIRST_COMPLETED)
            if trip.done():
                trip.result()
        finally:
            for task in (trip, started):
                task.cancel()
            await asyncio.gather(trip, started, return_exceptions=True)

    async def _wait_for_start(self) -> None:
        while not self._pending() and not self._new_dialogs():
            self._changed.clear()
            await self._changed.wait()

    def _hear(self, event: Event) -> None:
        params = event.params
        frame_id = fields.text(params, "frameId")
        match event.method:
            case "Page.frameRequestedNavigation":
                if fields.text(params, "disposition") == "currentTab" and frame_id in self._known:
                    ours = frame_id in (self._top, self.frame_id)
                    wanted = ours or fields.text(params, "reason").startswith(("anchor", "form"))
                    self._navigations[frame_id] = _Navigation("requested", fields.text(params, "url"), wanted)
            case "Page.frameStartedNavigating":
                if fields.text(params, "navigationType") not in ("sameDocument", "historySameDocument"):
                    self._step(frame_id, "started", fields.text(params, "url"))
            case "Page.frameNavigated":
                frame = fields.mapping(params, "frame")
                unreachable = fields.text(frame, "unreachableUrl")
                url = unreachable or fields.text(frame, "url")
                restored = fields.text(params, "type") == "BackForwardCacheRestore"
                self._step(
                    fields.text(frame, "id"), "failed" if unreachable else "loaded" if restored else "committed", url
                )
            case "Page.lifecycleEvent":
                found = self._navigations.get(frame_id)
                if found is not None and found.phase == "committed" and fields.text(params, "name") == "load":
                    found.phase = "loaded"
            case "Page.frameStoppedLoading":
                self._stopped(frame_id)
            case "Page.navigatedWithinDocument":
                if frame_id == self._top:
                    self._moved_to = fields.text(params, "url")
            case "Page.windowOpen":
                self._windows += 1
            case "Page.downloadWillBegin" | "Browser.downloadWillBegin":
                self._downloads[fields.text(params, "guid")] = fields.text(params, "suggestedFilename")
                self._stopped(frame_id)
            case "Target.attachedToTarget" | "Debugger.paused" | "Page.javascriptDialogOpening":
                pass
            case _:
                return
        self._changed.set()

    def _step(self, frame_id: str, phase: Phase, url: str) -> None:
        if frame_id not in self._known:
            return
        known = self._navigations.get(frame_id)
        if known is not None:
            if known.phase == "over":  # a page from the cache: its loading stops before it is there
                self._ended -= known.wanted
            known.phase, known.url = phase, url
        else:
            self._navigations[frame_id] = _Navigation(phase, url, frame_id in (self._top, self.frame_id))

    def _stopped(self, frame_id: str) -> None:
        known = self._navigations.get(frame_id)
        if known is None:
            return
        if known.phase in ("requested", "started"):
            known.phase = "over"  # no new document came of it: a download, an empty answer
            self._ended += known.wanted
        elif known.phase == "committed":
            known.phase = "loaded"

    def _pending(self) -> bool:
        if self._windows > len(self._new_tabs()):
            return True
        if self._expected and self._expected not in self._navigations and not self._moved_to:
            return True
        if self._unexplained():
            return True
        return any(n.wanted and n.phase in ("requested", "started", "committed") for n in self._navigations.values())

    def _unexplained(self) -> bool:
        """A navigation ended without a document, and the download that explains it has not been heard of yet."""
        return self._ended > len(self._downloads)

    def _new_tabs(self) -> list[Tab]:
        return [tab for tab in self.port.snapshot().tabs if tab.tab_id not in self._tabs]

    def _new_dialogs(self) -> tuple[Dialog, ...]:
        return tuple(d for d in self.port.snapshot().pending_dialogs if d.id not in self._dialogs)

    async def _settled(self) -> Effects:
        try:
            async with asyncio.timeout(LOAD_WAIT_S):
                while self._pending() and not self._new_dialogs():
                    self._changed.clear()
                    unsure = self._windows > len(self._new_tabs()) or self._unexplained()
                    try:
                        await asyncio.wait_for(self._changed.wait(), UNSURE_WAIT_S if unsure else LOAD_WAIT_S)
                    except TimeoutError:
                        # A window that was blocked, or an address that answered nothing (HTTP 204).
                        self._windows = self._ended = 0
        except TimeoutError:
            pass  # told as still loading
        arrivals = [await self._arrival(f, n) for f, n in self._navigations.items() if n.wanted and n.phase != "over"]
        moved = self._moved_to if not any(a.frame == "" for a in arrivals) else ""
        return Effects(
            tuple(arrivals), moved, tuple(self._new_tabs()), self._new_dialogs(), tuple(self._downloads.values())
        )

    async def _arrival(self, frame_id: str, navigation: _Navigation) -> Arrival:
        short = ""
        if frame_id != self._top:
            short = next((f.short for f in self.port.snapshot().frames if f.frame_id == frame_id), "?")
        states = {"loaded": "loaded", "failed": "failed", "requested": "waiting", "started": "waiting"}
        url, title, status = navigation.url, "", 0
        if navigation.phase == "loaded":
            try:
                told = await self.port.evaluate(DESCRIBE, frame_id=frame_id, timeout=ROUND_TRIP_S)
                if isinstance(told, list) and len(told) == 3:
                    url, title = str(told[0]), str(told[1])
                    status = told[2] if isinstance(told[2], int) else 0
            except (CallInterrupted, CallTimeout, TargetClosed, SupervisorError):
                pass  # it is on its way elsewhere already; its address is known
        return Arrival(short, url[:500], title[:200], status, states.get(navigation.phase, "loading"))
