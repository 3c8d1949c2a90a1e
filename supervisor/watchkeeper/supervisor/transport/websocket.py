"""Speak to a browser, or to a service in front of one, over a WebSocket.

Rules: nothing of an address but scheme, host and port is ever shown or logged. A connection on which nothing moves is
pinged and, when nothing moves still, given up within five seconds. Whatever arrives counts as life, and so does data
that leaves: a browser that floods us, or that takes a long request, is not dead; it also gets time to digest what it
took (Chromium was measured silent for 4 s after a request of 90 MB). Silence is counted in turns of our own event loop,
so a pause of ours (a suspended machine, a blocked loop) is not taken for silence of theirs.

Source: https://datatracker.ietf.org/doc/html/rfc6455#section-5.5.2 (ping, pong)
"""

import asyncio
import logging
import ssl
from collections import deque
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
    ProxyError,
    WebSocketException,
)
from websockets.protocol import State

from ..address import is_loopback, shown
from ..errors import EndpointUnreachable, TransportClosed
from .limits import MESSAGE_CAP, encoded

TICK_S = 0.5
PING_AFTER_TICKS = 2
DEAD_AFTER_TICKS = 8
DIGESTS_PER_TICK = 5_000_000
"""Bytes of requests for which a browser may be silent for a tick. Ordinary requests do not count up to one."""
CLOSE_WITHIN_S = 1.0
UNREAD_MESSAGES = 1024
"""Messages that nobody took yet; above it reading stops until they are taken."""

# The library logs request lines and messages at debug level: tokens and page contents.
_logger = logging.getLogger("watchkeeper.supervisor.websocket")
_logger.setLevel(logging.WARNING)


class _Connection(ClientConnection):
    """Counts arrivals: any of them is a sign of life."""

    arrivals = 0

    def data_received(self, data: bytes) -> None:
        self.arrivals += 1
        super().data_received(data)


class WebSocketTransport:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._end: str | None = None
        self._closing = False
        self._outgoing: deque[bytes] = deque()
        self._backlog = 0
        self._undigested = 0
        self._something_to_send = asyncio.Event()
        self._tasks = (asyncio.create_task(self._write()), asyncio.create_task(self._watch()))

    @classmethod
    async def connect(cls, url: str, timeout: float) -> Self:
        """Open a ``ws://`` or ``wss://`` address as it is given, within ``timeout`` seconds.

        Raises: EndpointUnreachable.
        """
        try:
            connection = await connect(
                url,
                create_connection=_Connection,
                open_timeout=timeout,
                close_timeout=CLOSE_WITHIN_S,
                ping_interval=None,
                compression=None,
                max_size=MESSAGE_CAP,
                max_queue=UNREAD_MESSAGES,
                logger=_logger,
                proxy=None if is_loopback(urlsplit(url).hostname or "") else True,
            )
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            # Not chained: the library's messages contain the address with everything in it.
            raise _unreachable(url, error, timeout) from None
        assert isinstance(connection, _Connection)
        return cls(connection)

    async def receive(self) -> bytes:
        try:
            return await self._connection.recv(decode=False)
        except ConnectionClosed as closed:
            raise TransportClosed(self._ended(closed)) from None

    def send(self, message: str) -> None:
        if self._is_closed:
            raise TransportClosed(self._ended(self._connection.protocol.close_exc))
        if self._closing or self._connection.state is not State.OPEN:
            raise TransportClosed(self._end or "the connection is closing")
        data = encoded(message, self._backlog)
        self._outgoing.append(data)
        self._backlog += len(data)
        self._something_to_send.set()

    async def close(self) -> None:
        self._closing = True
        self._something_to_send.set()
        await asyncio.wait(self._tasks[:1], timeout=CLOSE_WITHIN_S)  # what was sent before closing goes out
        self._end = self._end or "the connection was closed on our side"
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._connection.wait_closed()

    @property
    def _is_closed(self) -> bool:
        return self._connection.state is State.CLOSED

    async def _write(self) -> None:
        with suppress(ConnectionClosed):
            while not self._closing:
                await self._something_to_send.wait()
                self._something_to_send.clear()
                while self._outgoing:
                    data = self._outgoing.popleft()
                    await self._connection.send(data, text=True)
                    self._backlog -= len(data)
                    self._undigested += len(data)

    async def _watch(self) -> None:
        transport = self._connection.transport
        arrivals, unsent, silent = -1, 0, 0
        while not self._is_closed:
            await asyncio.sleep(TICK_S)
            was_arrivals, was_unsent = arrivals, unsent
            arrivals, unsent = self._connection.arrivals, transport.get_write_buffer_size()
            reading_stopped = not transport.is_reading()  # because nobody takes messages: they may well be talking
            digesting = self._undigested >= DIGESTS_PER_TICK
            self._undigested = max(0, self._undigested - DIGESTS_PER_TICK)
            if arrivals != was_arrivals or unsent < was_unsent or reading_stopped or digesting:
                silent = 0
                continue
            silent += 1
            if silent == PING_AFTER_TICKS and unsent == 0:
                with suppress(ConnectionClosed):
                    await self._connection.ping()
            elif silent >= DEAD_AFTER_TICKS:
                self._end = f"nothing came from the other side for {DEAD_AFTER_TICKS * TICK_S:g} s, no answer to a ping"
                transport.abort()
                return

    def _ended(self, closed: ConnectionClosed | None) -> str:
        if self._end is None:
            self._end = _reason(closed)
        return self._end


