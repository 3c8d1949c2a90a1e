"""Where browsers come from: started here, attached to, or hosted.

Rules: an endpoint says what the person wants; ``connect`` makes a browser of it that has answered, or raises an error
that says which setting helps. Nobody but the modules here knows how a browser came to be. Names load when they are
first used: looking for a browser's file must not cost an event loop and a WebSocket library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connected import Connected
    from .connecting import connect
    from .endpoint import BrowserbaseEndpoint, CdpEndpoint, Endpoint, LocalEndpoint
    from .find import Found, find_browser, find_browsers

_HOMES = {
    "BrowserbaseEndpoint": "endpoint",
    "CdpEndpoint": "endpoint",
    "Connected": "connected",
    "Endpoint": "endpoint",
    "Found": "find",
    "LocalEndpoint": "endpoint",
    "connect": "connecting",
    "find_browser": "find",
    "find_browsers": "find",
}

__all__ = [
    "BrowserbaseEndpoint",
    "CdpEndpoint",
    "Connected",
    "Endpoint",
    "Found",
    "LocalEndpoint",
    "connect",
    "find_browser",
    "find_browsers",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
