"""A fake CDP server that behaves like a browser with pages: enough to start a supervisor on it.

Each ``Target.attachToTarget`` answers as Chromium does: the event first, then the reply. Pages are numbered; page
``P1`` has session ``S1``, the top frame ``P1`` and the context ``C1``.
"""

import asyncio
from typing import Any

from .cdp_server import Call, FakeCdpServer


class FakeBrowser(FakeCdpServer):
    """``pages`` counts the pages that were opened."""

    pages: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on("Target.createTarget", self._create)
        self.on("Target.attachToTarget", self._attach)
        self.on("Target.closeTarget", {"success": True})
        self.on("Target.getTargets", self._targets)
        self.on("Page.getFrameTree", self._tree)
        self.on("Runtime.enable", self._enable)
        self.on("Page.navigate", self._navigate)
        self.on("Runtime.evaluate", {"result": {"type": "number", "value": 2}})

    async def dialog(self, page: int = 1, kind: str = "confirm", message: str = "Sure?", default: str = "") -> None:
        params = {"type": kind, "message": message, "defaultPrompt": default, "url": "http://a.test/"}
        await self.emit("Page.javascriptDialogOpening", params, f"S{page}")

    async def _create(self, call: Call) -> dict[str, Any]:
        self.pages += 1
        return {"targetId": f"P{self.pages}"}

    async def _targets(self, call: Call) -> dict[str, Any]:
        return {"targetInfos": [{"targetId": f"P{n}", "type": "page"} for n in range(1, self.pages + 1)]}

    async def _attach(self, call: Call) -> dict[str, Any]:
        number = call.params["targetId"][1:]
        info = {"targetId": f"P{number}", "type": "page", "url": "about:blank", "title": "", "attached": True}
        params = {"sessionId": f"S{number}", "targetInfo": info, "waitingForDebugger": False}
        await self.emit("Target.attachedToTarget", params)
        return {"sessionId": f"S{number}"}

    async def _tree(self, call: Call) -> dict[str, Any]:
        page = f"P{(call.session_id or '')[1:]}"
        return {"frameTree": {"frame": {"id": page, "url": "about:blank", "loaderId": "L0", "securityOrigin": "://"}}}

    async def _enable(self, call: Call) -> dict[str, Any]:
        number = (call.session_id or "")[1:]
        aux = {"frameId": f"P{number}", "isDefault": True}
        context = {"id": 1, "uniqueId": f"C{number}", "name": "", "auxData": aux}
        await self.emit("Runtime.executionContextCreated", {"context": context}, call.session_id)
        return {}

    async def _navigate(self, call: Call) -> dict[str, Any]:
        """Commit, then load once the reply is under way."""
        page, session = f"P{(call.session_id or '')[1:]}", call.session_id
        frame = {"id": page, "url": call.params["url"], "loaderId": "L1", "securityOrigin": "http://a.test"}
        await self.emit("Page.frameNavigated", {"frame": frame, "type": "Navigation"}, session)
        load = {"frameId": page, "loaderId": "L1", "name": "load", "timestamp": 1}
        task = asyncio.create_task(self.emit("Page.lifecycleEvent", load, session))
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        return {"frameId": page, "loaderId": "L1"}
