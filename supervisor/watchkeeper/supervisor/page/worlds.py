"""Our own JavaScript world in each frame: it sees the page's document, and the page's scripts do not see it.

Rules: a world is made when a frame is first looked at and again when its document was replaced. What the world's
functions give back is data that a hostile page may have shaped through its document: it is decoded, never trusted.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-createIsolatedWorld
"""

import secrets
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from ..core import fields
from ..core.view import Frame
from ..errors import EvaluationFailed, ProtocolError
from .port import PagePort

WORLD_NAME = "watchkeeper-page"
SCRIPTS = (
    "world.js",
    "roles.js",
    "names.js",
    "states.js",
    "columns.js",
    "tree.js",
    "pointing.js",
    "actions.js",
    "waits.js",
)
EXPORTS = """
    snapshot takeCandidates adoptClosedRoot elementsOf isReadable countSlots describeNumber locate ownerPoint
    prepareFill prepareType fieldState choose checkedState scrollBy isDraggable dragAndDrop clickLanded boxOf
    ownerCorner
    untilText untilElement untilLoaded nextFrame
"""
GONE = ("Cannot find context", "context was destroyed", "navigated or closed")
"""What the browser says of a document that is not there any more."""
MAKE_TIMEOUT_S = 10.0
KEPT_WORLDS = 400


def script(key: str) -> str:
    """Our functions as one expression that puts them where only this supervisor looks for them."""
    folder = files(__package__) / "scripts"
    parts = "\n".join((folder / name).read_text("utf-8") for name in SCRIPTS)
    ours = f"(() => {{\n'use strict';\n{parts}\nreturn {{ {', '.join(EXPORTS.split())} }};\n}})()"
    return f"globalThis[{key!r}] ??= {ours}; 0"


class Worlds:
    """The worlds of one task's frames."""

    def __init__(self, port: PagePort) -> None:
        self._port = port
        self._key = f"watchkeeper{secrets.token_hex(8)}"
        self._script = script(self._key)
        self._call = f"function (name, ...rest) {{ return globalThis[{self._key!r}][name](...rest); }}"
        self._contexts: dict[str, tuple[str, int]] = {}

    async def run(
        self, frame: Frame, function: str, *arguments: Any, by_value: bool = True, timeout: float | None = None
    ) -> Any:
        """Call one of our functions in a frame; arguments are JSON values or ``Handle``s.

        Raises EvaluationFailed where it threw, UnknownFrame and the errors of ``call``.
        """
        known = self._contexts.get(frame.frame_id)
        if known is not None and known[0] == frame.session_id:
            try:
                return await self._run(frame, known[1], function, arguments, by_value, timeout)
            except ProtocolError as error:
                if not any(said in error.message for said in GONE):
                    raise
            except _NoWorld:
                pass  # the number of our context means another one by now: the page moved to a new process
        context = await self._make(frame)
        try:
            return await self._run(frame, context, function, arguments, by_value, timeout)
        except _NoWorld:
            raise EvaluationFailed(
                "The page was replaced while it was being read.", "Take a browser_snapshot again."
            ) from None

    async def run_if_there(self, frame: Frame, function: str, *arguments: Any) -> Any:
        """Like ``run`` in the world that exists; None where its document is gone."""
        known = self._contexts.get(frame.frame_id)
        if known is None or known[0] != frame.session_id:
            return None
        try:
            return await self._run(frame, known[1], function, arguments, True, None)
        except (ProtocolError, EvaluationFailed, _NoWorld):
            return None

    async def handles(self, frame: Frame, function: str, *arguments: Any) -> list[str]:
        """Object ids of the elements that one of our functions gives as an array."""
        taken = await self.run(frame, function, *arguments, by_value=False)
        listing = {"objectId": taken["objectId"], "ownProperties": True}
        listed = await self._port.call("Runtime.getProperties", listing, session_id=frame.session_id)
        return [
            fields.text(fields.mapping(item, "value"), "objectId")
            for item in fields.items(listed, "result")
            if fields.text(item, "name").isdigit()
        ]

    async def context(self, frame: Frame) -> int:
        """The number of our execution context in a frame, made where there is none."""
        known = self._contexts.get(frame.frame_id)
        return known[1] if known is not None and known[0] == frame.session_id else await self._make(frame)

    async def _make(self, frame: Frame) -> int:
        made = await self._port.call(
            "Page.createIsolatedWorld",
            {"frameId": frame.frame_id, "worldName": WORLD_NAME},
            session_id=frame.session_id,
            timeout=MAKE_TIMEOUT_S,
        )
        context = fields.integer(made, "executionContextId")
        ours = {"expression": self._script, "contextId": context}
        await self._port.call("Runtime.evaluate", ours, session_id=frame.session_id, timeout=MAKE_TIMEOUT_S)
        self._contexts.pop(frame.frame_id, None)
        self._contexts[frame.frame_id] = (frame.session_id, context)
        while len(self._contexts) > KEPT_WORLDS:
            self._contexts.pop(next(iter(self._contexts)))  # made again when it is looked at
        return context

    async def _run(
        self,
        frame: Frame,
        context: int,
        function: str,
        arguments: tuple[Any, ...],
        by_value: bool,
        timeout: float | None,
    ) -> Any:
        params = {
            "functionDeclaration": self._call,
            "executionContextId": context,
            "arguments": [{"value": function}, *(_argument(value) for value in arguments)],
            "returnByValue": by_value,
            "awaitPromise": True,
        }
        result = await self._port.call("Runtime.callFunctionOn", params, session_id=frame.session_id, timeout=timeout)
        details = fields.mapping(result, "exceptionDetails")
        if details:
            said = fields.text(fields.mapping(details, "exception"), "description")
            if "Cannot read properties of undefined" in said and f"'{function}'" in said:
                raise _NoWorld
            raise EvaluationFailed(f"Reading the page failed: {said[:500]}", "Take a browser_snapshot and try again.")
        value: Mapping[str, Any] = fields.mapping(result, "result")
        return value.get("value") if by_value else value


class Handle(str):
    """The id of a remote object, passed as an argument."""

    __slots__ = ()


def _argument(value: Any) -> dict[str, Any]:
    return {"objectId": str(value)} if isinstance(value, Handle) else {"value": value}


class _NoWorld(Exception):
    """The context is not one of ours."""