def _reason(closed: ConnectionClosed | None) -> str:
    if closed is not None and closed.rcvd is not None:
        text = f": {closed.rcvd.reason[:100]!r}" if closed.rcvd.reason else ""
        return f"the other side closed the connection (code {closed.rcvd.code}{text})"
    if closed is not None and closed.sent is not None and closed.sent.reason:
        return f"the connection was given up (code {closed.sent.code}: {closed.sent.reason[:100]!r})"
    return "the connection broke off"


def _unreachable(url: str, error: Exception, timeout: float) -> EndpointUnreachable:
    place = shown(url)
    check = "Check browser.cdp_url, and that the browser runs with remote debugging on."
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        if status in (401, 403):
            hint = "Check the token, key or password in browser.cdp_url."
        elif status in (404, 410):
            hint = (
                "The address is of a browser or a session that has ended, or lacks its path: take a new one, or give"
                " the http:// address of the debugging port, from which the rest is looked up."
            )
        else:
            hint = check
        return EndpointUnreachable(f"{place} refused the connection with HTTP status {status}.", hint, status=status)
    if isinstance(error, TimeoutError):
        return EndpointUnreachable(f"{place} did not answer within {timeout:g} s.", check)
    if isinstance(error, ssl.SSLError):
        return EndpointUnreachable(
            f"{place}: no secure connection ({error.reason or 'TLS failed'}).",
            "Check the certificate, or whether the address should begin with ws:// or http://.",
        )
    if isinstance(error, InvalidURI | ValueError):
        return EndpointUnreachable(
            f"{place} is not an address that can be connected to.",
            "Give browser.cdp_url as http://host:port, ws://… or wss://….",
        )
    if isinstance(error, InvalidProxy | ProxyError):
        return EndpointUnreachable(
            f"The proxy between us and {place} does not let us through.", "Check HTTPS_PROXY and NO_PROXY."
        )
    if isinstance(error, InvalidHandshake | EOFError):
        return EndpointUnreachable(f"{place} answers, but speaks no WebSocket.", check)
    if isinstance(error, ConnectionRefusedError):
        return EndpointUnreachable(f"Nothing listens at {place}.", check)
    said = getattr(error, "strerror", None) or type(error).__name__
    return EndpointUnreachable(f"{place} cannot be reached ({said}).", check)
