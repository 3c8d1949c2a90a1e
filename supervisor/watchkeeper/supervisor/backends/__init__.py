"""Where browsers come from: started here, attached to, or hosted.

Rules: an endpoint says what the person wants; ``connect`` makes a browser of it that has answered, or raises an error
that says which setting helps. Nobody but the modules here knows how a browser came to be. What a kind of endpoint needs
is imported when the first of its kind is connected to.
"""

from .connected import Connected
from .endpoint import BrowserbaseEndpoint, CdpEndpoint, Endpoint, LocalEndpoint
from .find import Found, find_browser, find_browsers

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


async def connect(endpoint: Endpoint, *, timeout: float) -> Connected:
    """Start or reach the browser of this endpoint, within ``timeout`` seconds.

    Raises: BrowserNotFound, LaunchFailed, EndpointUnreachable, InvalidArgument.
    """
    match endpoint:
        case LocalEndpoint():
            from .local import connect_local

            return await connect_local(endpoint, timeout)
        case CdpEndpoint():
            from .cdp import connect_cdp

            return await connect_cdp(endpoint, timeout)
        case BrowserbaseEndpoint():
            from .browserbase import connect_browserbase

            return await connect_browserbase(endpoint, timeout)
