"""The gate in front of browsers: what it connects to, what it refuses, and what it says of it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_socks import ProxyError, ProxyType
from python_socks.async_.asyncio import Proxy

from watchkeeper.server.security.url_policy import UrlPolicy
from watchkeeper.server.settings import Settings
from watchkeeper.supervisor.egress import Gate, Outcome, Resolver
from watchkeeper.supervisor.egress import gate as gate_module
from watchkeeper.supervisor.egress.dialling import Upstream
from watchkeeper.supervisor.egress.resolving import REMEMBERED_S
from watchkeeper.supervisor.egress.socks import Handshake, Rejected, Wanted
from watchkeeper.supervisor.errors import InvalidArgument

pytestmark = pytest.mark.anyio
GUARD_S = 20.0
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Names:
    """A name server whose answers tests decide; each answer may be a sequence, one for each time it is asked."""

    def __init__(self, **answers: list[tuple[str, ...]]) -> None:
        self.answers = answers
        self.now = 0.0
        self.asked: list[str] = []

    def lookup(self, host: str) -> tuple[str, ...]:
        self.asked.append(host)
        known = self.answers.get(host.removesuffix(".test"))
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return known.pop(0) if len(known) > 1 else known[0]


def policy(**browser: object) -> UrlPolicy:
    return UrlPolicy(Settings.model_validate({"browser": browser}))


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[Handler], Awaitable[int]]]:
    servers: list[asyncio.Server] = []

    async def started(handler: Handler) -> int:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                await handler(reader, writer)
            writer.close()

        servers.append(await asyncio.start_server(handle, "127.0.0.1", 0))
        return int(servers[-1].sockets[0].getsockname()[1])

    yield started
    for server in servers:
        server.close()


@contextlib.asynccontextmanager
async def opened(names: Names | None = None, upstream: str | None = None, **browser: object) -> AsyncIterator[Gate]:
    known = names or Names()
    resolver = Resolver(known.lookup, lambda: known.now)
    gate = await Gate(policy(**browser), resolver, upstream=upstream).open()
    try:
        yield gate
    finally:
        await asyncio.wait_for(gate.close(), GUARD_S)
        resolver.close()


def port_of(gate: Gate) -> int:
    return int(gate.route.server.rpartition(":")[2])


async def through(gate: Gate, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    proxy = Proxy(ProxyType.SOCKS5, "127.0.0.1", port_of(gate), rdns=True)
    return await asyncio.open_connection(sock=await proxy.connect(dest_host=host, dest_port=port, timeout=GUARD_S))


async def refusal(gate: Gate, host: str, port: int = 80) -> Outcome:
    with pytest.raises(ProxyError):
        await through(gate, host, port)
    return gate.outcomes[-1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything back, once the client has said all it has to say."""
    writer.write(await reader.read(-1))
    writer.write_eof()


async def test_bytes_pass_both_ways_and_one_side_may_end_first(serve: Callable[[Handler], Awaitable[int]]) -> None:
    port = await serve(echo)
    async with opened(Names(good=[("127.0.0.1",)])) as gate:
        reader, writer = await through(gate, "good.test", port)
        sent = bytes(range(256)) * 10_000
        writer.write(sent)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(-1), GUARD_S) == sent
        writer.close()
        async with asyncio.timeout(GUARD_S):
            while gate.connections:  # noqa: ASYNC110 - both have ended: nothing is kept
                await asyncio.sleep(0.01)
    assert gate.granted == 1 and not gate.outcomes


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "100.100.100.200", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "::ffff:a9fe:1"]
)
async def test_a_name_that_stands_for_a_metadata_address_is_refused(address: str) -> None:
    async with opened(Names(evil=[(address,)])) as gate:
        outcome = await refusal(gate, "evil.test")
    assert outcome.kind == "refused"
    assert "evil.test is" in outcome.reason and "always refused" in outcome.reason
    assert gate.granted == 0


async def test_a_name_is_looked_up_once_and_the_address_that_was_checked_is_connected_to(
    serve: Callable[[Handler], Awaitable[int]],
) -> None:
    port = await serve(echo)
    names = Names(rebind=[("127.0.0.1",), ("169.254.169.254",), ("127.0.0.1",)])
    async with opened(names) as gate:
        _, writer = await through(gate, "rebind.test", port)
        writer.close()
        assert names.asked == ["rebind.test"]  # not once for the check and once more for connecting
        names.now += REMEMBERED_S
        assert (await refusal(gate, "rebind.test", port)).kind == "refused"


