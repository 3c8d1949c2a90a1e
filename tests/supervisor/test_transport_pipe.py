"""The pipe transport, against the other ends of its pipes."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from watchkeeper.supervisor.errors import BacklogFull, InvalidArgument, TransportClosed
from watchkeeper.supervisor.transport import PipeTransport, limits, pipe

pytestmark = pytest.mark.anyio
HANG = 20.0


class OtherSide:
    """The browser's ends: blocking descriptors, used from threads where they may block."""

    def __init__(self) -> None:
        self.reads, ours_write = os.pipe()
        ours_read, self.writes = os.pipe()
        self.transport = PipeTransport(ours_read, ours_write)

    def say(self, data: bytes) -> threading.Thread:
        """Write all of it, waiting for the reader where the pipe is full."""

        def write() -> None:
            view = memoryview(data)
            while view:
                view = view[os.write(self.writes, view) :]

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        return thread

    async def heard(self, size: int) -> bytes:
        def read() -> bytes:
            received = bytearray()
            while len(received) < size:
                received += os.read(self.reads, size - len(received))
            return bytes(received)

        return await asyncio.wait_for(asyncio.to_thread(read), HANG)

    def hang_up(self, *descriptors: int) -> None:
        for descriptor in descriptors or (self.reads, self.writes):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
async def other() -> AsyncIterator[OtherSide]:
    side = OtherSide()
    yield side
    await side.transport.close()
    side.hang_up()


async def receive(side: OtherSide) -> bytes:
    return await asyncio.wait_for(side.transport.receive(), HANG)


async def test_messages_come_whole_and_in_order_however_the_bytes_are_cut(other: OtherSide) -> None:
    messages = [b"", b"a", b"\xc3\xa9" * 3, b'{"id":1}', b"x" * 1000]
    stream = b"".join(message + b"\0" for message in messages)
    for cut in (1, 2, 3, 7, 500):
        for start in range(0, len(stream), cut):
            os.write(other.writes, stream[start : start + cut])
            await asyncio.sleep(0)
        assert [await receive(other) for _ in messages] == messages


async def test_a_reply_of_100_megabytes_comes_whole(other: OtherSide) -> None:
    large = os.urandom(1024).replace(b"\0", b"1") * (100 * 1024)
    writer = other.say(large + b"\0after\0")
    assert await receive(other) == large
    assert await receive(other) == b"after"
    writer.join(HANG)


async def test_what_came_before_the_end_is_delivered_and_then_every_call_says_why_it_ended(other: OtherSide) -> None:
    other.say(b"last words\0unfinished").join(HANG)
    other.hang_up()
    assert await receive(other) == b"last words"
    for _ in range(2):
        with pytest.raises(TransportClosed, match="the browser ended or closed its pipe"):
            await receive(other)
        with pytest.raises(TransportClosed, match="the browser ended or closed its pipe"):
            other.transport.send("{}")


async def test_a_receive_that_waits_ends_when_the_connection_is_closed_on_our_side(other: OtherSide) -> None:
    waiting = asyncio.create_task(receive(other))
    await asyncio.sleep(0)
    await other.transport.close()
    await other.transport.close()
    with pytest.raises(TransportClosed, match="on our side"):
        await waiting


async def test_a_browser_that_stops_reading_and_dies_is_noticed_by_the_next_send_and_its_last_words_are_kept(
    other: OtherSide,
) -> None:
    os.write(other.writes, b"crashed\0")
    other.hang_up(other.reads)  # the other pipe stays open, as a child of the browser may hold it
    with suppress(TransportClosed):
        other.transport.send("{}")
    assert await receive(other) == b"crashed"
    with pytest.raises(TransportClosed):
        await receive(other)


async def test_sending_never_waits_for_a_browser_that_does_not_read(other: OtherSide) -> None:
    messages = ["a" * 3_000_000, "b", "c" * 200_000]
    for message in messages:
        other.transport.send(message)
    expected = b"".join(message.encode() + b"\0" for message in messages)
    assert await other.heard(len(expected)) == expected


async def test_a_full_backlog_refuses_the_next_message_and_loses_none_of_the_earlier(
    other: OtherSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BACKLOG_CAP", 1_000_000)
    other.transport.send("a" * 900_000)
    with pytest.raises(BacklogFull, match="this call was not sent"):
        other.transport.send("b" * 900_000)
    assert await other.heard(900_001) == b"a" * 900_000 + b"\0"
    other.transport.send("c" * 900_000)
    assert await other.heard(900_001) == b"c" * 900_000 + b"\0"


async def test_a_request_longer_than_browsers_read_is_refused_and_the_connection_lives(other: OtherSide) -> None:
    with pytest.raises(InvalidArgument, match="was not sent"):
        other.transport.send("x" * (limits.REQUEST_CAP + 1))
    other.transport.send("next")
    assert await other.heard(5) == b"next\0"


async def test_while_nobody_takes_messages_the_browser_waits_and_nothing_is_lost(
    other: OtherSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "PAUSE_ABOVE", 100_000)
    messages = [b"%d" % number * 1000 for number in range(500)]
    writer = other.say(b"".join(message + b"\0" for message in messages))
    for _ in range(200):  # turns in which everything could be read
        await asyncio.sleep(0)
    await asyncio.to_thread(writer.join, 0.2)
    assert writer.is_alive(), "reading went on though nobody took the messages"
    assert [await receive(other) for _ in messages] == messages
    writer.join(HANG)
    assert not writer.is_alive()


async def test_cancelling_a_receive_loses_no_message(other: OtherSide) -> None:
    for number in range(50):
        waiting = asyncio.create_task(other.transport.receive())
        await asyncio.sleep(0)
        os.write(other.writes, b"%d\0" % number)
        if number % 2:
            await asyncio.sleep(0)
        waiting.cancel()
        try:
            message = await waiting
        except asyncio.CancelledError:
            message = await receive(other)
        assert message == b"%d" % number


async def test_both_descriptors_are_closed_after_the_end(other: OtherSide) -> None:
    reads, writes = other.transport._read_fd, other.transport._write_fd
    await other.transport.close()
    for descriptor in (reads, writes):
        with pytest.raises(OSError):
            os.fstat(descriptor)
