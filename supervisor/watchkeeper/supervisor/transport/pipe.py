"""Speak to a browser that we started through its ``--remote-debugging-pipe``: messages end with a zero byte.

Rules: owns both descriptors and closes them. Each byte that arrives is looked at once and joined once, so a reply of
100 MB costs what its bytes cost. When nobody takes messages, reading stops until they are taken: the browser waits,
nothing is lost. Unix only: on Windows Python cannot hand descriptors 3 and 4 to a child.
"""

import asyncio
import os
from collections import deque

from ..errors import TransportClosed
from .limits import MESSAGE_CAP, encoded

READ_SIZE = 256 * 1024
PAUSE_ABOVE = 64 * 1024 * 1024
"""Bytes of whole messages that nobody took yet; above it reading stops, below a quarter of it reading goes on."""


class PipeTransport:
    """Made within a running event loop, from the read end of the browser's output and the write end of its input."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd, self._write_fd = read_fd, write_fd
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._end: str | None = None
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._messages: deque[bytes] = deque()
        self._unread_size = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._outgoing: deque[memoryview] = deque()
        self._backlog = 0
        self._loop.add_reader(read_fd, self._readable)

    async def receive(self) -> bytes:
        while not self._messages:
            if self._end is not None:
                raise TransportClosed(self._end)
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._messages.popleft()
        self._unread_size -= len(message)
        if self._paused and self._end is None and self._unread_size < PAUSE_ABOVE // 4:
            self._paused = False
            self._loop.add_reader(self._read_fd, self._readable)
        return message

    def send(self, message: str) -> None:
        if self._end is not None:
            raise TransportClosed(self._end)
        data = encoded(message, self._backlog) + b"\0"
        self._outgoing.append(memoryview(data))
        self._backlog += len(data)
        if len(self._outgoing) == 1:
            self._writable()
            if self._outgoing and self._end is None:
                self._loop.add_writer(self._write_fd, self._writable)

    async def close(self) -> None:
        self._finish("the connection was closed on our side")

    def _readable(self) -> None:
        try:
            data = os.read(self._read_fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._finish(f"reading from the browser failed: {error.strerror}")
            return
        if not data:
            self._finish("the browser ended or closed its pipe")
            return
        *whole, rest = data.split(b"\0")
        if whole:
            whole[0] = b"".join((*self._partial, whole[0]))
            self._partial, self._partial_size = [], 0
            self._messages.extend(whole)
            self._unread_size += sum(map(len, whole))
            self._wake()
            if self._unread_size > PAUSE_ABOVE:
                self._paused = True
                self._loop.remove_reader(self._read_fd)
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
            if self._partial_size > MESSAGE_CAP:
                self._finish(f"the browser sent a message of more than {MESSAGE_CAP:,} bytes")

    def _writable(self) -> None:
        try:
            while self._outgoing:
                view = self._outgoing[0]
                written = os.write(self._write_fd, view)
                self._backlog -= written
                if written < len(view):
                    self._outgoing[0] = view[written:]
                    return
                self._outgoing.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # What the browser said before it went is still in the other pipe.
            while self._end is None and not self._paused:
                before = len(self._messages), self._partial_size
                self._readable()
                if before == (len(self._messages), self._partial_size):
                    break
            self._finish("the browser ended or closed its pipe")
            return
        self._loop.remove_writer(self._write_fd)

    def _finish(self, reason: str) -> None:
        if self._end is not None:
            return
        self._end = reason
        self._loop.remove_reader(self._read_fd)
        self._loop.remove_writer(self._write_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)
        self._partial, self._partial_size = [], 0
        self._outgoing.clear()
        self._backlog = 0
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
