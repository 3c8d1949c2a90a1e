"""Addresses of endpoints as people may see them.

Rule: user names, passwords, paths and query strings can carry tokens, so none of them is ever shown, neither in an
error nor in a log.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit


def shown(url: str) -> str:
    """Scheme, host and port; ``/…`` stands for whatever follows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "an unreadable address"
    if not parts.scheme or not host:
        return "an unreadable address"
    name = f"[{host}]" if ":" in host else host
    more = "/…" if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{more}"


def is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether the host is this machine by name or number; names are not looked up."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return is_ip(host) and ip_address(host).is_loopback
