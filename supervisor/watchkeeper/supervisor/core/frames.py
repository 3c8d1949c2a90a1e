"""Frames: the tree of every tab over all processes, and the execution contexts in them.

Rules: owns which frames exist, which session speaks for each, and their contexts. For the root of an out-of-process
iframe the frame id equals the target id. A frame leaves the tree when the browser says so (detached, its session gone,
its document replaced), never before. After a missed event ``reconciled`` sets a session's part right.

How frames move between processes (Chromium): same to cross: ``attachedToTarget``, then ``frameDetached(swap)``, then
``frameNavigated`` on the child session; cross to same: ``detachedFromTarget``, ``frameAttached``, ``frameNavigated``.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/Page/#type-Frame,
.../Runtime/#type-ExecutionContextDescription
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import fields

NAME_CAP = 200
URL_CAP = 4_096


@dataclass(frozen=True, slots=True)
class Frame:
    """``session_id`` is the session that owns the frame; ``page_id`` the tab; ``short`` our name for it."""

    frame_id: str
    parent_id: str | None
    page_id: str
    session_id: str
    short: str
    url: str = ""
    origin: str = ""
    name: str = ""
    loader_id: str = ""
    lifecycle_loader: str = ""
    lifecycle: frozenset[str] = frozenset()
    """Lifecycle events (``init``, ``DOMContentLoaded``, ``load``, ...) of the document of ``lifecycle_loader``, which
    runs ahead of ``loader_id``: a document's first events come before its ``frameNavigated``."""
    navigating_to: str = ""
    navigating_since: float = 0.0
    """The loader of the last navigation that began, and when it did (0: never)."""

    @property
    def awaits_response(self) -> bool:
        """A navigation has begun and its document has not come: until then Chromium answers nothing for the page."""
        return self.navigating_to not in ("", self.loader_id)

    def reached(self, event: str) -> bool:
        """Whether the current document has reached a lifecycle event."""
        return self.lifecycle_loader == self.loader_id and event in self.lifecycle


@dataclass(frozen=True, slots=True)
class Context:
    """An execution context. ``unique_id`` is never used twice, unlike ``number``."""

    unique_id: str
    number: int
    session_id: str
    frame_id: str
    is_default: bool
    name: str


@dataclass(frozen=True, slots=True)
class Frames:
    by_id: Mapping[str, Frame] = field(default_factory=dict)
    contexts: Mapping[tuple[str, int], Context] = field(default_factory=dict)
    """By session id and context number."""
    named: Mapping[str, int] = field(default_factory=dict)
    """Page id -> how many short names were given out in it."""

    def of_page(self, page_id: str) -> tuple[Frame, ...]:
        """The frames of a tab, breadth first, the top frame first."""
        children: dict[str | None, list[Frame]] = {}
        for frame in self.by_id.values():
            if frame.page_id == page_id:
                known = frame.parent_id if frame.parent_id in self.by_id else None
                children.setdefault(known, []).append(frame)
        order = sorted(children.get(None, ()), key=lambda frame: frame.frame_id != page_id)
        for frame in order:
            order.extend(children.get(frame.frame_id, ()))
        return tuple(order)

    def find(self, name: str, page_id: str | None) -> Frame | None:
        """Look a frame up by its id, or by its short name within a tab."""
        exact = self.by_id.get(name)
        if exact is not None:
            return exact
        return next((f for f in self.by_id.values() if f.short == name and f.page_id == page_id), None)

    def main_context(self, frame_id: str) -> Context | None:
        """The context that the page's own scripts of this frame run in."""
        frame = self.by_id.get(frame_id)
        if frame is None:
            return None
        return next(
            (
                c
                for c in reversed(tuple(self.contexts.values()))
                if c.frame_id == frame_id and c.is_default and c.session_id == frame.session_id
            ),
            None,
        )


def rooted(frames: Frames, session_id: str, target_id: str, page_id: str, parent_id: str | None, url: str) -> Frames:
    """A session was attached: it owns the frame with the id of its target."""
    frames = _in_page(frames, target_id, page_id)
    known = frames.by_id.get(target_id)
    if known is not None:
        return _put(frames, replace(known, session_id=session_id, parent_id=known.parent_id or parent_id))
    return _new(frames, Frame(target_id, parent_id, page_id, session_id, "", url=url[:URL_CAP]))


def attached(frames: Frames, session_id: str, page_id: str, params: Mapping[str, Any]) -> Frames:
    """``Page.frameAttached``"""
    frame_id = fields.text(params, "frameId")
    parent_id = fields.text(params, "parentFrameId")
    if not frame_id or not parent_id or frame_id == parent_id or parent_id in _below(frames, frame_id):
        return frames
    frames = _in_page(frames, frame_id, page_id)
    known = frames.by_id.get(frame_id)
    if known is not None:
        return _put(frames, replace(known, parent_id=parent_id, session_id=session_id))
    return _new(frames, Frame(frame_id, parent_id, page_id, session_id, ""))


