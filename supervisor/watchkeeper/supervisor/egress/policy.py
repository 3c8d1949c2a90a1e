"""What the gate asks, and what it tells."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, Protocol

Address = IPv4Address | IPv6Address


class EgressPolicy(Protocol):
    """Where browsers may connect to. Each method gives the reason for a refusal, or None."""

    @property
    def checks_loopback(self) -> bool:
        """Whether anything on loopback may be refused; where not, the browser goes there without the gate."""

    def of_host(self, host: str, port: int) -> str | None:
        """``host``: a name or a number, as the browser asks for it."""

    def of_address(self, address: Address, host: str, port: int) -> str | None:
        """``address``: one of those that ``host`` stands for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A connection that did not come about. ``net_error``: Chromium's name for what happened; ``at``: monotonic s."""

    kind: Literal["refused", "failed"]
    host: str
    port: int
    reason: str
    net_error: str
    at: float


@dataclass(frozen=True, slots=True)
class ProxyRoute:
    """How a browser is told to use the gate: Chromium's ``--proxy-server`` and ``--proxy-bypass-list``."""

    server: str
    bypass: str
    relayed_only: bool = True
    """Whether UDP, which passes by proxies (WebRTC), has to stay off."""
