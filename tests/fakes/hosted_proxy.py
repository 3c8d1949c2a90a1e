"""A hosted browser, imitated: a WebSocket proxy in front of a real Chromium which behaves as such services do.

    async with hosted_chromium() as hosted:              # starts a Chromium and the proxy before it
        ...connect to hosted.url...                      # wss-like address with a signature that can expire
        hosted.latency_s = 0.05                          # each message, each way, order kept
        hosted.drop(); hosted.stall(); await hosted.expire(); hosted.renew()

Native dialogs are dismissed by a client of the service's own, ``dismiss_after_s`` (at most 10 ms) after they open, as
Browserbase does: whoever wants to answer one natively loses that race. ``hosted.dismissed`` lists what it closed.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from watchkeeper.supervisor.backends import LocalEndpoint
from watchkeeper.supervisor.backends.local import connect_local
from watchkeeper.supervisor.backends.process import read_port_file
from watchkeeper.supervisor.errors import TransportClosed

WAIT_S = 20.0
EXPIRED = 4001


@asynccontextmanager
async def hosted_chromium(**settings: Any) -> AsyncIterator["HostedProxy"]:
    """A Chromium of its own with the proxy before it; ``settings`` are those of ``HostedProxy``."""
    browser = await connect_local(LocalEndpoint(headless=True), WAIT_S, reach="port")
    try:
        upstream = read_port_file(browser.profile.path)
        assert upstream is not None
        async with HostedProxy(upstream, **settings) as proxy:
            yield proxy
    finally:
        with suppress(TransportClosed):  # a crash of the browser is told by the test that meets it
            browser.transport.send(json.dumps({"id": 2, "method": "Browser.close"}))
        await browser.close()


@dataclass
class HostedProxy:
    upstream: str
    dismisses_dialogs: bool = True
    dismiss_after_s: float = 0.005
    latency_s: float = 0.0
    dismissed: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0
    """How many there ever were."""

    def __post_init__(self) -> None:
        self._signatures = itertools.count(1)
        self._signature: str | None = None
        self._clients: set[ServerConnection] = set()
        self._port = 0

    async def __aenter__(self) -> Self:
        self.renew()
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self._check,
            max_size=None,
            compression=None,
            ping_interval=None,
            close_timeout=0.2,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self._dismisser = asyncio.create_task(self._dismiss_dialogs()) if self.dismisses_dialogs else None
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drop()
        if self._dismisser is not None:
            self._dismisser.cancel()
            await asyncio.gather(self._dismisser, return_exceptions=True)
        self._server.close()
        await asyncio.wait_for(self._server.wait_closed(), WAIT_S)

    @property
    def url(self) -> str:
        """Where the session is reached, with the signature of now."""
        return f"ws://127.0.0.1:{self._port}/?signingKey={self._signature}"

    def renew(self) -> None:
        """A new signature; those before it are refused from now on."""
        self._signature = f"signature-{next(self._signatures)}"

    async def expire(self) -> None:
        """The session's signature ends: connections are closed, and every signature so far is refused."""
        self._signature = None
        for client in tuple(self._clients):
            await client.close(EXPIRED, "session expired")

    def drop(self) -> None:
        """Break every connection without a word. New ones are accepted."""
        for client in tuple(self._clients):
            client.transport.abort()

    def stall(self) -> None:
        """Keep the sockets open and let nothing through, pongs included. New connections work."""
        for client in self._clients:
            client.transport.pause_reading()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        given = parse_qs(urlsplit(request.path).query).get("signingKey")
        if self._signature is None or given != [self._signature]:
            return connection.respond(HTTPStatus.UNAUTHORIZED, "the signature is not valid, or has expired")
        return None

    async def _serve(self, client: ServerConnection) -> None:
        self.connections += 1
        self._clients.add(client)
        try:
            async with connect(self.upstream, max_size=None, compression=None, ping_interval=None) as browser:
                both = [
                    asyncio.create_task(self._forward(client, browser)),
                    asyncio.create_task(self._forward(browser, client)),
                ]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in both:
                    task.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            self._clients.discard(client)

    async def _forward(
        self, source: ServerConnection | ClientConnection, target: ServerConnection | ClientConnection
    ) -> None:
        """Pass messages on, each ``latency_s`` after it came, in order."""
        clock = asyncio.get_running_loop().time
        late: asyncio.Queue[tuple[float, str | bytes]] = asyncio.Queue()

        async def deliver() -> None:
            with suppress(ConnectionClosed):
                while True:
                    due, message = await late.get()
                    if due > clock():
                        await asyncio.sleep(due - clock())
                    await target.send(message)

        delivering = asyncio.create_task(deliver())
        try:
            async for message in source:
                late.put_nowait((clock() + self.latency_s, message))
        except ConnectionClosed:
            pass
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    async def _dismiss_dialogs(self) -> None:
        """The service's own client: attached to every page, it closes whatever dialog opens."""
        numbers = itertools.count(1)
        answers: set[asyncio.Task[None]] = set()
        async with connect(self.upstream, max_size=None, compression=None, ping_interval=None) as browser:

            async def send(method: str, params: dict[str, Any], session_id: str | None = None) -> None:
                message: dict[str, Any] = {"id": next(numbers), "method": method, "params": params}
                if session_id is not None:
                    message["sessionId"] = session_id
                await browser.send(json.dumps(message))

            async def dismiss(session_id: str, dialog: dict[str, Any]) -> None:
                await asyncio.sleep(self.dismiss_after_s)
                await send("Page.handleJavaScriptDialog", {"accept": False}, session_id)
                self.dismissed.append(dialog)

            attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
            await send("Target.setAutoAttach", attach)
            async for text in browser:
                message = json.loads(text)
                params = message.get("params", {})
                if message.get("method") == "Target.attachedToTarget":
                    await send("Page.enable", {}, params["sessionId"])
                    await send("Runtime.runIfWaitingForDebugger", {}, params["sessionId"])
                elif message.get("method") == "Page.javascriptDialogOpening":
                    task = asyncio.create_task(dismiss(message["sessionId"], params))
                    answers.add(task)
                    task.add_done_callback(answers.discard)