async def test_of_several_addresses_only_allowed_ones_are_connected_to(
    serve: Callable[[Handler], Awaitable[int]],
) -> None:
    port = await serve(echo)
    async with opened(Names(both=[("169.254.169.254", "127.0.0.1")])) as gate:
        _, writer = await through(gate, "both.test", port)
        writer.close()
        assert gate.granted == 1


async def test_private_addresses_behind_names_follow_the_setting(serve: Callable[[Handler], Awaitable[int]]) -> None:
    async with opened(Names(inside=[("10.1.2.3",)]), allow_private_network=False) as gate:
        outcome = await refusal(gate, "inside.test")
        assert outcome.kind == "refused" and "browser.allow_private_network" in outcome.reason
        assert (await refusal(gate, "127.0.0.1")).kind == "refused"
        assert (await refusal(gate, "localhost")).kind == "refused"


async def test_hosts_and_ports_of_the_settings_hold_for_every_connection(
    serve: Callable[[Handler], Awaitable[int]],
) -> None:
    port = await serve(echo)
    names = Names(good=[("127.0.0.1",)], sly=[("127.0.0.1",)])
    async with opened(names, allowed_hosts=(f"good.test:{port}",)) as gate:
        _, writer = await through(gate, "good.test", port)
        writer.close()
        assert "browser.allowed_hosts" in (await refusal(gate, "good.test", port + 1)).reason
        assert "browser.allowed_hosts" in (await refusal(gate, "127.0.0.1", port)).reason
    async with opened(names, blocked_hosts=("127.0.0.1",)) as gate:
        assert "browser.blocked_hosts" in (await refusal(gate, "sly.test", port)).reason  # by what it stands for


async def test_what_fails_is_told_apart_from_what_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    async with opened(Names()) as gate:
        unknown = await refusal(gate, "nowhere.test")
        assert (unknown.kind, unknown.net_error) == ("failed", "net::ERR_NAME_NOT_RESOLVED")
        closed = await refusal(gate, "127.0.0.1", free)
        assert (closed.kind, closed.net_error) == ("failed", "net::ERR_CONNECTION_REFUSED")
        assert gate.explain(since=0.0) == closed


async def test_a_reader_that_stops_stops_the_sender(serve: Callable[[Handler], Awaitable[int]]) -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 200_000_000:
            writer.write(bytes(100_000))
            sent += 100_000
            await writer.drain()

    port = await serve(flood)
    async with opened() as gate:
        _, writer = await through(gate, "127.0.0.1", port)
        before = -1
        async with asyncio.timeout(GUARD_S):
            while sent != before:  # until nothing moves any more
                before = sent
                for _ in range(2_000):
                    await asyncio.sleep(0)
        assert sent < 50_000_000
        writer.transport.abort()


async def test_what_speaks_no_socks_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as gate:
        for said in (
            b"GET http://169.254.169.254/ HTTP/1.1\r\n\r\n",
            b"\x04\x01\x00P\x01\x02\x03\x04\x00",
            b"\x05\x01\x02",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(gate))
            writer.write(said)
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(-1), GUARD_S) in (b"", b"\x05\xff")
            writer.close()
        monkeypatch.setattr(gate_module, "HANDSHAKE_TIMEOUT_S", 0.01)
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(gate))
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(-1), GUARD_S) == b""
        writer.close()
        assert gate.granted == 0


