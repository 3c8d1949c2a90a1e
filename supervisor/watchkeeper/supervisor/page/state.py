"""What the page remembers of one task: worlds, refs, and the last few snapshots.

Rules: lives as long as its supervisor. Snapshots are kept for cursors and for ``since``: few, for a large page is a
large snapshot.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from weakref import WeakKeyDictionary, proxy

from ..core.view import Frame
from ..errors import DialogOpened, NoPage
from .capture_tree import TreeReader
from .errors import UnknownCursor
from .lines import Lines
from .loading import Loading
from .port import PagePort
from .refs import RefLedger
from .worlds import Worlds

KEPT = 4
KEPT_LINES = 150_000
"""Lines of all kept snapshots together; the newest is kept whatever its size."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot that was taken. ``scope`` is what it shows: snapshots of different scopes are not compared."""

    snapshot_id: str
    scope: str
    tab_id: str
    title: str
    url: str
    scroll: tuple[int, int, int]
    notes: tuple[str, ...]
    lines: Lines


class PageState:
    """Made by ``state_of``."""

    def __init__(self, port: PagePort) -> None:
        self.worlds = Worlds(port)
        self.ledger = RefLedger()
        self.loading = Loading(port)
        self.reader = TreeReader(port, self.worlds, self.ledger, self.loading)
        self.lock = asyncio.Lock()
        """Held while the tree is read: two readings at once would give numbers twice."""
        self.emulated_media: dict[str, str] = {}
        """What the page was told of colours, motion and medium: it is only ever told all of it at once."""
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._count = 0

    def keep(
        self, scope: str, tab_id: str, facts: tuple[str, str, tuple[int, int, int], tuple[str, ...]], lines: Lines
    ) -> Kept:
        self._count += 1
        kept = Kept(f"s{self._count}", scope, tab_id, *facts, lines)
        self._kept[kept.snapshot_id] = kept
        while len(self._kept) > 1 and (
            len(self._kept) > KEPT or sum(len(k.lines) for k in self._kept.values()) > KEPT_LINES
        ):
            self._kept.popitem(last=False)
        return kept

    def kept(self, snapshot_id: str) -> Kept:
        """A snapshot by its id. Raises UnknownCursor."""
        found = self._kept.get(snapshot_id)
        if found is None:
            known = ", ".join(self._kept) or "none"
            raise UnknownCursor(
                f"Snapshot {snapshot_id[:20]!r} is not kept (kept: {known}).",
                "Take a new browser_snapshot, without cursor or since.",
            )
        return found

    def newest_first(self) -> tuple[Kept, ...]:
        return tuple(reversed(self._kept.values()))

    def latest(self, tab_id: str) -> Kept | None:
        return next((k for k in reversed(self._kept.values()) if k.tab_id == tab_id), None)


_states: WeakKeyDictionary[PagePort, PageState] = WeakKeyDictionary()


def state_of(port: PagePort) -> PageState:
    """What is remembered of a task. It knows its supervisor by a weak reference, so it ends with it."""
    state = _states.get(port)
    if state is None:
        state = _states[port] = PageState(proxy(port))
    return state


def top_frame(port: PagePort) -> Frame:
    """The top frame of the selected tab. Raises NoPage."""
    frames = port.snapshot().frames
    if not frames:
        raise NoPage("This task has no open page.", "Open one with browser_navigate.")
    return frames[0]


def refuse_while_dialog_open(port: PagePort, what: str) -> None:
    """Raise DialogOpened where a dialog of the selected tab waits for an answer: nothing there reacts until then."""
    view = port.snapshot()
    tab = view.selected_tab
    here = tuple(d for d in view.pending_dialogs if tab is not None and d.tab_id == tab.tab_id)
    if here:
        listed = ", ".join(f"{d.id} ({d.type})" for d in here)
        raise DialogOpened(
            f"{listed} is open in this tab, so {what} was not done.",
            "Answer it with browser_dialog first.",
            dialogs=here,
        )
