"""MCP over HTTP: streamable HTTP at ``/mcp`` and, for older clients, SSE at ``/sse``, in one process.

Rules: Host and Origin are checked first, then the token; only then a message is read, up to ``server.max_message_mb``.
A session belongs to whoever opened it. When the server stops, calls that run are answered first; open streams are cut.

Sources: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#streamable-http,
https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
"""

import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.lowlevel.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..dispatch import Dispatcher
from ..errors import ToolError
from ..settings import Settings
from .access import KnownHostsOnly, Tokens, check_tokens, security
from .event_store import ResumableSessions
from .health import STATUS, Health, status_endpoint
from .limits import Buckets, RateLimited

MAX_SESSIONS = 1_000
ANSWERS_OUT_S = 0.3
CUT_STREAMS_AFTER_S = 1


class OpenRequests:
    """All requests that are being served, streams included; ``end`` ends them all in good order."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._scopes: set[anyio.CancelScope] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = ended = False

        async def watched(message: Message) -> None:
            nonlocal begun, ended
            begun = begun or message["type"] == "http.response.start"
            ended = ended or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(message)

        with anyio.CancelScope() as ours:
            self._scopes.add(ours)
            try:
                await self._app(scope, receive, watched)
            finally:
                self._scopes.discard(ours)
        if ours.cancelled_caught and not ended:
            if not begun:
                await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def end(self) -> None:
        for scope in tuple(self._scopes):
            scope.cancel()


def make_app(server: Server[Any], settings: Settings, dispatcher: Dispatcher | None = None) -> Starlette:
    """The ASGI application; with a dispatcher it tells of its health and status.

    Raises: ToolError where its settings would let anybody in.
    """
    tokens = check_tokens(settings.server)
    limit = settings.server.max_message_mb << 20
    known = security(settings.server)
    sessions = ResumableSessions(
        server, security_settings=known, max_request_body_size=limit, max_sessions=MAX_SESSIONS
    )
    sse = SseServerTransport("/messages/", security_settings=known, max_request_body_size=limit)

    async def open_sse(scope: Scope, receive: Receive, send: Send) -> None:
        async with sse.connect_sse(scope, receive, send) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    def guarded(app: ASGIApp) -> ASGIApp:
        return RequireAuthMiddleware(app, []) if tokens else app

    middleware = [Middleware(KnownHostsOnly, settings=known)]
    told = []
    if dispatcher is not None:
        middleware.append(Middleware(Health, dispatcher=dispatcher))
        told.append(Route(STATUS, endpoint=guarded(_Asgi(status_endpoint(dispatcher))), methods=["GET"]))
    if settings.server.allowed_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.server.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["Mcp-Session-Id"],
            )
        )
    if tokens:
        middleware.append(Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(Tokens(tokens))))
        middleware.append(Middleware(AuthContextMiddleware))

    # Last, so that it knows the holder of a token, and before anything is read.
    middleware.append(Middleware(RateLimited, buckets=Buckets(settings.server.max_requests_per_s)))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    return Starlette(
        routes=[
            Route("/mcp", endpoint=guarded(StreamableHTTPASGIApp(sessions))),
            Route("/sse", endpoint=guarded(_Asgi(open_sse)), methods=["GET"]),
            Mount("/messages/", app=guarded(sse.handle_post_message)),
            *told,
        ],
        middleware=middleware,
        lifespan=lifespan,
    )


async def serve_http(server: Server[Any], dispatcher: Dispatcher, settings: Settings, stop: anyio.Event) -> None:
    """Listen until ``stop`` is set and the calls that run are answered.

    Raises: ToolError where it cannot listen.
    """
    app = OpenRequests(make_app(server, settings, dispatcher))
    listening = _listen(settings.server.host, settings.server.port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=CUT_STREAMS_AFTER_S,
    )
    web = _Uvicorn(config)

    async def until_stopped() -> None:
        await stop.wait()
        await dispatcher.idle()
        web.should_exit = True  # no more connections; answers that are on their way get out before the rest is cut
        await anyio.sleep(ANSWERS_OUT_S)
        app.end()

    host, port = listening.getsockname()[:2]
    at = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(f"watchkeeper: listening on {at}/mcp, and {at}/sse for older clients", file=sys.stderr, flush=True)  # noqa: T201
    async with anyio.create_task_group() as group:
        group.start_soon(until_stopped)
        try:
            await web.serve(sockets=[listening])
        finally:
            listening.close()
        group.cancel_scope.cancel()


class _Uvicorn(uvicorn.Server):
    """Signals are not its business: lifetime.py has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Asgi:
    """A route's endpoint that is an application: Starlette takes functions for something else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ToolError(
            "cannot_listen",
            f"The server cannot listen on {host} port {port}: {error.strerror or error}.",
            "Choose another server.port (0: any free one) or server.host.",
        ) from None
    listening.setblocking(False)
    return listening
