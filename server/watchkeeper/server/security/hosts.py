"""Hosts in every notation that browsers read, and patterns that stand for them.

Rules: pure; nothing is looked up. Addresses are read by a parser of the standard that browsers follow, so that what is
checked here and what a browser makes of the same text cannot differ.

Sources: https://url.spec.whatwg.org/#host-parsing, https://www.rfc-editor.org/rfc/rfc6052 (NAT64)
"""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
LOOPBACK_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")
METADATA_NAMES = (
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
)
METADATA_ADDRESSES = frozenset(
    map(ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = IPv6Network("::/96")
_PORT = re.compile(r":\d{1,5}$")


def canonical(host: str) -> str:
    """A host as browsers write it: lower case, IDN as punycode, numbers in their one form, without the last dot.

    Empty where it cannot be a host.
    """
    from ada_url import URL

    host = host.strip()
    bare = host.strip("[]").partition("%")[0]
    try:
        written = f"[{IPv6Address(bare)}]" if ":" in bare else host
        return URL(f"http://{written}/").hostname.strip("[]").rstrip(".")
    except ValueError:
        return ""


def as_number(host: str) -> Address | None:
    """The address that a canonical host is; None where it is a name."""
    try:
        found = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def reached(address: Address) -> Iterator[Address]:
    """The address, and what is reached through it where it carries another one (mapped, NAT64, 6to4, Teredo)."""
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield address.teredo[1]
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def is_metadata(address: Address) -> bool:
    """Link-local, or where clouds hand out credentials."""
    return any(part.is_link_local or part in METADATA_ADDRESSES for part in reached(address))


def is_private(address: Address) -> bool:
    """Anything that the public internet does not lead to: loopback, private, shared, reserved, multicast."""
    parts = list(reached(address))
    inner = parts[1:] or parts  # what carries another address is as public as that one
    local = isinstance(address, IPv6Address) and address.is_site_local
    return local or any(not part.is_global or part.is_multicast for part in inner)


def is_loopback_host(host: str) -> bool:
    """``localhost``, names below it, and loopback numbers in any notation."""
    host = canonical(host)
    if host in LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    number = as_number(host)
    return number is not None and number.is_loopback


def matches(patterns: Iterable[str], host: str, port: int) -> bool:
    """Whether a pattern of the settings stands for this host: ``a.test``, ``*.a.test`` (below it), ``a.test:8080``."""
    return any(_matches(pattern.strip().lower(), host, port) for pattern in patterns)


def _matches(pattern: str, host: str, port: int) -> bool:
    has_port = _PORT.search(pattern) and (pattern.count(":") == 1 or "]" in pattern)  # ::1 alone ends in no port
    name, _, wanted = pattern.rpartition(":") if has_port else (pattern, "", "")
    if wanted and int(wanted) != port:
        return False
    if name == "*":
        return True
    below = name.startswith("*.")
    plain = canonical(name[2:] if below else name)
    return bool(plain) and (host.endswith(f".{plain}") if below else host == plain)