async def test_connections_have_a_limit_and_end_with_the_gate(
    serve: Callable[[Handler], Awaitable[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_module, "MAX_CONNECTIONS", 2)
    port = await serve(echo)
    async with opened() as gate:
        first, second = await through(gate, "127.0.0.1", port), await through(gate, "127.0.0.1", port)
        with pytest.raises((ProxyError, OSError)):
            await through(gate, "127.0.0.1", port)
    for reader, writer in (first, second):
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(-1), GUARD_S) == b""
        writer.close()


async def test_another_proxy_is_gone_through_once_the_host_is_allowed(
    serve: Callable[[Handler], Awaitable[int]],
) -> None:
    port = await serve(echo)
    asked: list[bytes] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await echo(reader, writer)

    http = await serve(connect)
    async with opened(upstream=f"127.0.0.1:{http}") as gate:
        reader, writer = await through(gate, "only.there.test", 443)  # a name that nobody here knows
        writer.write(b"hello")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(-1), GUARD_S) == b"hello"
        writer.close()
        assert asked == [b"CONNECT only.there.test:443 HTTP/1.1"]
        assert (await refusal(gate, "169.254.169.254")).kind == "refused"
        assert (await refusal(gate, "metadata.google.internal")).kind == "refused"
        assert len(asked) == 1
    async with (
        opened(Names(good=[("127.0.0.1",)])) as other,
        opened(upstream=f"socks5://127.0.0.1:{port_of(other)}") as gate,
    ):
        _, writer = await through(gate, "good.test", port)
        writer.close()
        assert (other.granted, gate.granted) == (1, 1)


async def test_a_proxy_that_makes_no_tunnels_forwards_requests_and_loopback_needs_none(
    serve: Callable[[Handler], Awaitable[int]],
) -> None:
    heads: list[bytes] = []

    async def forward_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        refused = heads[-1].startswith(b"CONNECT")
        body = b"" if refused else await reader.readexactly(4)
        status = b"403 Forbidden" if refused else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    http = await serve(forward_only)
    local = await serve(echo)
    async with opened(Names(), upstream=f"http://127.0.0.1:{http}") as gate:
        reader, writer = await through(gate, "far.test", 80)
        writer.write(b"POST /a?b HTTP/1.1\r\nHost: far.test\r\nConnection: keep-alive\r\nContent-")
        writer.write(b"Length: 4\r\n\r\nbody")
        assert (await asyncio.wait_for(reader.read(-1), GUARD_S)).endswith(b"\r\n\r\nbody")
        writer.close()
        assert heads[-1].startswith(b"POST http://far.test/a?b HTTP/1.1\r\nConnection: close\r\nHost: far.test\r\n")
        assert b"keep-alive" not in heads[-1]
        assert (await refusal(gate, "far.test", 443)).net_error == "net::ERR_TUNNEL_CONNECTION_FAILED"
        asked = len(heads)
        _, writer = await through(gate, "127.0.0.1", local)
        writer.close()
        assert len(heads) == asked  # what is on this machine is reached from here


def test_a_kind_of_proxy_that_is_not_spoken_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="https: proxy"):
        Upstream.of("https://proxy.example:443")
    assert Upstream.of("proxy.example:3128") == Upstream("http", "proxy.example", 3128)
    assert Upstream.of("socks5h://[::1]") == Upstream("socks5", "::1", 1080)


@given(st.binary(max_size=600), st.lists(st.integers(1, 50), max_size=20))
def test_no_bytes_upset_the_handshake(data: bytes, cuts: list[int]) -> None:
    handshake = Handshake()
    for size in [*cuts, 600]:
        piece, data = data[:size], data[size:]
        if isinstance(handshake.feed(piece)[1], Rejected | Wanted):
            break


@given(
    st.one_of(
        st.from_regex(r"[a-z0-9.-]{1,200}", fullmatch=True),
        st.ip_addresses(v=4).map(str),
        st.ip_addresses(v=6).map(str),
    ),
    st.integers(0, 65535),
    st.integers(1, 10),
    st.binary(max_size=20),
)
def test_a_request_is_read_however_it_is_cut(host: str, port: int, size: int, rest: bytes) -> None:
    try:
        number = IPv6Address(host) if ":" in host else IPv4Address(host)
        target = bytes([1 if number.version == 4 else 4]) + number.packed
    except ValueError:
        target = bytes([3, len(host)]) + host.encode()
    said = b"\x05\x01\x00" + b"\x05\x01\x00" + target + port.to_bytes(2, "big") + rest
    handshake = Handshake()
    wanted = None
    while wanted is None:
        piece, said = said[:size], said[size:]
        _, wanted = handshake.feed(piece)
    assert wanted == Wanted(host, port)
    assert handshake.rest + said == rest
