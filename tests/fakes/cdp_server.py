"""A browser's debugging port without a browser: a real WebSocket, scripted answers, and the ways in which it fails.

    async with FakeCdpServer() as server:
        server.on("Page.navigate", {"frameId": "F"})            # always this result
        server.on("DOM.enable", Refusal(-32601, "not found"))   # an error
        server.on("Runtime.evaluate", NEVER)                    # no answer at all
        server.on("Target.getTargets", lambda call: {...})      # computed; may be a coroutine function
        ...connect to server.url...
        call = await server.called("Page.navigate")             # waits until it was called, then gives the call
        await server.emit("Page.loadEventFired", {"timestamp": 1}, session_id="S")

Methods without a script are answered with ``{}``. Nothing here waits longer than ``WAIT_S``.
"""

import asyncio
import inspect
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

WAIT_S = 10.0
PATH = "/devtools/browser/fake"


@dataclass(frozen=True)
class Call:
    id: int
    method: str
    params: dict[str, Any]
    session_id: str | None


@dataclass(frozen=True)
class Refusal:
    """An answer with an error."""

    code: int
    message: str


NEVER = object()
Answer = dict[str, Any] | Refusal | object | Callable[[Call], Any]


@dataclass
class FakeCdpServer:
    slow_s: float = 0.0
    """Wait before each answer."""
    refuse: HTTPStatus | None = None
    """Refuse new connections with this status."""
    refuse_names: bool = False
    """As Chrome does: refuse requests whose Host is neither an address nor ``localhost``."""
    calls: list[Call] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        self._answers: dict[str, Answer] = {"Browser.getVersion": {"product": "Chrome/156.0.0.0"}}
        self._connections: set[ServerConnection] = set()
        self._changed = asyncio.Condition()
        self._stalled = False
        self._late: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._http,
            max_size=None,
            compression=None,
            ping_interval=None,
            close_timeout=0.2,
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._late:
            task.cancel()
        self.drop()
        self._server.close()
        await asyncio.wait_for(self._server.wait_closed(), WAIT_S)

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}{PATH}"

    def on(self, method: str, answer: Answer) -> None:
        self._answers[method] = answer

    async def called(self, method: str, times: int = 1) -> Call:
        """The ``times``-th call of this method, once it was made."""

        def found() -> list[Call]:
            return [call for call in self.calls if call.method == method]

        await self._until(lambda: len(found()) >= times)
        return found()[times - 1]

    async def connected(self, count: int = 1) -> None:
        """Returns once exactly ``count`` connections are open."""
        await self._until(lambda: len(self._connections) == count)

    async def emit(self, method: str, params: dict[str, Any], session_id: str | None = None) -> None:
        event: dict[str, Any] = {"method": method, "params": params}
        if session_id is not None:
            event["sessionId"] = session_id
        await self.send_raw(json.dumps(event))

    async def send_raw(self, data: str) -> None:
        """Any text to every connection, valid or not."""
        for connection in tuple(self._connections):
            await connection.send(data)

    def drop(self) -> None:
        """Break every connection without a word. New ones are accepted."""
        for connection in tuple(self._connections):
            connection.transport.abort()

    def stall(self) -> None:
        """Keep the sockets open and do nothing any more: no answers, no pongs, nothing read."""
        self._stalled = True
        for connection in self._connections:
            connection.transport.pause_reading()

    async def close_politely(self, code: int = 1001, reason: str = "") -> None:
        for connection in tuple(self._connections):
            await connection.close(code, reason)

    def _http(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        host = request.headers["Host"].rpartition(":")[0]
        if self.refuse is not None:
            return connection.respond(self.refuse, "refused")
        if self.refuse_names and host != "localhost" and not host.replace(".", "").isdigit():
            message = "Host header is specified and is not an IP address or localhost."
            return connection.respond(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        if request.path.partition("?")[0].rstrip("/") == "/json/version":
            about = {"Browser": "Chrome/156.0.0.0", "webSocketDebuggerUrl": f"ws://{request.headers['Host']}{PATH}"}
            response = connection.respond(HTTPStatus.OK, json.dumps(about))
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = "application/json"
            return response
        if not request.path.startswith("/devtools/"):
            return connection.respond(HTTPStatus.NOT_FOUND, "not found")
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        if self._stalled:
            connection.transport.pause_reading()
        await self._notify()
        try:
            async for text in connection:
                message = json.loads(text)
                call = Call(message["id"], message["method"], message.get("params", {}), message.get("sessionId"))
                self.calls.append(call)
                await self._notify()
                if self.slow_s:
                    task = asyncio.create_task(self._answer(connection, call))
                    self._late.add(task)
                    task.add_done_callback(self._late.discard)
                else:
                    await self._answer(connection, call)
        except ConnectionClosed:
            pass
        finally:
            self._connections.discard(connection)
            await self._notify()

    async def _answer(self, connection: ServerConnection, call: Call) -> None:
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        answer = self._answers.get(call.method, {})
        if callable(answer):
            answer = answer(call)
            if inspect.isawaitable(answer):
                answer = await answer
        if answer is NEVER:
            return
        reply: dict[str, Any] = {"id": call.id}
        if call.session_id is not None:
            reply["sessionId"] = call.session_id
        if isinstance(answer, Refusal):
            reply["error"] = {"code": answer.code, "message": answer.message}
        else:
            reply["result"] = answer
        with suppress(ConnectionClosed):
            await connection.send(json.dumps(reply))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(condition)