def navigated(frames: Frames, session_id: str, page_id: str, params: Mapping[str, Any]) -> Frames:
    """``Page.frameNavigated``: a frame has a new document; the frames of the old one are gone."""
    described = fields.mapping(params, "frame")
    frame_id = fields.text(described, "id")
    if not frame_id:
        return frames
    known = frames.by_id.get(frame_id)
    if known is not None and known.loader_id != fields.text(described, "loaderId"):
        gone = _below(frames, frame_id)
        if fields.text(params, "type") == "BackForwardCacheRestore":
            # Frames of other processes that came back with the page were attached before this event.
            gone = {f for f in gone if frames.by_id[f].session_id == session_id}
        frames = _drop(frames, gone)
    return _described(frames, session_id, page_id, described)


def navigating(frames: Frames, params: Mapping[str, Any], now: float) -> Frames:
    """``Page.frameStartedNavigating``: the browser has begun; dialogs of the old document are closed by that."""
    known = frames.by_id.get(fields.text(params, "frameId"))
    if known is None:
        return frames
    within = fields.text(params, "navigationType") in ("sameDocument", "historySameDocument")
    loader_id = known.navigating_to if within else fields.text(params, "loaderId")
    return _put(frames, replace(known, navigating_to=loader_id, navigating_since=now))


def stopped(frames: Frames, params: Mapping[str, Any]) -> Frames:
    """``Page.frameStoppedLoading``: whatever navigation had begun has come, or will not."""
    known = frames.by_id.get(fields.text(params, "frameId"))
    return frames if known is None else _put(frames, replace(known, navigating_to=""))


def moved(frames: Frames, params: Mapping[str, Any]) -> Frames:
    """``Page.navigatedWithinDocument``: the address changed, the document did not."""
    known = frames.by_id.get(fields.text(params, "frameId"))
    return frames if known is None else _put(frames, replace(known, url=fields.text(params, "url")[:URL_CAP]))


def detached(frames: Frames, params: Mapping[str, Any]) -> Frames:
    """``Page.frameDetached``. A swap keeps the frame, for its new process has it or is about to."""
    frame_id = fields.text(params, "frameId")
    if fields.text(params, "reason") == "swap":
        return _drop(frames, _below(frames, frame_id) - _owned_elsewhere(frames, frame_id))
    return _drop(frames, {frame_id} | _below(frames, frame_id))


def session_gone(frames: Frames, session_id: str) -> Frames:
    """A session was detached: its frames and contexts went with it."""
    gone: set[str] = set()
    for frame in frames.by_id.values():
        if frame.session_id == session_id:
            gone |= {frame.frame_id} | _below(frames, frame.frame_id)
    frames = _drop(frames, gone)
    contexts = {key: c for key, c in frames.contexts.items() if key[0] != session_id}
    return frames if len(contexts) == len(frames.contexts) else replace(frames, contexts=contexts)


def page_gone(frames: Frames, page_id: str) -> Frames:
    """A tab closed."""
    frames = _drop(frames, {frame.frame_id for frame in frames.by_id.values() if frame.page_id == page_id})
    return replace(frames, named={key: count for key, count in frames.named.items() if key != page_id})


def reconciled(
    frames: Frames, session_id: str, page_id: str, tree: Mapping[str, Any], elsewhere: Collection[str] = ()
) -> Frames:
    """``Page.getFrameTree``: exactly these frames are the session's own; other processes' frames are left alone.

    ``elsewhere``: frames that have a session of their own. A renderer that is slow lists a frame as its own until it
    hears that it has moved, which we may know before: news of targets do not come through it.
    """
    seen: set[str] = set()
    moved_away: set[str] = set()
    for described, parent_id in _walk(tree):
        frame_id = fields.text(described, "id")
        if frame_id in elsewhere or parent_id in moved_away:
            moved_away.add(frame_id)
            continue
        if not frame_id or frame_id in seen:
            continue
        seen.add(frame_id)
        if parent_id:
            frames = attached(frames, session_id, page_id, {"frameId": frame_id, "parentFrameId": parent_id})
        frames = _described(frames, session_id, page_id, described)
    gone: set[str] = set()
    for frame in frames.by_id.values():
        if seen and frame.session_id == session_id and frame.frame_id not in seen:
            gone |= {frame.frame_id} | _below(frames, frame.frame_id)
    return _drop(frames, gone)


