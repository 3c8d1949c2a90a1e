"""Which addresses may be opened, and where browsers that we start may connect to.

Rules: http(s), ``about:blank`` and ``data:`` may, other schemes may not (``file:`` by a setting); link-local and
metadata addresses never; private ones by a setting. A blocked host wins over an allowed one. The reason for a refusal
names the setting. Of an address that is opened the name is checked here; what it stands for, when it is connected to.
"""

import re

from ..settings import Settings
from .hosts import (
    LOOPBACK_NAMES,
    METADATA_NAMES,
    Address,
    as_number,
    canonical,
    is_loopback_host,
    is_metadata,
    is_private,
    matches,
)

DEFAULT_PORTS = {"http:": 80, "https:": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"[^/?#]*:\d+(?:[/?#]|$)")
_DROPPED = "".join(map(chr, range(33)))
"""Browsers drop blanks and controls around an address, and tabs and line ends anywhere in it."""

__all__ = ["UrlPolicy", "is_loopback_host", "matches"]


class UrlPolicy:
    """Call it with an address: None, or why it must not be opened. It also is the supervisor's ``EgressPolicy``."""

    def __init__(self, settings: Settings) -> None:
        browser = settings.browser
        self.allowed = browser.allowed_hosts
        self.blocked = browser.blocked_hosts
        self.files = browser.allow_file_urls
        self.private = browser.allow_private_network
        if self.private is None:
            self.private = settings.server.transport == "stdio" or is_loopback_host(settings.server.host)

    def __call__(self, url: str) -> str | None:
        plain = re.sub(r"[\t\r\n]", "", url.strip(_DROPPED))
        lowered = plain.lower()
        if lowered in ("", "about:blank") or lowered.startswith(("about:blank#", "about:blank?", "data:")):
            return None if lowered else "The address is empty."
        if not _SCHEME.match(plain) or _HOST_AND_PORT.match(plain):  # localhost:3000 has no scheme
            return f"{_shown(url)} has no scheme; write http:// or https:// before it."
        scheme = lowered.partition(":")[0]
        if scheme == "blob":
            return self(plain[len("blob:") :])
        if scheme == "file":
            return None if self.files else "file: addresses are refused; browser.allow_file_urls would allow them."
        if f"{scheme}:" not in DEFAULT_PORTS:
            return f"Addresses with the scheme {scheme[:30]}: are refused; open http: or https: ones."
        from ada_url import URL

        try:
            parsed = URL(plain)
        except (ValueError, UnicodeError):
            return f"{_shown(url)} is not a valid address."
        port = int(parsed.port) if parsed.port else DEFAULT_PORTS[parsed.protocol]
        return self.of_host(parsed.hostname, port)

    @property
    def checks_loopback(self) -> bool:
        return bool(self.allowed or self.blocked or not self.private)

    def of_host(self, host: str, port: int) -> str | None:
        host = canonical(host)
        if not host:
            return "The address has no host that could be one."
        number = as_number(host)
        if host in METADATA_NAMES or (number is not None and is_metadata(number)):
            return f"{host} is a link-local or metadata address; those are always refused."
        if matches(self.blocked, host, port):
            return f"{host} is in browser.blocked_hosts."
        if self.allowed and not matches(self.allowed, host, port):
            return f"{host} is not in browser.allowed_hosts."
        if not self.private and (_names_loopback(host) or (number is not None and is_private(number))):
            return f"{host} is a private address; browser.allow_private_network would allow it."
        return None

    def of_address(self, address: Address, host: str, port: int) -> str | None:
        """``address``: what a host that ``of_host`` allows stands for."""
        what = f"{host} is {address}" if host != str(address) else host
        if is_metadata(address):
            return f"{what}, a link-local or metadata address; those are always refused."
        if matches(self.blocked, str(address), port):
            return f"{what}, which is in browser.blocked_hosts."
        if not self.private and is_private(address):
            return f"{what}, a private address; browser.allow_private_network would allow it."
        return None


def _names_loopback(host: str) -> bool:
    return host in LOOPBACK_NAMES or host.endswith(".localhost")


def _shown(url: str) -> str:
    return repr(url[:100])
