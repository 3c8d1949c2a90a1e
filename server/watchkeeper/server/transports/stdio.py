"""MCP over stdin and stdout: a message a line.

Rules: stdout carries protocol only; the descriptors are taken over before anything else runs. Every line gets an answer
if it asks for one: what is no JSON, no message or too long is refused with the error that JSON-RPC has for it. The end
of input ends the server.

Reading and writing happen in daemon threads, because neither can be cancelled, and a client that does not read, or says
nothing, would keep the process alive.

Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#stdio
"""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from itertools import chain
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from ..daemon_thread import in_daemon_thread
from ..startup.boot import Handover
from ..startup.descriptors import take_over, write_all

CHUNK = 1 << 16
LINES_AHEAD = 64


async def serve_stdio(
    server: Server[Any], stop: anyio.Event, *, max_message_bytes: int, handover: Handover | None = None
) -> None:
    """Serve one client until its end of input, or until ``stop`` is set and what it asked for is answered."""
    given = handover or Handover(take_over(0, None), take_over(1, 2))
    await serve_descriptors(server, given.source, given.sink, stop, max_message_bytes=max_message_bytes, handover=given)


async def serve_descriptors(
    server: Server[Any],
    source: int,
    sink: int,
    stop: anyio.Event,
    *,
    max_message_bytes: int,
    handover: Handover | None = None,
) -> None:
    """The same on any two descriptors. ``handover``: what was read, and answered, before we came."""
    before = handover or Handover(source, sink)
    unanswered = _Unanswered()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(LINES_AHEAD)
    loop = asyncio.get_running_loop()
    reader = threading.Thread(
        target=_read_lines, args=(before, max_message_bytes, loop, lines), name="watchkeeper-stdin", daemon=True
    )
    incoming, messages_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    messages_out, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    writing = anyio.Lock()

    async def write(text: str) -> None:
        async with writing:
            data = text.encode("utf-8", "replace") + b"\n"
            await in_daemon_thread(lambda: write_all(sink, data), "watchkeeper-stdout")

    async def receive() -> None:
        async with incoming:
            while (line := await lines.get()) is not None:
                if not line.strip():
                    continue
                message = _message(line, max_message_bytes)
                if isinstance(message, str):
                    await write(message)
                else:
                    unanswered.received(message.message)
                    await incoming.send(message)

    async def send() -> None:
        async with outgoing:
            async for message in outgoing:
                if before.answers_again(message.message):
                    continue
                await write(message.message.model_dump_json(by_alias=True, exclude_unset=True))
                unanswered.sent(message.message)

    async def until_stopped(scope: anyio.CancelScope) -> None:
        await stop.wait()
        await unanswered.none()
        scope.cancel()

    reader.start()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(receive)
            group.start_soon(send)
            group.start_soon(until_stopped, group.cancel_scope)
            await server.run(messages_in, messages_out, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, anyio.BrokenResourceError):
        pass  # the client is gone, which is as good as its end of input


class _Unanswered:
    """The requests of the client that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._changed = anyio.Event()

    def received(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._answered((message.params or {}).get("requestId"))

    def sent(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._answered(message.id)

    def _answered(self, number: Any) -> None:
        if not isinstance(number, str | int):
            return  # what clients say was cancelled may be anything
        self._ids.discard(number)
        self._changed.set()
        self._changed = anyio.Event()

    async def none(self) -> None:
        while self._ids:
            await self._changed.wait()


def _message(line: bytes, max_message_bytes: int) -> SessionMessage | str:
    """The message of a line, or the line that refuses it."""
    if len(line) > max_message_bytes:
        limit = f"the limit is {max_message_bytes >> 20} MiB (server.max_message_mb)"
        return _refusal(None, types.INVALID_REQUEST, f"The message is too large: {limit}.")
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        if not isinstance(message, types.JSONRPCNotification) or b'"id"' not in line or "id" not in json.loads(line):
            return SessionMessage(message)
        # A request whose id is none reads as a notification, and its client would wait for ever.
        return _refusal(None, types.INVALID_REQUEST, "An id has to be a string or a whole number.")
    except ValidationError:
        pass
    try:
        content = json.loads(line)
        # Half of a character outside of the basic plane, as JavaScript leaves where it cuts one in two.
        whole = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except ValidationError:
        pass
    except (ValueError, RecursionError):
        return _refusal(None, types.PARSE_ERROR, "The line is not JSON.")
    asked = content.get("id") if isinstance(content, dict) else None
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    return _refusal(known, types.INVALID_REQUEST, "The line is not a JSON-RPC 2.0 message.")


def _refusal(number: str | int | None, code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})


def _read_lines(
    before: Handover, max_bytes: int, loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | None]"
) -> None:
    """Runs in the thread. Waits while the server is behind, so that no client can fill our memory."""

    def deliver(line: bytes | None) -> None:
        putting = lines.put(line)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except RuntimeError:
            putting.close()
            raise

    try:
        for line in chain(before.lines, _lines(before, max_bytes)):
            deliver(line)
        deliver(None)
    except (RuntimeError, CancelledError):
        return  # the loop has ended


def _lines(before: Handover, max_bytes: int) -> Iterator[bytes]:
    """Lines without their ends; of one that is too long, a little more than the limit."""
    pieces: list[bytes] = [before.rest] if before.rest else []
    size = len(before.rest)
    while True:
        try:
            chunk = b"" if before.ended else os.read(before.source, CHUNK)
        except OSError:
            chunk = b""
        *whole, last = chunk.split(b"\n")
        for piece in whole:
            yield b"".join((*pieces, piece))
            pieces, size = [], 0
        if not chunk:
            if pieces:
                yield b"".join(pieces)
            return
        if last and size <= max_bytes:
            pieces.append(last)
            size += len(last)