def lived(frames: Frames, params: Mapping[str, Any]) -> Frames:
    """``Page.lifecycleEvent``"""
    known = frames.by_id.get(fields.text(params, "frameId"))
    if known is None:
        return frames
    loader_id, name = fields.text(params, "loaderId"), fields.text(params, "name")
    before = known.lifecycle if known.lifecycle_loader == loader_id and name != "init" else frozenset()
    return _put(frames, replace(known, lifecycle_loader=loader_id, lifecycle=before | {name}))


def context_created(frames: Frames, session_id: str, params: Mapping[str, Any]) -> Frames:
    """``Runtime.executionContextCreated``"""
    described = fields.mapping(params, "context")
    details = fields.mapping(described, "auxData")
    context = Context(
        fields.text(described, "uniqueId"),
        fields.integer(described, "id"),
        session_id,
        fields.text(details, "frameId"),
        fields.flag(details, "isDefault"),
        fields.text(described, "name")[:NAME_CAP],
    )
    return replace(frames, contexts={**frames.contexts, (session_id, context.number): context})


def context_destroyed(frames: Frames, session_id: str, params: Mapping[str, Any]) -> Frames:
    """``Runtime.executionContextDestroyed``"""
    key = (session_id, fields.integer(params, "executionContextId"))
    if key not in frames.contexts:
        return frames
    return replace(frames, contexts={k: c for k, c in frames.contexts.items() if k != key})


def contexts_cleared(frames: Frames, session_id: str) -> Frames:
    """``Runtime.executionContextsCleared``"""
    return replace(frames, contexts={k: c for k, c in frames.contexts.items() if k[0] != session_id})


def _described(frames: Frames, session_id: str, page_id: str, described: Mapping[str, Any]) -> Frames:
    """Take over what a CDP ``Frame`` says of itself."""
    frame_id = fields.text(described, "id")
    frames = _in_page(frames, frame_id, page_id)
    known = frames.by_id.get(frame_id)
    if known is None:
        frames = _new(frames, Frame(frame_id, fields.text(described, "parentId") or None, page_id, session_id, ""))
        known = frames.by_id[frame_id]
    url = fields.text(described, "url") + fields.text(described, "urlFragment")
    return _put(
        frames,
        replace(
            known,
            session_id=session_id,
            url=url[:URL_CAP],
            origin=fields.text(described, "securityOrigin")[:URL_CAP],
            name=fields.text(described, "name")[:NAME_CAP],
            loader_id=fields.text(described, "loaderId"),
        ),
    )


def _new(frames: Frames, frame: Frame) -> Frames:
    number = frames.named.get(frame.page_id, 0) + 1
    frames = replace(frames, named={**frames.named, frame.page_id: number})
    return _put(frames, replace(frame, short=f"f{number}"))


def _in_page(frames: Frames, frame_id: str, page_id: str) -> Frames:
    """A frame never changes its tab: one that is said to be in another is forgotten, to be known anew there."""
    known = frames.by_id.get(frame_id)
    if known is None or known.page_id == page_id:
        return frames
    return _drop(frames, {frame_id} | _below(frames, frame_id))


def _put(frames: Frames, frame: Frame) -> Frames:
    if frames.by_id.get(frame.frame_id) == frame:
        return frames
    return replace(frames, by_id={**frames.by_id, frame.frame_id: frame})


def _drop(frames: Frames, gone: set[str]) -> Frames:
    gone = gone & frames.by_id.keys()
    if not gone:
        return frames
    return replace(
        frames,
        by_id={key: frame for key, frame in frames.by_id.items() if key not in gone},
        contexts={key: c for key, c in frames.contexts.items() if c.frame_id not in gone},
    )


def _below(frames: Frames, frame_id: str) -> set[str]:
    """Every descendant of a frame, itself not included."""
    below: set[str] = set()
    edge = {frame_id}
    while edge:
        edge = {f.frame_id for f in frames.by_id.values() if f.parent_id in edge} - below - {frame_id}
        below |= edge
    return below


def _owned_elsewhere(frames: Frames, frame_id: str) -> set[str]:
    """Descendants that belong to the session which owns the frame itself, so they are of its new document."""
    owner = frames.by_id.get(frame_id)
    if owner is None:
        return set()
    return {f for f in _below(frames, frame_id) if frames.by_id[f].session_id == owner.session_id}


def _walk(tree: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The frames of a ``FrameTree`` with their parents' ids, parents first."""
    queue: list[tuple[Mapping[str, Any], str]] = [(tree, "")]
    for node, parent_id in queue:
        described = fields.mapping(node, "frame")
        yield described, parent_id or fields.text(described, "parentId")
        queue.extend((child, fields.text(described, "id")) for child in fields.items(node, "childFrames"))
