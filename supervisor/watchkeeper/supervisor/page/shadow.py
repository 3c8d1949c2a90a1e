"""Closed shadow roots: a script does not see them; the browser does, and hands them to our world.

Rules: two ways find them. Elements that look as if they hide something (empty, or of a custom name) are asked about,
each once, and a few of the empty ones again in turn. And ``<slot>`` elements, which only shadow trees have, are counted
by a search that goes through every tree; more of them than our script knows means a root that it does not. A root that
is known once is known for good.

Sources: https://chromedevtools.github.io/devtools-protocol/tot/DOM/#method-describeNode (``shadowRoots``),
.../DOM/#method-performSearch, .../DOM/#method-resolveNode
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from ..core import fields
from ..core.view import Frame
from ..errors import ConnectionLost, ProtocolError, SupervisorError
from .port import PagePort
from .worlds import Handle, Worlds

SLOTS_AT_ONCE = 600
SLOTS = {"query": "<slot"}


class ClosedRoots:
    """Finds the closed shadow roots of one task's frames."""

    def __init__(self, port: PagePort, worlds: Worlds) -> None:
        self._port = port
        self._worlds = worlds
        self._settled: dict[tuple[str, int], int] = {}
        """(Frame id, its context) -> how many slots there were when all of them were known."""

    async def adopt_candidates(self, frame: Frame) -> bool:
        """Ask about the elements that our script named; True when a root was found."""
        hosts = await self._worlds.handles(frame, "takeCandidates")
        return any(await asyncio.gather(*(self._adopt_root_of(frame, host) for host in hosts)))

    async def count_slots(self, frame: Frame) -> int:
        """Slots in all trees of the frame's process, closed ones too; 0 where the browser cannot tell."""
        try:
            found = await self._search(frame)
        except ConnectionLost:
            raise
        except SupervisorError:
            return 0
        return fields.integer(found, "resultCount")

    async def adopt_slotted(self, frame: Frame, count: int) -> bool:
        """Find the roots of slots that our script does not know; True when a root was found."""
        place = (frame.frame_id, await self._worlds.context(frame))
        if count == 0 or self._settled.get(place) == count:
            return False
        self._settled[place] = count
        if await self._worlds.run(frame, "countSlots") >= count:
            return False
        await self._port.call("DOM.getDocument", {"depth": 0}, session_id=frame.session_id)
        found = await self._search(frame)
        upto = min(fields.integer(found, "resultCount"), SLOTS_AT_ONCE)
        if upto == 0:
            return False
        some = {"searchId": fields.text(found, "searchId"), "fromIndex": 0, "toIndex": upto}
        nodes = await self._port.call("DOM.getSearchResults", some, session_id=frame.session_id)
        ids = [i for i in nodes.get("nodeIds", ()) if isinstance(i, int)]
        return any(await asyncio.gather(*(self._adopt_root_around(frame, place[1], i) for i in ids)))

    async def _search(self, frame: Frame) -> Mapping[str, Any]:
        try:
            return await self._port.call("DOM.performSearch", SLOTS, session_id=frame.session_id)
        except ProtocolError:
            await self._port.call("DOM.enable", session_id=frame.session_id)
            return await self._port.call("DOM.performSearch", SLOTS, session_id=frame.session_id)

    async def _adopt_root_of(self, frame: Frame, host: str) -> bool:
        asked = {"objectId": host, "depth": 0}
        described = await self._port.call("DOM.describeNode", asked, session_id=frame.session_id)
        for root in fields.items(fields.mapping(described, "node"), "shadowRoots"):
            if fields.text(root, "shadowRootType") == "closed":
                context = await self._worlds.context(frame)
                node = {"backendNodeId": fields.integer(root, "backendNodeId"), "executionContextId": context}
                await self._adopt(frame, node)
                return True
        return False

    async def _adopt_root_around(self, frame: Frame, context: int, node_id: int) -> bool:
        try:
            return await self._adopt(frame, {"nodeId": node_id, "executionContextId": context})
        except ProtocolError:
            return False  # in a frame of another origin, which is looked at by its own script

    async def _adopt(self, frame: Frame, node: Mapping[str, Any]) -> bool:
        resolved = await self._port.call("DOM.resolveNode", node, session_id=frame.session_id)
        inside = fields.text(fields.mapping(resolved, "object"), "objectId")
        return bool(await self._worlds.run(frame, "adoptClosedRoot", Handle(inside)))
