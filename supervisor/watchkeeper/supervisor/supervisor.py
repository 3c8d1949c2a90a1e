"""The supervisor of one task, as its callers see it: calls, tabs, navigation and dialogs.

Rules: every call has a deadline, and ends early when a dialog, a crash or a lost connection makes an answer impossible.
Each act is checked here (is there a connection, may this address be opened) and done by the module that knows how.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from . import calls, dialog_answer, tabs
from .dialog_answer import DialogAnswer
from .navigation import Navigation, navigate
from .shell import Shell


class Supervisor(Shell):
    """Made by ``SupervisorRegistry.get_or_start``."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        frame_id: str | None = None,
        target_id: str | None = None,
        session_id: str | None = None,
        timeout: float | None = None,
    ) -> Mapping[str, Any]:
        """Send a CDP command to the frame, tab or browser that it is meant for, and give its result.

        ``frame_id`` and ``target_id`` may be short names (``f2``, ``t1``). ``session_id`` bypasses the routing, for
        callers that took it from the view. ``timeout`` is in seconds, clamped to 0.1-300.

        Raises: UnknownFrame, UnknownTarget, NoPage, MethodRefused, DialogOpened, TargetCrashed, TargetClosed,
        ProtocolError, CallTimeout, ConnectionLost.
        """
        return await calls.call(
            self, method, params, frame_id=frame_id, target_id=target_id, session_id=session_id, timeout=timeout
        )

    async def evaluate(
        self,
        expression: str,
        *,
        frame_id: str | None = None,
        await_promise: bool = True,
        timeout: float | None = None,
    ) -> Any:
        """Run JavaScript in a frame's own world and give its value, as JSON. Raises EvaluationFailed."""
        result = await self.call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": await_promise, "userGesture": True},
            frame_id=frame_id or self.top_frame_id(),
            timeout=timeout,
        )
        return calls.evaluated(result)

    async def navigate(self, url: str, *, timeout: float | None = None) -> Navigation:
        """Open a URL in the selected tab (a new one, when there is none) and wait until it has loaded."""
        self.require_connection()
        self.boundary.check_url(url)
        with self.use.during():
            page_id = self.state.targets.selected or await self.open_tab()
            return await navigate(self, page_id, url, self.clamped(timeout))

    async def open_tab(self, url: str = "about:blank") -> str:
        """Open a tab and select it; gives its target id."""
        self.require_connection()
        self.boundary.check_url(url)
        return await tabs.open_tab(self, url)

    async def follow_tab(self, target_id: str) -> None:
        """Make a tab that is open in a shared browser one of this task's, and select it."""
        self.require_connection()
        await tabs.follow_tab(self, target_id)

    async def refresh_tabs(self) -> None:
        """Bring titles and addresses of the tabs up to date."""
        self.require_connection()
        await tabs.refresh_tabs(self)

    def select_tab(self, name: str) -> None:
        """Select a tab of this task by tab id or target id. Raises UnknownTarget."""
        tabs.select_tab(self, name)

    async def close_tab(self, name: str | None = None) -> str:
        """Close a tab, the selected one when none is named; gives its tab id once the browser says that it is gone.

        Raises: UnknownTarget, NoPage, DialogOpened (the page asks whether to stay), CallTimeout.
        """
        self.require_connection()
        return await tabs.close_tab(self, name)

    async def answer_dialog(
        self, action: Literal["accept", "dismiss"], prompt_text: str | None = None, dialog_id: str | None = None
    ) -> DialogAnswer:
        """Answer an open dialog, and wait until the browser says that it closed.

        Raises: NoDialogOpen, UnknownDialog, AmbiguousDialog, DialogBeingAnswered, BadPromptText.
        """
        return await dialog_answer.answer_dialog(self, action, prompt_text, dialog_id)

    async def close(self) -> None:
        """End the task: its tabs are closed. Idempotent."""
        if self._closed:
            return
        self._closed = True
        pages = tuple(self.state.targets.pages)
        await asyncio.gather(*(tabs.free_dialogs(self, page_id) for page_id in pages))
        await self.browser.remove_task(self)
        self.connection_lost("the task was closed")
