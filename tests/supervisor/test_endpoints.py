"""Attaching to a browser that somebody else runs."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest
from fakes.cdp_server import NEVER, PATH, FakeCdpServer, Refusal

from watchkeeper.supervisor.address import is_loopback, shown
from watchkeeper.supervisor.backends import CdpEndpoint, Connected, connect
from watchkeeper.supervisor.backends.cdp import reachable
from watchkeeper.supervisor.errors import EndpointUnreachable, InvalidArgument

pytestmark = pytest.mark.anyio
HANG = 20.0
SECRET = "sEcReT"


async def attach(url: str, timeout: float = HANG) -> Connected:
    return await asyncio.wait_for(connect(CdpEndpoint(url), timeout=timeout), 2 * HANG)


async def test_a_websocket_address_is_used_as_it_is_given(cdp_server: FakeCdpServer) -> None:
    connected = await attach(f"{cdp_server.url}?token={SECRET}")
    assert [request.path for request in cdp_server.requests] == [f"{PATH}?token={SECRET}"]
    assert connected.product == "Chrome/156.0.0.0"
    assert not connected.owns_browser
    connected.transport.send(json.dumps({"id": 7, "method": "Target.getTargets"}))
    assert json.loads(await connected.transport.receive()) == {"id": 7, "result": {}}
    await connected.close()
    await connected.close()


@pytest.mark.parametrize("ending", ["", "/"])
async def test_an_http_address_is_asked_for_its_browser(cdp_server: FakeCdpServer, ending: str) -> None:
    connected = await attach(cdp_server.http_url + ending)
    assert [request.path for request in cdp_server.requests] == ["/json/version", PATH]
    await connected.close()


async def test_credentials_of_an_http_address_go_with_both_requests(cdp_server: FakeCdpServer) -> None:
    connected = await attach(f"http://me:{SECRET}@127.0.0.1:{cdp_server.port}?token={SECRET}")
    assert [request.path for request in cdp_server.requests] == [
        f"/json/version?token={SECRET}",
        f"{PATH}?token={SECRET}",
    ]
    assert len({request.headers["Authorization"] for request in cdp_server.requests}) == 1
    await connected.close()


async def test_a_browser_that_refuses_host_names_is_reached_by_number(
    cdp_server: FakeCdpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chrome does that; containers have names. Here the name is known to the resolver alone."""
    real = socket.getaddrinfo

    def resolve(host: str | bytes | None, *args: object, **kwargs: object) -> object:
        return real("127.0.0.1" if host in ("chrome.test", b"chrome.test") else host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("no_proxy", "chrome.test")
    cdp_server.refuse_names = True
    for url in (f"http://chrome.test:{cdp_server.port}", f"ws://chrome.test:{cdp_server.port}{PATH}"):
        await (await attach(url)).close()
    assert cdp_server.requests[-1].headers["Host"] == f"127.0.0.1:{cdp_server.port}"


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        ("http://10.0.0.5:9222", "ws://localhost/devtools/browser/1", "ws://10.0.0.5:9222/devtools/browser/1"),
        ("http://10.0.0.5:9222", "ws://0.0.0.0:3000/d", "ws://10.0.0.5:9222/d"),
        ("https://tls.example", "ws://127.0.0.1:9222/d", "wss://tls.example/d"),
        ("https://tls.example", "ws://tls.example:9222/d", "wss://tls.example/d"),
        ("https://u:p@tls.example?token=1", "ws://tls.example/d", "wss://u:p@tls.example/d?token=1"),
        ("https://a.example?token=1", "wss://a.example/d?token=2", "wss://a.example/d?token=2"),
        ("https://u:p@a.example?token=1", "wss://node7.example/d", "wss://node7.example/d"),
    ],
)
def test_an_answer_seen_from_inside_is_reached_from_outside_and_secrets_stay_with_their_host(
    asked: str, answered: str, expected: str
) -> None:
    assert reachable(urlsplit(asked), urlsplit(answered)) == expected


async def test_something_that_accepts_and_never_answers_is_given_up(cdp_server: FakeCdpServer) -> None:
    cdp_server.on("Browser.getVersion", NEVER)
    with pytest.raises(EndpointUnreachable, match=r"answered no command within"):
        await attach(cdp_server.url, timeout=0.3)
    await cdp_server.connected(0)


