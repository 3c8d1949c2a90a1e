"""How much a transport carries and holds.

Chromium reads at most 100 MiB per request, on the pipe and on the WebSocket alike, and ends the connection past it
(``kReceiveBufferSizeForDevTools``), so longer requests are refused here, where the caller can still be told.
"""

from ..errors import BacklogFull, InvalidArgument

REQUEST_CAP = 100_000_000
"""Bytes of one outgoing message."""

BACKLOG_CAP = 256 * 1024 * 1024
"""Bytes of outgoing messages that wait for the browser to read."""

MESSAGE_CAP = 1024 * 1024 * 1024
"""Bytes of one incoming message. Chromium itself stops at 256 MiB on a WebSocket, and not at all on a pipe."""


def encoded(message: str, backlog: int) -> bytes:
    """The message as bytes, if it may be queued behind ``backlog`` bytes.

    Raises: InvalidArgument, BacklogFull.
    """
    data = message.encode()
    if len(data) > REQUEST_CAP:
        raise InvalidArgument(
            f"The call is {len(data):,} bytes long; browsers take at most {REQUEST_CAP:,} and drop the connection"
            " past that, so it was not sent.",
            "Send the data in pieces.",
        )
    if backlog + len(data) > BACKLOG_CAP:
        raise BacklogFull(
            f"{backlog:,} bytes of earlier calls still wait for the browser to read them; this call was not sent.",
            "Wait for earlier calls to end; if none does, the browser hangs: close it with browser_close.",
        )
    return data
