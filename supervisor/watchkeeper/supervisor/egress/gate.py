"""The gate itself: a SOCKS5 listener on loopback, and the connections through it.

Rules: every wait has a limit, every buffer a cap: a side that reads slowly slows the other one down. Outcomes are kept
in a short ring for the one who has to explain them, and each refusal is told to the gate's owner at once.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable

from .dialling import Dialled, NotConnected, Upstream, dial, forwarded
from .policy import EgressPolicy, Outcome, ProxyRoute
from .resolving import Resolver
from .socks import GRANTED, NOT_REACHED, Handshake, Rejected, Wanted

HANDSHAKE_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 512
BUFFER = 256 * 1024
"""Bytes that may wait for a slow reader; beyond it the other side is not read."""
OUTCOMES = 100
NO_LOOPBACK = "<-loopback>"
"""Takes back Chromium's own exceptions: loopback, and link-local addresses with it."""
LOOPBACK_PAST = f"{NO_LOOPBACK};localhost;*.localhost;127.0.0.0/8;[::1]"


class _Nobody:
    """For what belongs to no task: the browser's own services."""

    checks_loopback = True

    def of_host(self, host: str, port: int) -> str:
        return "the browser itself has nothing to ask of the network"

    def of_address(self, address: object, host: str, port: int) -> None:
        return None


BROWSERS_OWN: EgressPolicy = _Nobody()
"""Refuses everything: for the part of a browser that no task works in."""


class Gate:
    """``on_outcome`` hears of what was refused or failed. Open it before use; ``close`` ends all connections."""

    def __init__(
        self,
        policy: EgressPolicy,
        resolver: Resolver,
        *,
        upstream: str | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.policy = policy
        self.outcomes: deque[Outcome] = deque(maxlen=OUTCOMES)
        self.granted = 0
        """How many connections came about."""
        self._resolver = resolver
        self._upstream = Upstream.of(upstream) if upstream else None
        self._on_outcome = on_outcome
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._clients: set[_Client] = set()
        self._port = 0

    @property
    def route(self) -> ProxyRoute:
        bypass = NO_LOOPBACK if self.policy.checks_loopback else LOOPBACK_PAST
        return ProxyRoute(f"socks5://127.0.0.1:{self._port}", bypass, relayed_only=self.policy.checks_loopback)

    async def open(self) -> "Gate":
        """Listen on a port that the system chooses. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def explain(self, since: float) -> Outcome | None:
        """The last thing that went wrong since then (``time.monotonic``), refusals before failures."""
        late = [outcome for outcome in self.outcomes if outcome.at >= since]
        return next((o for o in reversed(late) if o.kind == "refused"), late[-1] if late else None)

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        tasks = [client.end() for client in tuple(self._clients)]
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        self._server = None

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._clients)

    # --- for its connections ------------------------------------------------------------------------------------------

    def admit(self, client: "_Client") -> bool:
        if len(self._clients) >= MAX_CONNECTIONS:
            return False
        self._clients.add(client)
        return True

    def gone(self, client: "_Client") -> None:
        self._clients.discard(client)

    async def reach(self, wanted: Wanted) -> Dialled | None:
        """Connect as asked, or record why not."""
        try:
            made = await dial(wanted.host, wanted.port, self.policy, self._resolver, self._upstream)
        except NotConnected as error:
            outcome = Outcome(
                "refused" if error.refused else "failed",
                wanted.host,
                wanted.port,
                error.reason,
                error.net_error,
                self._clock(),
            )
            self.outcomes.append(outcome)
            if self._on_outcome is not None:
                self._on_outcome(outcome)
            return None
        self.granted += 1
        return made


class _Side(asyncio.Protocol):
    """One side of a connection; what it gets goes to ``peer``."""

    transport: asyncio.Transport
    peer: "_Side | None" = None
    closed = False
    ended = False
    """It has said all that it has to say."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(BUFFER)

    def data_received(self, data: bytes) -> None:
        if self.peer is not None and not self.peer.closed:
            self.peer.transport.write(data)

    def pause_writing(self) -> None:
        if self.peer is not None and not self.peer.closed:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None and not self.peer.closed:
            self.peer.transport.resume_reading()

    def eof_received(self) -> bool:
        """The other side may still have much to say; once both have said all, the connection is over."""
        self.ended = True
        if self.peer is None or self.peer.closed or self.peer.ended:
            return False
        with contextlib.suppress(OSError):
            self.peer.transport.write_eof()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self.peer is not None and not self.peer.closed:
            self.peer.transport.close()


class _Client(_Side):
    """The browser's side, from its first byte."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._handshake: Handshake | None = Handshake()
        self._dialling: asyncio.Task[None] | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._forward: Wanted | None = None
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._gate.admit(self):
            self.transport.abort()
            return
        self._limit = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._forward is not None:
            self._send_head(data, self._forward)
            return
        if self._handshake is None:
            super().data_received(data)
            return
        reply, wanted = self._handshake.feed(data)
        if reply:
            self.transport.write(reply)
        if isinstance(wanted, Rejected):
            self.transport.write(wanted.reply)
            self.transport.close()
        elif wanted is not None:
            early, self._handshake = self._handshake.rest, None
            self._no_limit()
            self.transport.pause_reading()
            self._dialling = asyncio.create_task(self._connect(wanted, early), name="watchkeeper-egress")

    def _send_head(self, data: bytes, wanted: Wanted) -> None:
        """The first request is rewritten for the proxy behind; what follows its head goes as it is."""
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if end:
            self._forward, self._head = None, b""
            super().data_received(forwarded(head, wanted.host, wanted.port) + end + rest)
        elif len(self._head) > BUFFER:
            self.transport.abort()

    async def _connect(self, wanted: Wanted, early: bytes) -> None:
        made = await self._gate.reach(wanted)
        if made is None:
            if not self.closed:
                self.transport.write(NOT_REACHED)
                self.transport.close()
            return
        if made.forwarding:
            self._forward = wanted
        try:
            await asyncio.get_running_loop().create_connection(lambda: _Server(self, early), sock=made.socket)
        except BaseException:
            made.socket.close()
            raise

    def connected(self, server: "_Server", early: bytes) -> None:
        if self.closed:
            server.transport.abort()
            return
        self.peer = server
        self.transport.write(GRANTED)
        if early:
            self.data_received(early)
        self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._no_limit()
        self._gate.gone(self)
        if self._dialling is not None and not self._dialling.done():
            self._dialling.cancel()
        super().connection_lost(error)

    def end(self) -> asyncio.Task[None] | None:
        """Cut both sides; gives what still runs."""
        if self.peer is not None and not self.peer.closed:
            self.peer.transport.abort()
        self.transport.abort()
        if self._dialling is not None:
            self._dialling.cancel()
        return self._dialling

    def _no_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


class _Server(_Side):
    """The side of what the browser asked for; nothing of it is passed on before the browser knows of it."""

    def __init__(self, client: _Client, early: bytes) -> None:
        self.peer = self._client = client
        self._early = early

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._client.connected(self, self._early)
