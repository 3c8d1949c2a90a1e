"""Connecting to what a browser asks for, once it is allowed: directly, or through the proxy of ``browser.proxy``.

Rules: direct connections go to an address that was checked, never to a name. Through another proxy, that one looks
names up; ours are looked up here too where that works, and refused by what is found, but what the other proxy finds
nobody here knows.
"""

import asyncio
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import InvalidArgument
from .policy import Address, EgressPolicy
from .resolving import Resolver

CONNECT_TIMEOUT_S = 30.0
RESOLVE_TIMEOUT_S = 20.0
TUNNEL_REFUSED = (400, 403, 405, 501)
"""How HTTP proxies say that they make no tunnel to a port."""
NEXT_ADDRESS_S = 0.25
"""After so long the next address is tried beside the one before (RFC 8305)."""
DEFAULT_PORTS = {"http": 80, "socks4": 1080, "socks5": 1080}


class NotConnected(Exception):
    """``refused``: by the policy. ``net_error``: Chromium's name for it."""

    def __init__(self, reason: str, net_error: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.net_error = net_error
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Upstream:
    """Another proxy, as ``browser.proxy`` names it."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, proxy: str) -> "Upstream":
        """Raises InvalidArgument for a kind of proxy that we do not speak with."""
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        scheme = "socks5" if parts.scheme in ("socks", "socks5h") else parts.scheme
        if scheme not in ("http", "socks4", "socks5"):
            raise InvalidArgument(
                f"browser.proxy cannot be a {scheme[:20]}: proxy.", "Give it as http://host:port or socks5://host:port."
            )
        return cls(scheme, parts.hostname or "", parts.port or DEFAULT_PORTS.get(scheme, 80))


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connected, non-blocking socket. ``forwarding``: it leads to a proxy that wants whole addresses in requests."""

    socket: socket.socket
    forwarding: bool = False


async def dial(host: str, port: int, policy: EgressPolicy, resolver: Resolver, upstream: Upstream | None) -> Dialled:
    """Connect, where the policy allows it. Raises NotConnected."""
    reason = policy.of_host(host, port)
    if reason is not None:
        raise NotConnected(reason, "net::ERR_BLOCKED_BY_CLIENT", refused=True)
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            found = await resolver.addresses(host)
    except (OSError, UnicodeError, TimeoutError):
        if upstream is None:
            raise NotConnected(f"there is no such host name as {host}", "net::ERR_NAME_NOT_RESOLVED") from None
        found = ()
    refusals = [policy.of_address(address, host, port) for address in found]
    allowed = [address for address, refusal in zip(found, refusals, strict=True) if refusal is None]
    if found and not allowed:
        raise NotConnected(str(refusals[0]), "net::ERR_BLOCKED_BY_CLIENT", refused=True)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            if upstream is not None and not (allowed and all(address.is_loopback for address in allowed)):
                return await _through(upstream, host, port)
            return Dialled(await _direct(allowed, port))
    except TimeoutError:
        raise NotConnected(f"{host}:{port} does not answer", "net::ERR_CONNECTION_TIMED_OUT") from None
    except ConnectionRefusedError:
        raise NotConnected(f"{host}:{port} refuses connections", "net::ERR_CONNECTION_REFUSED") from None
    except OSError as error:
        said = error.strerror or "no way there"
        raise NotConnected(f"{host}:{port} cannot be reached: {said}", "net::ERR_ADDRESS_UNREACHABLE") from None


async def _direct(addresses: list[Address], port: int) -> socket.socket:
    from aiohappyeyeballs import start_connection

    infos = [
        (
            socket.AF_INET6 if address.version == 6 else socket.AF_INET,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (str(address), port, 0, 0) if address.version == 6 else (str(address), port),
        )
        for address in addresses
    ]
    return await start_connection(infos, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1)


async def _through(upstream: Upstream, host: str, port: int) -> Dialled:
    """By a tunnel; where an HTTP proxy allows none to this port (443 only is common), it is asked to forward."""
    from python_socks import ProxyError, ProxyType
    from python_socks.async_.asyncio import Proxy

    kind = {"socks4": ProxyType.SOCKS4, "socks5": ProxyType.SOCKS5}.get(upstream.scheme, ProxyType.HTTP)
    proxy = Proxy(kind, upstream.host, upstream.port, rdns=True)
    try:
        return Dialled(await proxy.connect(dest_host=host, dest_port=port, timeout=CONNECT_TIMEOUT_S))
    except ProxyError as error:
        if kind is ProxyType.HTTP and port != 443 and error.error_code in TUNNEL_REFUSED:
            return Dialled(await _to_host(upstream), forwarding=True)
        raise NotConnected(
            f"browser.proxy did not connect to {host}:{port}: {error}", "net::ERR_TUNNEL_CONNECTION_FAILED"
        ) from None


async def _to_host(upstream: Upstream) -> socket.socket:
    from aiohappyeyeballs import start_connection

    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(upstream.host, upstream.port, type=socket.SOCK_STREAM)
    return await start_connection(infos, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1)


def forwarded(head: bytes, host: str, port: int) -> bytes:
    """The head of a request as a proxy takes it: with the whole address, and for this one request.

    Source: https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
    """
    first, *lines = head.split(b"\r\n")
    method, _, rest = first.partition(b" ")
    where = (f"[{host}]" if ":" in host else host) + ("" if port == 80 else f":{port}")
    kept = [line for line in lines if line.split(b":")[0].strip().lower() not in (b"connection", b"proxy-connection")]
    target = rest if not rest.startswith(b"/") else f"http://{where}".encode() + rest
    return b"\r\n".join([method + b" " + target, b"Connection: close", *kept])
