"""From an endpoint to a browser that answers. What only some endpoints need is imported for them."""

from ..egress.policy import ProxyRoute
from .connected import Connected
from .endpoint import BrowserbaseEndpoint, CdpEndpoint, Endpoint, LocalEndpoint
from .local import connect_local


async def connect(endpoint: Endpoint, *, timeout: float, route: ProxyRoute | None = None) -> Connected:
    """Start or reach the browser of this endpoint, within ``timeout`` seconds. ``route``: the proxy that a browser
    that is started here uses instead of the endpoint's own.

    Raises: BrowserNotFound, LaunchFailed, EndpointUnreachable, InvalidArgument.
    """
    match endpoint:
        case LocalEndpoint():
            return await connect_local(endpoint, timeout, route=route)
        case CdpEndpoint():
            from .cdp import connect_cdp

            return await connect_cdp(endpoint, timeout)
        case BrowserbaseEndpoint():
            from .browserbase import connect_browserbase

            return await connect_browserbase(endpoint, timeout)
