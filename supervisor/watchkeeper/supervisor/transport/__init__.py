"""How messages reach a browser: whole CDP messages in, whole CDP messages out.

Rules: a transport knows nothing of CDP but where a message ends. ``send`` never waits; ``receive`` has one reader.
Messages that arrived before the end are still delivered; after them every ``receive``, and from the end on every
``send``, raises ``TransportClosed`` with the same reason. All methods belong to the thread of the event loop.
"""

from typing import TYPE_CHECKING, Any, Protocol

from .limits import MESSAGE_CAP, REQUEST_CAP
from .pipe import PipeTransport

if TYPE_CHECKING:
    from .websocket import WebSocketTransport

__all__ = ["MESSAGE_CAP", "REQUEST_CAP", "PipeTransport", "Transport", "WebSocketTransport"]


def __getattr__(name: str) -> Any:
    """A browser that is started here is reached through a pipe, and needs no WebSocket library."""
    if name == "WebSocketTransport":
        from .websocket import WebSocketTransport

        return WebSocketTransport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Transport(Protocol):
    async def receive(self) -> bytes | str:
        """The next whole message. Cancelling it loses nothing."""

    def send(self, message: str) -> None:
        """Queue a message.

        Raises: TransportClosed; InvalidArgument when the message alone is too long for a browser; BacklogFull.
        """

    async def close(self) -> None:
        """End the connection, within two seconds. May be called again."""