async def test_something_that_is_no_browser_is_named_as_such(cdp_server: FakeCdpServer) -> None:
    async def chat(_: object) -> object:
        await cdp_server.send_raw("hello and welcome")
        return NEVER

    cdp_server.on("Browser.getVersion", chat)
    with pytest.raises(EndpointUnreachable, match="does not speak the Chrome DevTools Protocol"):
        await attach(cdp_server.url)
    await cdp_server.connected(0)


async def test_an_endpoint_without_a_version_is_still_a_browser(cdp_server: FakeCdpServer) -> None:
    cdp_server.on("Browser.getVersion", Refusal(-32601, "'Browser.getVersion' wasn't found"))
    connected = await attach(cdp_server.url)
    assert connected.product == ""
    await connected.close()


async def test_an_endpoint_that_ends_the_connection_at_once_says_why(cdp_server: FakeCdpServer) -> None:
    async def leave(_: object) -> object:
        await cdp_server.close_politely(1008, "session expired")
        return NEVER

    cdp_server.on("Browser.getVersion", leave)
    with pytest.raises(EndpointUnreachable, match="session expired"):
        await attach(cdp_server.url)


async def test_cancelling_leaves_no_connection(cdp_server: FakeCdpServer) -> None:
    cdp_server.on("Browser.getVersion", NEVER)
    attaching = asyncio.create_task(attach(cdp_server.url))
    await cdp_server.called("Browser.getVersion")
    attaching.cancel()
    await asyncio.gather(attaching, return_exceptions=True)
    await cdp_server.connected(0)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(data: bytes) -> Handler:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "HTTP status 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "HTTP status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "names no browser"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "names no browser"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{"webSocketDebuggerUrl": "file:"}', "names no browser"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b" " * 2_000_000, "not with HTTP"),
        (b"220 mail.example.com ESMTP\r\n", "not with HTTP"),
    ],
)
async def test_an_http_address_of_something_else_is_named_as_such(answer: bytes, says: str) -> None:
    server = await asyncio.start_server(answering(answer), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EndpointUnreachable, match=says) as refused:
            await attach(f"http://u:{SECRET}@127.0.0.1:{port}/{SECRET}?token={SECRET}")
    assert SECRET not in f"{refused.value!r} {refused.value.hint}"


async def test_an_http_address_where_nothing_listens_is_named_with_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(EndpointUnreachable, match="Nothing listens at http://127") as refused:
            await attach(f"http://127.0.0.1:{unused.getsockname()[1]}/?token={SECRET}")
    assert "--remote-debugging-port" in refused.value.hint
    assert SECRET not in f"{refused.value!r}"


async def test_an_http_address_that_never_answers_is_given_up() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, pytest.raises(EndpointUnreachable, match="did not answer"):
        await attach(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)


@pytest.mark.parametrize(
    "url", ["", "localhost:9222", "ftp://h/", "http://", "http://h:99999", "ws://u:sEcReT@:1/sEcReT", "chrome"]
)
def test_an_address_that_cannot_be_one_is_refused_before_anything_is_tried(url: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        CdpEndpoint(url)
    assert SECRET not in f"{refused.value!r}"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:9222", "http://localhost:9222"),
        ("http://localhost:9222/", "http://localhost:9222"),
        ("wss://user:sEcReT@host.example/sEcReT?token=sEcReT#sEcReT", "wss://host.example/…"),
        ("wss://connect.example?apiKey=sEcReT", "wss://connect.example/…"),
        ("ws://[::1]:9222/devtools/browser/sEcReT", "ws://[::1]:9222/…"),
        ("nonsense sEcReT", "an unreadable address"),
        ("http://[sEcReT", "an unreadable address"),
    ],
)
def test_of_an_address_scheme_host_and_port_are_shown(url: str, expected: str) -> None:
    assert shown(url) == expected


def test_an_endpoint_shows_no_secret_and_is_equal_by_what_was_configured() -> None:
    endpoint = CdpEndpoint(f"wss://u:{SECRET}@h.example/{SECRET}?t={SECRET}")
    assert SECRET not in f"{endpoint} {endpoint!r}"
    assert endpoint == CdpEndpoint(endpoint.url)
    assert endpoint != CdpEndpoint("wss://h.example")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.9.9.9", "::1"])
def test_these_hosts_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "localhost.example", "10.0.0.1", "0.0.0.0", "127.0.0.1.example"])
def test_these_hosts_are_not(host: str) -> None:
    assert not is_loopback(host)
