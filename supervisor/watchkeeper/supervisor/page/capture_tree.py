"""Reading the tree of a whole tab: every frame of every process, every shadow root, stitched in place.

Rules: a frame of its parent's origin is read by its parent's script, another by a script of its own; frames of one
level are read together; a frame whose iframe is not rendered is not read. A frame that does not answer leaves a note in
its place, never a failure of the whole.

Source: https://chromedevtools.github.io/devtools-protocol/tot/DOM/#method-describeNode (``frameId`` of an iframe)
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core import fields
from ..core.view import Frame
from ..errors import CallInterrupted, CallTimeout, ConnectionLost, SupervisorError
from .errors import PageLoading
from .loading import Loading
from .port import PagePort
from .refs import RefLedger, prefix_of
from .shadow import ClosedRoots
from .tree import FrameSpan, FrameTreePart, Tree, decode
from .worlds import Worlds

FRAME_TIMEOUT_S = 10.0
SHADOW_PASSES = 6
"""Closed roots within closed roots are found one level a pass."""
FRAME_DEPTH = 12
KEPT_PLACES = 2_000
KEPT_ROOTS = 50


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """``root``: the number of the element to read, None for all; ``links``: tell where links lead."""

    root: int | None = None
    links: bool = False
    base: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """``parts`` by the frame that read them; ``notes`` says of frames why they could not be read; ``places``: (frame,
    number of an iframe in its part) -> the frame in that iframe."""

    parts: Mapping[str, FrameTreePart]
    notes: Mapping[str, str]
    places: Mapping[tuple[str, int], Frame]


class RootGone(Exception):
    """The element that was to be looked at is no longer in the document."""


class TreeReader:
    """Reads the tree of one task's selected tab."""

    def __init__(self, port: PagePort, worlds: Worlds, ledger: RefLedger, loading: Loading) -> None:
        self._port = port
        self._worlds = worlds
        self._ledger = ledger
        self._loading = loading
        self._closed = ClosedRoots(port, worlds)
        self._rendered: dict[str, frozenset[str]] = {}
        """Frame that was read -> the frames with scripts of their own that were rendered in it then."""
        self._places: dict[tuple[str, int, int], str] = {}
        """(Frame id, its context, number of an iframe) -> id of the frame in it."""

    async def read(self, root: Frame, frames: Sequence[Frame], options: ReadOptions) -> Reading:
        """Read ``root`` and all frames rendered in it. Raises RootGone, and what reading ``root`` itself raises."""
        by_id = {frame.frame_id: frame for frame in frames}
        early = self._early(root, frames) if options.root is None else {}
        try:
            return await self._read(root, frames[0], by_id, options, early)
        finally:
            for task in early.values():
                task.cancel()
            await asyncio.gather(*early.values(), return_exceptions=True)

    def _early(self, root: Frame, frames: Sequence[Frame]) -> dict[str, asyncio.Task[FrameTreePart | str]]:
        """What was rendered in this frame last time is read beside it, before we know that it still is."""
        before = self._rendered.get(root.frame_id, frozenset())
        return {
            frame.frame_id: asyncio.create_task(self._quiet_part(frame, ReadOptions()))
            for frame in frames
            if frame.frame_id in before
        }

    async def _read(
        self,
        root: Frame,
        top: Frame,
        by_id: Mapping[str, Frame],
        options: ReadOptions,
        early: dict[str, asyncio.Task[FrameTreePart | str]],
    ) -> Reading:
        parts = {root.frame_id: await self._part(root, options, root == top)}
        notes: dict[str, str] = {}
        places: dict[tuple[str, int], Frame] = {}
        level = [root]
        for _ in range(FRAME_DEPTH):
            found = await asyncio.gather(*(self._frames_in(frame, parts[frame.frame_id], by_id) for frame in level))
            inner: list[Frame] = []
            for frame, frames_in in zip(level, found, strict=True):
                part = parts[frame.frame_id]
                places |= {(frame.frame_id, number): child for number, child in frames_in.items()}
                inner += [
                    frames_in[number]
                    for node, number in part.owners.items()
                    if node not in part.inlined and number in frames_in
                ]
            if not inner:
                break
            read = await asyncio.gather(
                *(early.get(child.frame_id) or self._quiet_part(child, replace(options, root=None)) for child in inner)
            )
            for child, got in zip(inner, read, strict=True):
                if isinstance(got, FrameTreePart):
                    parts[child.frame_id] = got
                else:
                    notes[child.frame_id] = got
            level = [child for child in inner if child.frame_id in parts]
        if options.root is None:
            self._rendered.pop(root.frame_id, None)
            self._rendered[root.frame_id] = frozenset(parts.keys() - {root.frame_id})
            while len(self._rendered) > KEPT_ROOTS:
                self._rendered.pop(next(iter(self._rendered)))
        return Reading(parts, notes, places)

    async def host(self, frame: Frame, frames: Sequence[Frame]) -> tuple[Frame, int | None]:
        """The frame whose script reads this one, and the number of its iframe there; None: it reads itself."""
        for (reader_id, _, number), inner_id in self._places.items():
            if inner_id == frame.frame_id:
                reader = next((f for f in frames if f.frame_id == reader_id), None)
                if reader is not None and reader.session_id == frame.session_id and await self._reads(reader, number):
                    return reader, number
        return frame, None

    def owner(self, frame: Frame, frames: Sequence[Frame]) -> tuple[Frame, int] | None:
        """The frame whose script sees the iframe that ``frame`` is in, and the iframe's number there."""
        for (reader_id, _, number), inner_id in reversed(self._places.items()):
            if inner_id == frame.frame_id:
                reader = next((f for f in frames if f.frame_id == reader_id), None)
                if reader is not None:
                    return reader, number
        return None

    async def _reads(self, reader: Frame, number: int) -> bool:
        return bool(await self._worlds.run(reader, "isReadable", number))

    # --- putting together ---------------------------------------------------------------------------------------------

    def stitch(self, root: Frame, top: Frame, reading: Reading) -> Tree:
        """One tree of all that was read."""
        tree = Tree()
        part = reading.parts[root.frame_id]
        tree.spans.append(FrameSpan(root.short, root.frame_id, part.url, 0, 0))
        self._append(tree, root, top, reading, 0)
        return tree

    def _append(self, tree: Tree, frame: Frame, top: Frame, reading: Reading, depth: int) -> None:
        part = reading.parts[frame.frame_id]
        prefix = prefix_of(frame.short, frame.frame_id == top.frame_id)
        position = 0
        open_spans: list[tuple[int, int]] = []  # (last node + 1 in the part, span)

        def go_to(node: int) -> None:
            nonlocal position
            while open_spans and open_spans[-1][0] <= node:
                end, span = open_spans.pop()
                tree.extend(part, position, end, depth, prefix)
                position = end
                tree.spans[span] = replace(tree.spans[span], end=len(tree))
            tree.extend(part, position, node, depth, prefix)
            position = node

        for node, number in part.owners.items():
            go_to(node)
            go_to(node + 1)
            child = reading.places.get((frame.frame_id, number))
            if child is None:
                continue
            inner = reading.parts.get(child.frame_id)
            url = inner.url if inner and node not in part.inlined else child.url
            span, start = len(tree.spans), len(tree)
            tree.spans.append(FrameSpan(child.short, child.frame_id, url, start, start))
            if node in part.inlined:
                open_spans.append((_subtree_end(part.depths, node), span))
                continue
            if inner is not None:
                self._append(tree, child, top, reading, depth + part.depths[node] + 1)
            note = reading.notes.get(child.frame_id, "")
            tree.spans[span] = replace(tree.spans[span], end=len(tree), note=note)
        go_to(len(part.depths))

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _quiet_part(self, frame: Frame, options: ReadOptions) -> FrameTreePart | str:
        try:
            return await self._part(frame, options, False)
        except ConnectionLost:
            raise
        except CallTimeout:
            return f"did not answer within {FRAME_TIMEOUT_S:g} s"
        except CallInterrupted:
            return "waits behind a dialog"
        except PageLoading:
            return "waits for a response"
        except SupervisorError as error:
            return f"not read: {error.code}"

    async def _part(self, frame: Frame, options: ReadOptions, is_top: bool) -> FrameTreePart:
        prefix = prefix_of(frame.short, is_top)
        await self._loading.over(frame.frame_id)
        for _ in range(SHADOW_PASSES):
            asked = asdict(replace(options, base=self._ledger.next_number(prefix)))
            encoded, slots = await asyncio.gather(
                self._worlds.run(frame, "snapshot", asked, timeout=FRAME_TIMEOUT_S), self._closed.count_slots(frame)
            )
            if not isinstance(encoded, str):
                raise RootGone
            part = decode(encoded)
            self._ledger.given(prefix, frame.frame_id, part.next_number)
            found = await self._closed.adopt_candidates(frame) if part.candidates else False
            if not (await self._closed.adopt_slotted(frame, slots) or found):
                break
        return part

    async def _frames_in(self, frame: Frame, part: FrameTreePart, frames: Mapping[str, Frame]) -> dict[int, Frame]:
        """Which frame is in each iframe of a part, by the iframe's number. Each is asked about once."""
        if not part.owners:
            return {}
        context = await self._worlds.context(frame)
        numbers = list(part.owners.values())
        unknown = [n for n in numbers if self._places.get((frame.frame_id, context, n)) not in frames]
        if unknown:
            try:
                elements = await self._worlds.handles(frame, "elementsOf", unknown)
                described = await asyncio.gather(*(self._described(frame, element) for element in elements))
            except ConnectionLost:
                raise
            except SupervisorError:
                described = []  # the frame was replaced meanwhile: its iframes stay without their content
            for number, node in zip(unknown, described, strict=False):
                self._places.pop((frame.frame_id, context, number), None)
                self._places[frame.frame_id, context, number] = fields.text(node, "frameId")
            while len(self._places) > KEPT_PLACES:
                self._places.pop(next(iter(self._places)))
        named = {number: self._places.get((frame.frame_id, context, number), "") for number in numbers}
        return {number: frames[frame_id] for number, frame_id in named.items() if frame_id in frames}

    async def _described(self, frame: Frame, element: str) -> Mapping[str, Any]:
        asked = {"objectId": element, "depth": 0}
        return fields.mapping(await self._port.call("DOM.describeNode", asked, session_id=frame.session_id), "node")


def _subtree_end(depths: list[int], node: int) -> int:
    end = node + 1
    while end < len(depths) and depths[end] > depths[node]:
        end += 1
    return end
