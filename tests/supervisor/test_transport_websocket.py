"""The WebSocket transport, against a real WebSocket server that behaves, and misbehaves, like a browser."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
from fakes.cdp_server import NEVER, FakeCdpServer

from watchkeeper.supervisor.errors import BacklogFull, EndpointUnreachable, InvalidArgument, TransportClosed
from watchkeeper.supervisor.transport import WebSocketTransport, limits, websocket

pytestmark = pytest.mark.anyio
HANG = 20.0
SECRET = "sEcReT"


@pytest.fixture
async def transport(cdp_server: FakeCdpServer) -> AsyncIterator[WebSocketTransport]:
    connected = await WebSocketTransport.connect(cdp_server.url, HANG)
    await cdp_server.connected()
    yield connected
    await connected.close()


async def receive(transport: WebSocketTransport) -> bytes:
    return await asyncio.wait_for(transport.receive(), HANG)


async def ended(transport: WebSocketTransport) -> str:
    """The reason, once the connection ended; checks that everything says the same for ever after."""
    with pytest.raises(TransportClosed) as first:
        while True:
            await receive(transport)
    with pytest.raises(TransportClosed) as again:
        await receive(transport)
    with pytest.raises(TransportClosed) as sending:
        transport.send("{}")
    assert first.value.reason == again.value.reason == sending.value.reason
    return first.value.reason


async def test_calls_go_out_in_order_and_answers_come_in(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    cdp_server.on("Echo", lambda call: call.params)
    for number in range(20):
        transport.send(json.dumps({"id": number, "method": "Echo", "params": {"text": "é€" * number}}))
    replies = [json.loads(await receive(transport)) for _ in range(20)]
    assert replies == [{"id": number, "result": {"text": "é€" * number}} for number in range(20)]


async def test_a_reply_far_larger_than_the_library_takes_by_default_comes_whole(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    await cdp_server.send_raw("x" * 30_000_000)
    assert await receive(transport) == b"x" * 30_000_000


async def test_the_other_side_closing_says_with_which_code(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    await cdp_server.close_politely(1001, "bye")
    assert await ended(transport) == "the other side closed the connection (code 1001: 'bye')"


async def test_a_connection_that_breaks_ends_the_waiting_receive(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    cdp_server.drop()
    assert await ended(transport) == "the connection broke off"


async def test_closing_on_our_side_sends_what_was_queued_and_says_so(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    transport.send(json.dumps({"id": 1, "method": "Browser.close"}))
    await asyncio.wait_for(transport.close(), HANG)
    await cdp_server.called("Browser.close")
    assert await ended(transport) == "the connection was closed on our side"
    await transport.close()


async def test_closing_is_bounded_when_the_other_side_hangs(
    cdp_server: FakeCdpServer, transport: WebSocketTransport
) -> None:
    cdp_server.stall()
    transport.send("x" * 20_000_000)
    await asyncio.wait_for(transport.close(), HANG)


def test_silence_is_noticed_within_five_seconds() -> None:
    assert (websocket.DEAD_AFTER_TICKS + 1) * websocket.TICK_S <= 5


async def test_a_half_open_connection_is_given_up(
    cdp_server: FakeCdpServer, transport: WebSocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TICK_S", 0.05)
    cdp_server.stall()
    assert "no answer to a ping" in await ended(transport)


async def test_a_half_open_connection_is_given_up_also_while_a_request_waits_to_be_written(
    cdp_server: FakeCdpServer, transport: WebSocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TICK_S", 0.05)
    cdp_server.stall()
    transport.send("x" * 50_000_000)
    assert "nothing came" in await ended(transport)


async def test_a_browser_that_has_nothing_to_say_but_answers_pings_is_alive(
    cdp_server: FakeCdpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TICK_S", 0.02)
    transport = await WebSocketTransport.connect(cdp_server.url, HANG)
    cdp_server.on("Slow", NEVER)
    transport.send(json.dumps({"id": 1, "method": "Slow"}))
    async with asyncio.timeout(HANG):
        while transport._connection.arrivals < 6:  # noqa: ASYNC110 -- the pongs: more silence than a dead one is allowed
            await asyncio.sleep(0.02)
    transport.send(json.dumps({"id": 2, "method": "Quick"}))
    assert json.loads(await receive(transport))["id"] == 2
    await transport.close()


async def test_a_browser_that_digests_a_long_request_is_alive(
    cdp_server: FakeCdpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TICK_S", 0.02)
    transport = await WebSocketTransport.connect(cdp_server.url, HANG)
    await cdp_server.connected()
    transport.send(json.dumps({"id": 1, "method": "X", "params": {"text": "x" * 100_000}}))
    await receive(transport)
    monkeypatch.setattr(websocket, "DIGESTS_PER_TICK", 1_000)
    transport.send(json.dumps({"id": 2, "method": "X", "params": {"text": "x" * 10_000_000}}))
    await receive(transport)  # it was taken; now the browser is busy with it
    cdp_server.stall()
    await asyncio.sleep(0.02 * websocket.DEAD_AFTER_TICKS * 3)
    transport.send("{}")
    monkeypatch.setattr(websocket, "DIGESTS_PER_TICK", 100_000_000)
    assert "no answer to a ping" in await ended(transport)


async def test_a_flood_that_nobody_takes_for_long_is_not_taken_for_death_and_nothing_of_it_is_lost(
    cdp_server: FakeCdpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "TICK_S", 0.01)
    transport = await WebSocketTransport.connect(cdp_server.url, HANG)
    await cdp_server.connected()

    async def flood() -> None:
        for number in range(5_000):
            await cdp_server.emit("Runtime.consoleAPICalled", {"n": number, "text": "x" * 2000})

    flooding = asyncio.create_task(flood())
    async with asyncio.timeout(HANG):
        while transport._connection.transport.is_reading():  # noqa: ASYNC110 -- nothing tells of it
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.01 * websocket.DEAD_AFTER_TICKS * 3)
    assert not flooding.done()
    numbers = [json.loads(await receive(transport))["params"]["n"] for _ in range(5_000)]
    assert numbers == list(range(5_000))
    await flooding
    await transport.close()


async def test_requests_and_backlog_are_bounded(
    cdp_server: FakeCdpServer, transport: WebSocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgument):
        transport.send("x" * (limits.REQUEST_CAP + 1))
    monkeypatch.setattr(limits, "BACKLOG_CAP", 1_000_000)
    cdp_server.stall()
    with pytest.raises(BacklogFull):
        for _ in range(10_000):
            transport.send("x" * 900_000)
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("status", "says", "hint"),
    [
        (HTTPStatus.UNAUTHORIZED, "status 401", "token"),
        (HTTPStatus.FORBIDDEN, "status 403", "token"),
        (HTTPStatus.GONE, "status 410", "has ended"),
        (HTTPStatus.BAD_GATEWAY, "status 502", "browser.cdp_url"),
    ],
)
async def test_a_refusal_names_the_status_and_what_to_do(
    cdp_server: FakeCdpServer, status: HTTPStatus, says: str, hint: str
) -> None:
    cdp_server.refuse = status
    with pytest.raises(EndpointUnreachable, match=says) as refused:
        await WebSocketTransport.connect(cdp_server.url, HANG)
    assert hint in refused.value.hint
    assert refused.value.status == status


async def test_a_port_where_nothing_listens_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(EndpointUnreachable, match=f"Nothing listens at ws://127.0.0.1:{port}"):
            await WebSocketTransport.connect(f"ws://127.0.0.1:{port}/{SECRET}", HANG)


async def test_a_server_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ws://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(EndpointUnreachable, match=r"did not answer within 0\.2 s"):
            await asyncio.wait_for(WebSocketTransport.connect(url, 0.2), HANG)


async def test_a_server_of_something_else_is_named_as_such() -> None:
    async def other_protocol(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        writer.close()

    server = await asyncio.start_server(other_protocol, "127.0.0.1", 0)
    async with server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        with pytest.raises(EndpointUnreachable, match="speaks no WebSocket"):
            await WebSocketTransport.connect(url, HANG)


async def test_no_secret_of_an_address_is_shown_or_logged(
    cdp_server: FakeCdpServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    base = f"127.0.0.1:{cdp_server.port}"
    transport = await WebSocketTransport.connect(f"ws://{SECRET}:{SECRET}@{base}/devtools/{SECRET}?k={SECRET}", HANG)
    transport.send(json.dumps({"id": 1, "method": "X", "params": {"text": SECRET}}))
    await receive(transport)
    await transport.close()
    cdp_server.refuse = HTTPStatus.FORBIDDEN
    for url in (
        f"ws://u:{SECRET}@{base}/{SECRET}?token={SECRET}#{SECRET}",
        f"ws://127.0.0.1:1/{SECRET}?token={SECRET}",
        f"wss://u:{SECRET}@{base}/{SECRET}",
        f"http://{base}/{SECRET}",
        f"ws://u:{SECRET}@:99999/{SECRET}",
    ):
        with pytest.raises(EndpointUnreachable) as refused:
            await WebSocketTransport.connect(url, HANG)
        error = refused.value
        assert SECRET not in f"{error!r} {error} {error.hint}"
        assert error.__cause__ is None
        assert error.__suppress_context__
    logged = [record.getMessage() for record in caplog.records if record.name != "websockets.server"]  # the fake's own
    assert SECRET not in "".join(logged)
