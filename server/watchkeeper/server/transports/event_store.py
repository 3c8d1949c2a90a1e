"""What was sent on the streams of streamable HTTP, so that a client whose connection broke gets the rest of it: it
comes back with the id of the last event that it has.

Rules: a session gets its own events and no other's. All sessions share one budget; beyond it the oldest events go, and
a client that asks for what is gone is told of in the log. Events end with their session.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
"""

import itertools
import logging
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MAX_BYTES = 8 << 20
MAX_EVENTS = 4_096
RETRY_MS = 1_000
"""When a client whose connection broke is asked to come back."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Event:
    session: int
    stream: str
    text: bytes
    """The message; empty for the event that only opens a stream."""


class Events:
    """Those of all sessions, oldest first."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_events: int = MAX_EVENTS) -> None:
        self._max_bytes = max_bytes
        self._max_events = max_events
        self._kept: OrderedDict[int, _Event] = OrderedDict()
        self._bytes = 0
        self._numbers = itertools.count(1)
        self._sessions = itertools.count(1)

    def of_a_new_session(self) -> "SessionEvents":
        session = next(self._sessions)
        made = SessionEvents(self, session)
        weakref.finalize(made, self._forget, session).atexit = False
        return made

    def add(self, session: int, stream: str, text: bytes) -> int:
        number = next(self._numbers)
        self._kept[number] = _Event(session, stream, text)
        self._bytes += len(text)
        while self._bytes > self._max_bytes or len(self._kept) > self._max_events:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.text)
        return number

    def after(self, session: int, number: int) -> tuple[str, list[tuple[int, bytes]]] | None:
        """The stream of this event, and what followed on it; None where the session has no such event any more."""
        last = self._kept.get(number)
        if last is None or last.session != session:
            return None
        return last.stream, [
            (later, event.text)
            for later, event in self._kept.items()
            if later > number and event.text and (event.session, event.stream) == (session, last.stream)
        ]

    def _forget(self, session: int) -> None:
        for number in [number for number, event in self._kept.items() if event.session == session]:
            self._bytes -= len(self._kept.pop(number).text)


class SessionEvents(EventStore):
    """As the SDK wants it, for one session. Its streams have the ids of requests, which every client counts from 1."""

    def __init__(self, events: Events, session: int) -> None:
        self._events = events
        self._session = session

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        text = b"" if message is None else message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        return str(self._events.add(self._session, stream_id, text))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        known = last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 20
        found = self._events.after(self._session, int(last_event_id)) if known else None
        if found is None:
            log.warning("a client came back for events that are kept no longer, or never were its own")
            return None
        stream, events = found
        for number, text in events:
            message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
            await send_callback(EventMessage(message, str(number)))
        return stream


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with a store of its own: the SDK would share one among all of them, where the streams of
    two sessions have the same names."""

    def __init__(self, app: Server[Any], **options: Any) -> None:
        self._events = Events()
        super().__init__(app, retry_interval=RETRY_MS, **options)

    @property
    def event_store(self) -> EventStore:
        """A new one, each time that the SDK opens a session."""
        return self._events.of_a_new_session()

    @event_store.setter
    def event_store(self, given: EventStore | None) -> None:
        """The SDK's constructor sets it; there is nothing to keep."""
