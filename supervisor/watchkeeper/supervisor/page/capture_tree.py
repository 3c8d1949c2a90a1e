"""Reading the tree of a whole tab: every frame of every process, every shadow root, stitched in place.

Rules: frames of one level are read together; a frame whose iframe is not rendered is not read. A frame that does not
answer leaves a note in its place, never a failure of the whole. Closed shadow roots are found by asking the browser
about the elements that may have one, each once, and a few of them again in turn.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/DOM/#method-getFrameOwner (asked on the parent's
session), .../DOM/#method-describeNode, .../DOM/#method-resolveNode
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import fields
from ..core.view import Frame
from ..errors import CallInterrupted, CallTimeout, ConnectionLost, SupervisorError
from .port import PagePort
from .refs import RefLedger, prefix_of
from .tree import FrameSpan, FrameTreePart, Tree, decode
from .worlds import Handle, Worlds

FRAME_TIMEOUT_S = 10.0
SHADOW_PASSES = 6
"""Closed roots within closed roots are found one level a pass."""
FRAME_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """``parts`` by frame id; ``notes`` says of the others why they could not be read."""

    parts: Mapping[str, FrameTreePart]
    notes: Mapping[str, str]
    children: Mapping[tuple[str, int], Frame]
    """(Frame id, number of the iframe in it) -> the frame in it."""


class TreeReader:
    """Reads the tree of one task's selected tab."""

    def __init__(self, port: PagePort, worlds: Worlds, ledger: RefLedger) -> None:
        self._port = port
        self._worlds = worlds
        self._ledger = ledger
        self._owners: dict[str, tuple[str, int, int]] = {}
        """Frame id -> (parent's frame id, its context, number of the iframe in it)."""

    async def read(self, root: Frame, frames: Sequence[Frame], options: Mapping[str, Any]) -> Reading:
        """Read ``root`` and all frames rendered in it. Raises what reading ``root`` itself raises."""
        children: dict[str, list[Frame]] = {}
        for frame in frames:
            if frame.parent_frame_id is not None:
                children.setdefault(frame.parent_frame_id, []).append(frame)
        parts: dict[str, FrameTreePart] = {root.frame_id: await self._part(root, options, root == frames[0])}
        notes: dict[str, str] = {}
        places: dict[tuple[str, int], Frame] = {}
        level = [root]
        for _ in range(FRAME_DEPTH):
            wanted = [
                child for frame in level if parts[frame.frame_id].owners for child in children.get(frame.frame_id, ())
            ]
            if not wanted:
                break
            numbers = await asyncio.gather(*(self._owner_number(child) for child in wanted))
            level = []
            for child, number in zip(wanted, numbers, strict=True):
                parent_id = child.parent_frame_id or ""
                if number is not None and number in parts[parent_id].owners.values():
                    places[parent_id, number] = child
                    level.append(child)
            inner = {**options, "root": None}
            read = await asyncio.gather(*(self._quiet_part(child, inner) for child in level))
            for child, part in zip(level, read, strict=True):
                if isinstance(part, FrameTreePart):
                    parts[child.frame_id] = part
                else:
                    notes[child.frame_id] = part
            level = [child for child in level if child.frame_id in parts]
        return Reading(parts, notes, places)

    def stitch(self, root: Frame, top: Frame, reading: Reading) -> Tree:
        """One tree of all that was read."""
        tree = Tree()
        self._append(tree, root, top, reading, 0)
        return tree

    def _append(self, tree: Tree, frame: Frame, top: Frame, reading: Reading, depth: int) -> None:
        part = reading.parts[frame.frame_id]
        prefix = prefix_of(frame.short, frame.frame_id == top.frame_id)
        if not tree.spans:
            tree.spans.append(FrameSpan(frame.short, frame.frame_id, part.url, 0, 0))
        position = 0
        for node, number in part.owners.items():
            tree.extend(part, position, node + 1, depth, prefix)
            position = node + 1
            child = reading.children.get((frame.frame_id, number))
            if child is None:
                continue
            start, at = len(tree), len(tree.spans)
            inner = reading.parts.get(child.frame_id)
            url = inner.url if inner else child.url
            tree.spans.append(FrameSpan(child.short, child.frame_id, url, start, start))
            if inner is not None:
                self._append(tree, child, top, reading, depth + part.depths[node] + 1)
            note = reading.notes.get(child.frame_id, "")
            tree.spans[at] = FrameSpan(child.short, child.frame_id, url, start, len(tree), note)
        tree.extend(part, position, len(part.depths), depth, prefix)

    async def _quiet_part(self, frame: Frame, options: Mapping[str, Any]) -> FrameTreePart | str:
        try:
            return await self._part(frame, options, False)
        except ConnectionLost:
            raise
        except CallTimeout:
            return f"did not answer within {FRAME_TIMEOUT_S:g} s"
        except CallInterrupted:
            return "waits behind a dialog"
        except SupervisorError as error:
            return f"not read: {error.code}"

    async def _part(self, frame: Frame, options: Mapping[str, Any], is_top: bool) -> FrameTreePart:
        prefix = prefix_of(frame.short, is_top)
        for _ in range(SHADOW_PASSES):
            asked = {**options, "base": self._ledger.next_number(prefix)}
            encoded = await self._worlds.run(frame, "snapshot", asked, timeout=FRAME_TIMEOUT_S)
            if not isinstance(encoded, str):
                raise RootGone
            part = decode(encoded)
            self._ledger.given(prefix, frame.frame_id, part.next_number)
            if part.candidates == 0 or not await self._open_closed_roots(frame):
                break
        return part

    async def _open_closed_roots(self, frame: Frame) -> bool:
        """Ask the browser about elements that may host a closed shadow root; True when one was found."""
        taken = await self._worlds.run(frame, "takeCandidates", by_value=False)
        listing = {"objectId": taken["objectId"], "ownProperties": True}
        listed = await self._port.call("Runtime.getProperties", listing, session_id=frame.session_id)
        hosts = [
            fields.text(fields.mapping(item, "value"), "objectId")
            for item in fields.items(listed, "result")
            if fields.text(item, "name").isdigit()
        ]
        found = await asyncio.gather(*(self._open_closed_root(frame, host) for host in hosts))
        return any(found)

    async def _open_closed_root(self, frame: Frame, host: str) -> bool:
        described = await self._port.call(
            "DOM.describeNode", {"objectId": host, "depth": 0}, session_id=frame.session_id
        )
        for root in fields.items(fields.mapping(described, "node"), "shadowRoots"):
            if fields.text(root, "shadowRootType") != "closed":
                continue
            resolved = await self._port.call(
                "DOM.resolveNode",
                {
                    "backendNodeId": fields.integer(root, "backendNodeId"),
                    "executionContextId": await self._worlds.context(frame),
                },
                session_id=frame.session_id,
            )
            inside = fields.text(fields.mapping(resolved, "object"), "objectId")
            await self._worlds.run(frame, "adoptClosedRoot", Handle(host), Handle(inside))
            return True
        return False

    async def owner(self, frame: Frame) -> tuple[Frame, int] | None:
        """The parent of a frame, and the number of the iframe in it."""
        number = await self._owner_number(frame)
        parent = self._parent(frame)
        return None if number is None or parent is None else (parent, number)

    def _parent(self, frame: Frame) -> Frame | None:
        return next((f for f in self._port.snapshot().frames if f.frame_id == frame.parent_frame_id), None)

    async def _owner_number(self, frame: Frame) -> int | None:
        """The number, in its parent's world, of the iframe that a frame is in. Asked once while both live."""
        parent = self._parent(frame)
        if parent is None:
            return None
        try:
            context = await self._worlds.context(parent)
            known = self._owners.get(frame.frame_id)
            if known is not None and known[:2] == (parent.frame_id, context):
                return known[2]
            owner = await self._port.call(
                "DOM.getFrameOwner", {"frameId": frame.frame_id}, session_id=parent.session_id
            )
            resolved = await self._port.call(
                "DOM.resolveNode",
                {"backendNodeId": fields.integer(owner, "backendNodeId"), "executionContextId": context},
                session_id=parent.session_id,
            )
            element = fields.text(fields.mapping(resolved, "object"), "objectId")
            number = await self._worlds.run(parent, "knownNumber", Handle(element))
        except ConnectionLost:
            raise
        except SupervisorError:
            return None  # the frame went away, or is about to
        if not isinstance(number, int) or number == 0:
            return None  # not rendered, so it was given no number
        self._owners[frame.frame_id] = (parent.frame_id, context, number)
        return number


class RootGone(Exception):
    """The element that was to be looked at is no longer in the document."""
