"""From an endpoint to a browser that answers."""

from .browserbase import connect_browserbase
from .cdp import connect_cdp
from .connected import Connected
from .endpoint import BrowserbaseEndpoint, CdpEndpoint, Endpoint, LocalEndpoint
from .local import connect_local


async def connect(endpoint: Endpoint, *, timeout: float) -> Connected:
    """Start or reach the browser of this endpoint, within ``timeout`` seconds.

    Raises: BrowserNotFound, LaunchFailed, EndpointUnreachable, InvalidArgument.
    """
    match endpoint:
        case LocalEndpoint():
            return await connect_local(endpoint, timeout)
        case CdpEndpoint():
            return await connect_cdp(endpoint, timeout)
        case BrowserbaseEndpoint():
            return await connect_browserbase(endpoint, timeout)
