"""Attach to a browser that somebody else runs.

Rules: ``ws://`` and ``wss://`` addresses are used as they are given. ``http://`` and ``https://`` ones are asked for
theirs at ``/json/version``; the browser writes its answer from where it sits, so an address of loopback in it, or of
the host that we asked, is reached by the way that we came. Tokens and credentials stay with the host they are for.

Source: https://chromedevtools.github.io/devtools-protocol/#endpoints
"""

import asyncio
import json
import socket
import time
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit, urlunsplit

from ..address import is_ip, is_loopback, shown
from ..errors import EndpointUnreachable
from ..transport import WebSocketTransport
from . import http
from .connected import Connected, ask_version_of
from .endpoint import CdpEndpoint

HINT = (
    "Check browser.cdp_url, and that the browser was started with --remote-debugging-port and a --user-data-dir of its"
    " own (Chrome refuses remote debugging on its default profile since version 136)."
)


async def connect_cdp(endpoint: CdpEndpoint, timeout: float) -> Connected:
    """Raises: EndpointUnreachable."""
    deadline = time.monotonic() + timeout
    try:
        return await _connect(endpoint.url, timeout)
    except EndpointUnreachable as error:
        # Chrome refuses a Host that is neither an address nor localhost (DNS rebinding), as in containers' names.
        by_address = await _by_address(endpoint.url) if error.status == 500 else None
        if by_address is None:
            raise
        return await _connect(by_address, max(0.1, deadline - time.monotonic()))


async def _connect(url: str, timeout: float) -> Connected:
    deadline = time.monotonic() + timeout
    place = shown(url)
    if urlsplit(url).scheme in ("http", "https"):
        url = await discover(url, timeout)
    transport = await WebSocketTransport.connect(url, max(0.1, deadline - time.monotonic()))
    product = await ask_version_of(transport, place, max(0.1, deadline - time.monotonic()))
    return Connected(transport, product)


async def discover(url: str, timeout: float) -> str:
    """The WebSocket address of the browser whose debugging port this is.

    Raises: EndpointUnreachable.
    """
    asked = urlsplit(url)
    reply = await http.request(
        urlunsplit(asked._replace(path=asked.path.rstrip("/") + "/json/version", fragment="")),
        hint=HINT,
        timeout=timeout,
    )
    if reply.status != 200:
        hint = "Check the token, key or password in browser.cdp_url." if reply.status in (401, 403) else HINT
        raise EndpointUnreachable(
            f"{shown(url)} answers, but not as a browser's debugging port (HTTP status {reply.status}).",
            hint,
            status=reply.status,
        )
    try:
        found = json.loads(reply.body)["webSocketDebuggerUrl"]
        answered = urlsplit(found)
        if answered.scheme not in ("ws", "wss") or not answered.hostname:
            raise ValueError
        return reachable(asked, answered)
    except (ValueError, KeyError, TypeError):
        raise EndpointUnreachable(
            f"{shown(url)} answers, but names no browser (no webSocketDebuggerUrl at /json/version).", HINT
        ) from None


def reachable(asked: SplitResult, answered: SplitResult) -> str:
    """The answered address as it is reached from here."""
    host = answered.hostname or ""
    inside = is_loopback(host) or (is_ip(host) and ip_address(host).is_unspecified)
    if not inside and host != asked.hostname:
        return urlunsplit(answered)
    return urlunsplit(
        answered._replace(
            scheme="wss" if asked.scheme == "https" else "ws",
            netloc=asked.netloc,
            query=answered.query or asked.query,
        )
    )


async def _by_address(url: str) -> str | None:
    """The same address with the host's number in place of its name; None where that makes no difference."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "ws") or is_ip(host) or is_loopback(host):
        return None
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError:
        return None
    number = str(infos[0][4][0])
    number = f"[{number}]" if ":" in number else number
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}{number}{f':{parts.port}' if parts.port else ''}"))
