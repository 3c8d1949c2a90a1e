"""The bounded read model: what callers may know of a browser, in frozen plain data.

Rules: derived from the state alone; every list has a cap, and reaching it shows (``truncated`` and the counts).
``as_dict`` gives the form of the tools' structured content.
"""

from dataclasses import dataclass
from typing import Any

from .console import Console, ConsoleEntry
from .dialogs import Dialog as DialogState
from .dialogs import Via
from .inputs import ClosedBy
from .state import BrowserState
from .targets import Target

FRAMES_SHOWN = 30
OOPIF_DEPTH_SHOWN = 2


@dataclass(frozen=True, slots=True)
class Dialog:
    """A dialog, open (``closed_at`` None) or over. Times are seconds since the epoch."""

    id: str
    type: str
    message: str
    default_prompt: str
    url: str
    frame_id: str
    tab_id: str
    opened_at: float
    via: Via = "native"
    truncated: bool = False
    answering: bool = False
    unanswerable: bool = False
    """The browser took no answer for it: its tab was freed, and it returned its default."""
    closed_at: float | None = None
    closed_by: ClosedBy | None = None
    response: str | None = None
    """``accept`` or ``dismiss``; None where nobody can know."""
    response_text: str | None = None

    def as_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": self.id,
            "type": self.type,
            "message": self.message,
            "default_prompt": self.default_prompt,
            "url": self.url,
            "frame_id": self.frame_id,
            "tab_id": self.tab_id,
            "opened_at": self.opened_at,
            "via": self.via,
        }
        if self.truncated:
            shown["truncated"] = True
        if self.answering:
            shown["answering"] = True
        if self.unanswerable:
            shown["unanswerable"] = True
        if self.closed_at is not None:
            shown |= {"closed_at": self.closed_at, "closed_by": self.closed_by}
            if self.response is not None:
                shown["response"] = {"action": self.response}
                if self.response_text is not None:
                    shown["response"]["prompt_text"] = self.response_text
        return shown


@dataclass(frozen=True, slots=True)
class Frame:
    """``short`` is our name for the frame within its tab; ``is_oopif``: it lives in a process of its own."""

    frame_id: str
    short: str
    url: str
    origin: str
    name: str
    parent_frame_id: str | None
    is_oopif: bool
    session_id: str
    oopif_depth: int = 0
    crashed: bool = False

    def as_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"frame_id": self.frame_id, "short": self.short, "url": self.url}
        if self.origin:
            shown["origin"] = self.origin
        if self.name:
            shown["name"] = self.name
        if self.parent_frame_id is not None:
            shown |= {"parent_frame_id": self.parent_frame_id, "is_oopif": self.is_oopif}
        if self.is_oopif:
            shown["session_id"] = self.session_id
        if self.crashed:
            shown["crashed"] = True
        return shown


@dataclass(frozen=True, slots=True)
class FrameTree:
    """``children`` is flat, breadth first, without the top frame. ``total`` counts all frames, shown or not."""

    top: Frame | None
    children: tuple[Frame, ...]
    truncated: bool
    total: int

    def as_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "top": self.top.as_dict() if self.top else None,
            "children": [frame.as_dict() for frame in self.children],
            "truncated": self.truncated,
        }
        if self.truncated:
            shown["total"] = self.total
        return shown


@dataclass(frozen=True, slots=True)
class Tab:
    tab_id: str
    target_id: str
    url: str
    title: str
    selected: bool
    crashed: bool
    opener: str | None
    stuck: bool = False
    """It does not answer: a dialog that was open before we came holds it, or it is busy."""

    def as_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"tab_id": self.tab_id, "url": self.url, "title": self.title}
        if self.selected:
            shown["selected"] = True
        if self.crashed:
            shown["crashed"] = True
        if self.stuck:
            shown["stuck"] = True
        if self.opener:
            shown["opener"] = self.opener
        return shown


@dataclass(frozen=True, slots=True)
class View:
    """Everything at one moment. ``frames`` are all frames of the selected tab, ``frame_tree`` the bounded form."""

    pending_dialogs: tuple[Dialog, ...]
    recent_dialogs: tuple[Dialog, ...]
    tabs: tuple[Tab, ...]
    frames: tuple[Frame, ...]
    frame_tree: FrameTree
    console_errors: tuple[ConsoleEntry, ...]
    console_other: tuple[ConsoleEntry, ...]
    console_dropped: int
    connected: bool
    lost_reason: str

    @property
    def selected_tab(self) -> Tab | None:
        return next((tab for tab in self.tabs if tab.selected), None)


def view(state: BrowserState) -> View:
    """What callers get of this state."""
    selected = state.targets.selected
    frames = frames_of(state, selected) if selected else ()
    console: Console = state.console
    return View(
        tuple(_dialog(d) for d in state.dialogs.pending),
        tuple(_dialog(d) for d in state.dialogs.recent),
        tuple(_tab(state, page) for page in state.targets.pages.values()),
        frames,
        bounded(frames),
        console.errors,
        console.others,
        console.errors_dropped + console.others_dropped,
        state.connection.phase == "up",
        state.connection.reason,
    )


def frames_of(state: BrowserState, page_id: str) -> tuple[Frame, ...]:
    """All frames of a tab, breadth first, the top frame first."""
    shown = []
    for frame in state.frames.of_page(page_id):
        session = state.sessions.by_id.get(frame.session_id)
        is_root = session is not None and session.target_id == frame.frame_id
        shown.append(
            Frame(
                frame.frame_id,
                frame.short,
                frame.url,
                frame.origin,
                frame.name,
                frame.parent_id,
                is_root and session is not None and session.depth > 0,
                frame.session_id,
                session.depth if session else 0,
                session.crashed if session else False,
            )
        )
    return tuple(shown)


def bounded(frames: tuple[Frame, ...]) -> FrameTree:
    """The tree as ``browser_snapshot`` shows it: at most 30 frames, out-of-process iframes two deep."""
    if not frames:
        return FrameTree(None, (), False, 0)
    children = tuple(frame for frame in frames[1:] if frame.oopif_depth <= OOPIF_DEPTH_SHOWN)[: FRAMES_SHOWN - 1]
    return FrameTree(frames[0], children, len(children) + 1 < len(frames), len(frames))


def _tab(state: BrowserState, page: Target) -> Tab:
    opener = state.targets.pages.get(page.opener_id)
    session = state.sessions.of_target(page.target_id)
    return Tab(
        page.tab_id,
        page.target_id,
        page.url,
        page.title,
        page.target_id == state.targets.selected,
        page.crashed,
        opener.tab_id if opener else None,
        session.stuck if session else False,
    )


def _dialog(dialog: DialogState) -> Dialog:
    response = dialog.response
    return Dialog(
        dialog.dialog_id,
        dialog.type,
        dialog.message,
        dialog.default_prompt,
        dialog.url,
        dialog.frame_id,
        dialog.tab_id,
        dialog.opened_at,
        dialog.via,
        dialog.truncated,
        dialog.closed_at is None and response is not None,
        dialog.unanswerable,
        dialog.closed_at,
        dialog.closed_by,
        None if response is None else "accept" if response.accept else "dismiss",
        None if response is None else response.text,
    )
