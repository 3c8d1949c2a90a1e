"""Which addresses may be opened.

Rules: http(s), ``about:blank`` and ``data:`` may, other schemes may not (``file:`` by a setting); link-local and
metadata addresses never; private ones by a setting. A blocked host wins over an allowed one. The reason for a refusal
names the setting. Decided from the address alone: names are not looked up here.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from .settings import Settings

LOOPBACK_NAMES = ("localhost", "ip6-localhost")
METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "instance-data.ec2.internal")
METADATA_ADDRESSES = ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


class UrlPolicy:
    """Call it with an address: None, or why it must not be opened."""

    def __init__(self, settings: Settings) -> None:
        browser = settings.browser
        self.allowed = browser.allowed_hosts
        self.blocked = browser.blocked_hosts
        self.files = browser.allow_file_urls
        self.private = browser.allow_private_network
        if self.private is None:
            self.private = settings.server.transport == "stdio" or is_loopback_host(settings.server.host)

    def __call__(self, url: str) -> str | None:
        # Browsers drop surrounding blanks, and tabs and line ends anywhere, before they read an address.
        plain = re.sub(r"[\t\r\n]", "", url.strip("".join(map(chr, range(33)))))
        lowered = plain.lower()
        if lowered in ("", "about:blank") or lowered.startswith(("about:blank#", "data:")):
            return None if lowered else "The address is empty."
        if not _SCHEME.match(plain) or re.match(r"[^/?#]*:\d+(?:[/?#]|$)", plain):  # localhost:3000 is no scheme
            return f"{url[:100]!r} has no scheme; write http:// or https:// before it."
        try:
            parts = urlsplit(plain.replace("\\", "/"))
            port = parts.port
        except ValueError:
            return f"{url[:100]!r} is not a valid address."
        if parts.scheme == "blob":
            return self(plain[len("blob:") :])
        if parts.scheme == "file":
            return None if self.files else "file: addresses are refused; browser.allow_file_urls would allow them."
        if parts.scheme not in DEFAULT_PORTS:
            return f"Addresses with the scheme {parts.scheme[:30]}: are refused; open http: or https: ones."
        return self._of_host(parts, port or DEFAULT_PORTS[parts.scheme])

    def _of_host(self, parts: SplitResult, port: int) -> str | None:
        host = (parts.hostname or "").rstrip(".").lower()
        if not host:
            return "The address has no host."
        number = as_number(host)
        if host in METADATA_NAMES or (number is not None and _is_metadata(number)):
            return f"{host} is a link-local or metadata address; those are always refused."
        if matches(self.blocked, host, port):
            return f"{host} is in browser.blocked_hosts."
        if self.allowed and not matches(self.allowed, host, port):
            return f"{host} is not in browser.allowed_hosts."
        private = is_loopback_host(host) or (number is not None and not number.is_global)
        if private and not self.private:
            return f"{host} is a private address; browser.allow_private_network would allow it."
        return None


def matches(patterns: Iterable[str], host: str, port: int) -> bool:
    """Whether a pattern of the settings stands for this host: ``a.test``, ``*.a.test`` (below it), ``a.test:8080``."""
    for pattern in patterns:
        name, _, wanted = pattern.lower().rpartition(":") if re.search(r":\d+$", pattern) else (pattern.lower(), "", "")
        name = name.rstrip(".").strip("[]")
        if wanted and int(wanted) != port:
            continue
        if name in ("*", host) or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


def as_number(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is in any notation that browsers read: ``0x7f.1``, ``2130706433``, ``::ffff:1.2.3.4``."""
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return _loose_ipv4(host)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def is_loopback_host(host: str) -> bool:
    """``localhost``, names below it, and loopback numbers; the unspecified address reaches this machine too."""
    host = host.rstrip(".").lower().strip("[]")
    if host in LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    number = as_number(host)
    return number is not None and number.is_loopback


def _loose_ipv4(host: str) -> IPv4Address | None:
    # https://url.spec.whatwg.org/#concept-ipv4-parser
    parts = host.split(".")
    if not 1 <= len(parts) <= 4:
        return None
    numbers = []
    for part in parts:
        if re.fullmatch(r"0x[0-9a-f]*", part, re.IGNORECASE):
            numbers.append(int(part[2:] or "0", 16))
        elif re.fullmatch(r"0[0-7]+", part):
            numbers.append(int(part, 8))
        elif re.fullmatch(r"\d+", part):
            numbers.append(int(part))
        else:
            return None
    *heads, last = numbers
    if any(head > 255 for head in heads) or last >= 256 ** (5 - len(numbers)):
        return None
    return IPv4Address(sum(head << (8 * (3 - at)) for at, head in enumerate(heads)) + last)


def _is_metadata(number: IPv4Address | IPv6Address) -> bool:
    return number.is_link_local or str(number) in METADATA_ADDRESSES
