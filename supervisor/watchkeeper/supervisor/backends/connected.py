"""What connecting gives: a transport on which a browser answered, and the way to end it.

Rules: ``close`` is bounded, may be called again, and is not stopped by cancellation, because what it does not end
nobody ends.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from ..errors import EndpointUnreachable, TransportClosed

if TYPE_CHECKING:
    from ..transport import Transport


class Connected:
    """A browser that somebody else runs; ``close`` ends the connection only.

    ``product``: name and version as the browser gives them, such as ``Chrome/156.0.8078.114``. ``notes``: what a person
    should know of how the browser runs (the sandbox is off, say).
    """

    owns_browser = False
    pid: int | None = None
    """The process of a browser that we started."""

    def __init__(self, transport: Transport, product: str, notes: tuple[str, ...] = ()) -> None:
        self.transport = transport
        self.product = product
        self.notes = notes

    async def ending(self) -> str:
        """How the browser ended, in one sentence without a full stop; empty when nothing is known. At most a second."""
        return ""

    async def close(self) -> None:
        await self.transport.close()


async def ask_version(transport: Transport) -> str:
    """Make sure that a browser listens: ask for its version, before anybody else uses the transport.

    Raises: TransportClosed; EndpointUnreachable when something else answers. The caller bounds the time.
    """
    transport.send(json.dumps({"id": 1, "method": "Browser.getVersion"}))
    for _ in range(100):  # a browser says little before it is asked; something else may talk for ever
        message = await transport.receive()
        try:
            reply = json.loads(message)
        except ValueError:
            break
        if not isinstance(reply, dict):
            break
        if reply.get("id") == 1:
            result = reply.get("result")
            product = result.get("product") if isinstance(result, dict) else None
            return product if isinstance(product, str) else ""
    raise EndpointUnreachable(
        "What answers there does not speak the Chrome DevTools Protocol.",
        "Check browser.cdp_url, and that the browser runs with remote debugging on.",
    )


async def ask_version_of(transport: Transport, place: str, timeout: float) -> str:
    """``ask_version`` within ``timeout`` seconds, for an endpoint that a person knows as ``place``.

    Raises: EndpointUnreachable; the transport is closed then.
    """
    try:
        async with asyncio.timeout(timeout):
            return await ask_version(transport)
    except TimeoutError:
        await transport.close()
        raise EndpointUnreachable(
            f"{place} accepted the connection, but answered no command within {timeout:g} s.",
            "The browser there may hang; restart it.",
        ) from None
    except TransportClosed as closed:
        await transport.close()
        raise EndpointUnreachable(
            f"{place} accepted the connection and ended it at once: {closed.reason}.",
            "The session may have ended, or its signature expired: take a new address.",
        ) from None
    except EndpointUnreachable as error:
        await transport.close()
        raise EndpointUnreachable(f"{place}: {error.message}", error.hint) from None
    except BaseException:
        await transport.close()
        raise
