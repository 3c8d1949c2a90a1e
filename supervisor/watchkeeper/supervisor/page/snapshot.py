"""A snapshot of the selected tab as text: for a reader with a budget.

Rules: the whole tab, whatever process a frame lives in. At most ``max_tokens`` by the caller's own count. Every string
from the page is quoted, so it cannot imitate refs or our words. Password values never appear. While a native dialog
holds the page the last snapshot is given again, and says that it is old.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..core.quoting import quoted
from ..core.view import Frame
from ..errors import CallInterrupted, CallTimeout, InvalidArgument, UnknownFrame
from ..token_estimate import rough_cost
from . import render
from .capture_tree import Reading, ReadOptions, RootGone
from .errors import PageLoading, UnknownRef
from .lines import lines_of
from .port import PagePort
from .refs import parse
from .render import Rendered
from .state import Kept, PageState, state_of, top_frame
from .tree import Tree

DEFAULT_MAX_TOKENS = 6000
LEAST_TOKENS = 100
Cost = Callable[[str], int]
_CURSOR = re.compile(r"(s\d+):(\d+)-(\d+)(?:@(\d+))?$")


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """``text`` is for the reader. ``shown`` of ``total`` lines are in it; ``stale``: the page could not be read now,
    ``text`` is of an earlier moment."""

    text: str
    snapshot_id: str
    title: str
    url: str
    shown: int
    total: int
    tokens: int
    stale: bool = False

    @property
    def truncated(self) -> bool:
        return self.shown < self.total


async def take_snapshot(
    supervisor: PagePort,
    *,
    max_tokens: int | None = DEFAULT_MAX_TOKENS,
    root: str | None = None,
    frame_id: str | None = None,
    find: str | None = None,
    since: str | None = None,
    cursor: str | None = None,
    cost: Cost = rough_cost,
) -> PageSnapshot:
    """What the selected tab shows now.

    ``root`` (a ref) or ``frame_id`` (an id or a short name) look at a part only; ``find`` gives the lines that contain
    a text; ``since`` (the id of an earlier snapshot) what changed; ``cursor`` (from a line that begins with ``…``) the
    lines that were left out there. ``max_tokens`` None: everything.

    Raises: InvalidArgument, UnknownRef, UnknownFrame, UnknownCursor, NoPage, and what reading the top frame raises.
    """
    if max_tokens is not None and max_tokens < LEAST_TOKENS:
        raise InvalidArgument(f"max_tokens must be at least {LEAST_TOKENS}.", "The default is 6000.")
    state = state_of(supervisor)
    if cursor is not None:
        return _from_cursor(state, cursor, max_tokens, cost)
    before = state.kept(since) if since is not None else None
    stale = ""
    try:
        async with state.lock:
            kept = await _read(supervisor, state, root, frame_id)
    except (CallInterrupted, CallTimeout, PageLoading) as error:
        tab = supervisor.snapshot().selected_tab
        latest = state.latest(tab.tab_id) if tab is not None and root is None and frame_id is None else None
        if latest is None:
            raise
        kept, stale = latest, error.message
    header = _header(kept, stale)
    budget = None if max_tokens is None else max(LEAST_TOKENS // 2, max_tokens - cost(header) - 2)
    if find is not None:
        rendered = render.find(kept.lines, find, kept.snapshot_id, max_tokens=budget, cost=cost)
    elif before is not None and before.scope == kept.scope:
        rendered = render.changes(before.lines, kept.lines, max_tokens=budget, cost=cost)
        header += f", changes since {before.snapshot_id}"
    else:
        rendered = render.render(kept.lines, kept.snapshot_id, max_tokens=budget, cost=cost)
    return _result(kept, header, rendered, bool(stale))


async def _read(supervisor: PagePort, state: PageState, root: str | None, frame_id: str | None) -> Kept:
    reading, start, tree = await read_tree(supervisor, state, root, frame_id)
    part = reading.parts[start.frame_id]
    tab = supervisor.snapshot().selected_tab
    facts = (part.title, part.url, part.scroll, _notes(reading, start))
    return state.keep(f"{root or ''}|{frame_id or ''}", tab.tab_id if tab else "", facts, lines_of(tree))


async def read_tree(
    supervisor: PagePort, state: PageState, root: str | None = None, frame_id: str | None = None
) -> tuple[Reading, Frame, Tree]:
    """The tree of the selected tab, or of a part of it, before it is written out."""
    top = top_frame(supervisor)
    frames = supervisor.snapshot().frames
    start, options = top, ReadOptions()
    if root is not None:
        start, number = frame_of_ref(supervisor, root)
        options = ReadOptions(root=number, links=True)
    elif frame_id is not None:
        start, inside = await state.reader.host(named_frame(frames, frame_id), frames)
        options = ReadOptions(root=inside)
    try:
        reading = await state.reader.read(start, frames, options)
    except RootGone:
        raise UnknownRef(
            f"{root or frame_id} is no longer on the page.", "Take a browser_snapshot to see what is there now."
        ) from None
    return reading, start, state.reader.stitch(start, top, reading)


def named_frame(frames: tuple[Frame, ...], name: str) -> Frame:
    found = next((f for f in frames if name in (f.frame_id, f.short)), None)
    if found is None:
        known = ", ".join(f"{f.short} ({f.url[:60]})" for f in frames[:5])
        raise UnknownFrame(f"There is no frame {name[:80]!r} in the selected tab.", f"Frames: {known}.")
    return found


def frame_of_ref(supervisor: PagePort, ref: str) -> tuple[Frame, int]:
    """The frame that a ref belongs to, and its number there. Raises UnknownRef."""
    state = state_of(supervisor)
    parsed = parse(ref)
    if parsed is None:
        raise UnknownRef(f"{ref[:40]!r} is not a ref.", "Refs look like e12 or f2e5; browser_snapshot shows them.")
    prefix, number = parsed
    frame_id = state.ledger.frame_of(prefix, number)
    frames = supervisor.snapshot().frames
    frame = next((f for f in frames if f.frame_id == frame_id), None)
    if frame_id is None:
        raise UnknownRef(f"There is no element {ref}.", "Take a browser_snapshot and use a ref in it.")
    if frame is None:
        raise UnknownRef(
            f"{ref} is in a frame that is gone, or in another tab.",
            "Take a browser_snapshot, or select the tab with browser_tabs.",
        )
    return frame, number


def _from_cursor(state: PageState, cursor: str, max_tokens: int | None, cost: Cost) -> PageSnapshot:
    found = _CURSOR.match(cursor.strip().removeprefix("cursor="))
    if found is None:
        raise InvalidArgument(f"{cursor[:60]!r} is not a cursor.", "Copy it from a line that begins with … .")
    kept = state.kept(found[1])
    start, end = int(found[2]), min(int(found[3]), len(kept.lines))
    if start >= end:
        raise InvalidArgument(
            f"{cursor[:60]!r} is outside of its snapshot.", "Copy it from a line that begins with … ."
        )
    header = f"snapshot {kept.snapshot_id} continued"
    budget = None if max_tokens is None else max(LEAST_TOKENS // 2, max_tokens - cost(header) - 2)
    if found[4] is not None:
        rendered = render.rest_of_line(kept.lines, start, int(found[4]), kept.snapshot_id, budget, cost)
    else:
        rendered = render.render(kept.lines, kept.snapshot_id, max_tokens=budget, cost=cost, start=start, end=end)
    return _result(kept, header, rendered, False)


def _notes(reading: Reading, start: Frame) -> tuple[str, ...]:
    part = reading.parts[start.frame_id]
    notes = []
    if part.modal:
        notes.append("a modal dialog is open, everything behind it is inert")
    if part.cut:
        notes.append("the page is too large or too deep, a part of it was not read")
    unread = sum(each.unread for each in reading.parts.values())
    if unread:
        notes.append(f"{unread} elements could not be read")
    if not part.ready:
        notes.append("still loading")
    return tuple(notes)


def _header(kept: Kept, stale: str) -> str:
    top, view, height = kept.scroll
    scrolled = f", scrolled to {top} of {height - view} px" if height > view + 1 else ""
    notes = "".join(f", {note}" for note in kept.notes)
    old = f" (an earlier one, for the page cannot be read now: {stale})" if stale else ""
    return f"snapshot {kept.snapshot_id}{old}: {quoted(kept.title[:200])} {quoted(kept.url[:500])}{scrolled}{notes}"


def _result(kept: Kept, header: str, rendered: Rendered, stale: bool) -> PageSnapshot:
    text = f"{header}\n{rendered.text}" if rendered.text else f"{header}\n(nothing to see)"
    return PageSnapshot(
        text, kept.snapshot_id, kept.title, kept.url, rendered.shown, rendered.total, rendered.tokens, stale
    )
