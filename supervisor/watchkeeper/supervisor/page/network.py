"""The requests of a task: which were made, how they ended, and what they answered.

Rules: off until somebody asks, for it costs the browser; from then on for every frame and tab, also those that come.
A ring of the last requests; what fell out of it is counted. Bodies are fetched on demand, in pieces of a cap.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Network/
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, proxy

from ..core import fields
from ..core.inputs import Event
from ..errors import InvalidArgument, SupervisorError
from .port import PagePort

KEPT = 500
URL_CAP = 2000
BODY_CAP = 200_000
QUIET_TYPES = frozenset({"WebSocket", "EventSource", "Ping", "Media"})
"""Requests that may stay open for ever; silence does not wait for them."""


@dataclass(slots=True)
class Request:
    """``status`` 0: no answer yet, or none came (``failure`` says why). Times are seconds; ``took`` None while open."""

    number: int
    request_id: str
    session_id: str
    frame_id: str
    method: str
    url: str
    kind: str
    started: float
    status: int = 0
    mime: str = ""
    size: int = 0
    took: float | None = None
    failure: str = ""
    has_post_data: bool = False


class NetworkLog:
    """Made by ``network_log``."""

    def __init__(self, port: PagePort) -> None:
        self._port = port
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._count = 0
        self._enabled: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stop: Callable[[], None] | None = None
        self.dropped = 0
        """Requests that were made and are not kept any more."""

    @property
    def listening(self) -> bool:
        """Whether requests are kept already."""
        return self._stop is not None

    async def start(self) -> None:
        """Listen from now on. Idempotent."""
        if self._stop is None:
            self._stop = self._port.listen(self._hear)
        view = self._port.snapshot()
        sessions = {frame.session_id for frame in view.frames} - self._enabled
        await asyncio.gather(*(self._enable(session) for session in sessions))

    def requests(self, *, url: str = "", failed: bool = False, kinds: frozenset[str] = frozenset()) -> list[Request]:
        """Kept requests, oldest first; ``url``: a part of the address; ``kinds`` as CDP names them, in lower case."""
        return [
            request
            for request in self._requests.values()
            if url.lower() in request.url.lower()
            and (not failed or request.failure or request.status >= 400)
            and (not kinds or request.kind.lower() in kinds)
        ]

    async def body(self, number: int, *, offset: int = 0, cap: int = BODY_CAP) -> tuple[str, int]:
        """The text of an answer from a character on, and its whole length; binary answers are base64.

        Raises: InvalidArgument (unknown number), ProtocolError (the browser has dropped the body).
        """
        found = next((r for r in self._requests.values() if r.number == number), None)
        if found is None:
            raise InvalidArgument(f"There is no request {number}.", "List the requests first: browser_network.")
        got = await self._port.call(
            "Network.getResponseBody", {"requestId": found.request_id}, session_id=found.session_id
        )
        text = fields.text(got, "body")
        if fields.flag(got, "base64Encoded") and found.mime.startswith(("text/", "application/json")):
            text = base64.b64decode(text).decode("utf-8", "replace")
        return text[offset : offset + cap], len(text)

    async def until_quiet(self, seconds: float, timeout: float) -> tuple[bool, int]:
        """Wait until no request was under way for ``seconds``. Whether that came about, and how many are left."""
        await self.start()
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    try:
                        await asyncio.wait_for(self._changed.wait(), None if self._busy() else seconds)
                    except TimeoutError:
                        return True, 0
        except TimeoutError:
            return self._busy() == 0, self._busy()

    def _busy(self) -> int:
        return sum(1 for r in self._requests.values() if r.took is None and r.kind not in QUIET_TYPES)

    async def _enable(self, session_id: str) -> None:
        self._enabled.add(session_id)
        try:
            await self._port.call("Network.enable", session_id=session_id)
        except SupervisorError:
            self._enabled.discard(session_id)  # it is gone, or will be asked for again

    def _hear(self, event: Event) -> None:
        params, session = event.params, event.session_id or ""
        match event.method:
            case "Network.requestWillBeSent":
                self._sent(session, params)
            case "Network.responseReceived":
                response = fields.mapping(params, "response")
                found = self._requests.get(fields.text(params, "requestId"))
                if found is not None:
                    found.status = fields.integer(response, "status")
                    found.mime = fields.text(response, "mimeType")
                    found.kind = fields.text(params, "type") or found.kind
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._ended(params)
            case "Target.attachedToTarget":
                inner = fields.text(params, "sessionId")
                task = asyncio.get_running_loop().create_task(self._enable(inner))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            case "Target.detachedFromTarget":
                self._lost(fields.text(params, "sessionId"))
            case _:
                return
        self._changed.set()

    def _sent(self, session_id: str, params: Mapping[str, Any]) -> None:
        request_id = fields.text(params, "requestId")
        request = fields.mapping(params, "request")
        before = self._requests.get(request_id)
        if before is not None and fields.mapping(params, "redirectResponse"):
            # The same request goes on elsewhere: what was is kept under a name of its own.
            before.status = fields.integer(fields.mapping(params, "redirectResponse"), "status")
            before.took = _seconds(params) - before.started
            self._requests[f"{request_id}#{before.number}"] = self._requests.pop(request_id)
        self._count += 1
        self._requests[request_id] = Request(
            self._count,
            request_id,
            session_id,
            fields.text(params, "frameId"),
            fields.text(request, "method"),
            fields.text(request, "url")[:URL_CAP],
            fields.text(params, "type") or "Other",
            _seconds(params),
            has_post_data=fields.flag(request, "hasPostData"),
        )
        while len(self._requests) > KEPT:
            self._requests.popitem(last=False)
            self.dropped += 1

    def _ended(self, params: Mapping[str, Any]) -> None:
        found = self._requests.get(fields.text(params, "requestId"))
        if found is None:
            return
        found.took = max(0.0, _seconds(params) - found.started)
        found.size = fields.integer(params, "encodedDataLength") or found.size
        found.failure = fields.text(params, "errorText")

    def _lost(self, session_id: str) -> None:
        self._enabled.discard(session_id)
        for request in self._requests.values():
            if request.session_id == session_id and request.took is None:
                request.took, request.failure = 0.0, "its page was closed"


def _seconds(params: Mapping[str, Any]) -> float:
    value = params.get("timestamp")
    return float(value) if isinstance(value, int | float) else 0.0


_logs: WeakKeyDictionary[PagePort, NetworkLog] = WeakKeyDictionary()


def network_log(port: PagePort) -> NetworkLog:
    """The log of a task, made where there is none. ``start`` begins it."""
    log = _logs.get(port)
    if log is None:
        log = _logs[port] = NetworkLog(proxy(port))
    return log


def dropped_of(port: PagePort) -> int:
    """How many requests the log of a task has dropped; 0 where there is none."""
    log = _logs.get(port)
    return 0 if log is None else log.dropped
