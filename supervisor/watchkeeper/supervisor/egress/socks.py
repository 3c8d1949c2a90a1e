"""SOCKS5 as browsers speak it: no authentication, CONNECT only. Sans-IO: bytes in, what they ask for out.

Source: https://www.rfc-editor.org/rfc/rfc1928
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

VERSION = 5
NO_AUTHENTICATION = b"\x05\x00"
NO_METHOD = b"\x05\xff"
GRANTED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
NOT_REACHED = b"\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00"
"""Host unreachable, for everything: other codes make Chromium hold the proxy itself for broken."""
NOT_SUPPORTED = b"\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"
_LONGEST = 2 + 255 + 4 + 1 + 255 + 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the client wants to be connected to."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that no browser says; ``reply`` is the last thing it gets."""

    reply: bytes


@dataclass(slots=True)
class Handshake:
    """Feed it what arrives; ``rest`` is what came after the handshake, once that is over."""

    rest: bytes = b""
    _seen: bytearray = field(default_factory=bytearray)
    _step: Literal["greeting", "request", "over"] = "greeting"

    def feed(self, data: bytes) -> tuple[bytes, Wanted | Rejected | None]:
        """What to send now, and what is wanted once it is known."""
        if len(self._seen) + len(data) > _LONGEST and self._step == "greeting":
            return b"", Rejected(NO_METHOD)
        self._seen += data
        reply = b""
        if self._step == "greeting":
            if self._seen and self._seen[0] != VERSION:
                return b"", Rejected(b"")
            if len(self._seen) < 2 or len(self._seen) < 2 + self._seen[1]:
                return b"", None
            methods = self._seen[2 : 2 + self._seen[1]]
            del self._seen[: 2 + len(methods)]
            if 0 not in methods:
                return b"", Rejected(NO_METHOD)
            self._step, reply = "request", NO_AUTHENTICATION
        return reply, self._request()

    def _request(self) -> Wanted | Rejected | None:
        seen = self._seen
        if self._step != "request" or len(seen) < 5:
            return None
        version, command, _, kind = seen[:4]
        if version != VERSION or command != 1:
            return Rejected(NOT_SUPPORTED)
        start, length = {1: (4, 4), 3: (5, seen[4]), 4: (4, 16)}.get(kind, (0, 0))
        if not length:
            return Rejected(NOT_SUPPORTED)
        end = start + length
        if len(seen) < end + 2:
            return None
        raw = bytes(seen[start:end])
        try:
            host = str(IPv4Address(raw)) if kind == 1 else str(IPv6Address(raw)) if kind == 4 else raw.decode("ascii")
        except UnicodeDecodeError:
            return Rejected(NOT_REACHED)
        port = int.from_bytes(seen[end : end + 2], "big")
        self.rest, self._step = bytes(seen[end + 2 :]), "over"
        seen.clear()
        return Wanted(host, port)
