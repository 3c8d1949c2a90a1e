"""Sessions at Browserbase, against an imitation of its API; the service itself is never reached from here."""

import asyncio
import logging
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from fakes.browserbase_api import BrowserbaseApi
from fakes.cdp_server import NEVER, FakeCdpServer

from watchkeeper.supervisor.backends import BrowserbaseEndpoint, connect
from watchkeeper.supervisor.backends.browserbase import BrowserbaseSession
from watchkeeper.supervisor.errors import EndpointUnreachable

pytestmark = pytest.mark.anyio
HANG = 20.0
KEY, SIGNATURE = "bb_live_sEcReT", "sIgNaTuRe"


@pytest.fixture
def api(cdp_server: FakeCdpServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrowserbaseApi]:
    monkeypatch.setenv("BROWSERBASE_API_KEY", KEY)
    monkeypatch.delenv("BROWSERBASE_PROJECT_ID", raising=False)
    with BrowserbaseApi(KEY, f"{cdp_server.url}?signingKey={SIGNATURE}") as running:
        yield running


async def create(api: BrowserbaseApi, timeout: float = HANG, **settings: Any) -> BrowserbaseSession:
    session = await connect(BrowserbaseEndpoint(api_url=api.url, **settings), timeout=timeout)
    assert isinstance(session, BrowserbaseSession)
    return session


async def test_a_session_is_created_connected_to_and_released_once(
    api: BrowserbaseApi, cdp_server: FakeCdpServer
) -> None:
    session = await create(api)
    assert session.session_id == "session-1"
    assert session.product == "Chrome/156.0.0.0"
    assert session.owns_browser
    assert cdp_server.requests[0].path.endswith(f"?signingKey={SIGNATURE}")
    await session.close()
    await session.close()
    assert api.released == ["session-1"]
    assert session.release_error is None


async def test_settings_reach_the_api_and_what_is_not_set_is_left_to_the_project(api: BrowserbaseApi) -> None:
    await (await create(api)).close()
    assert api.requests[0] == ("/v1/sessions", {})
    await (await create(api, project_id="p1", keep_alive=True, timeout_s=600)).close()
    assert api.requests[2] == ("/v1/sessions", {"projectId": "p1", "keepAlive": True, "timeout": 600})
    assert api.requests[3] == ("/v1/sessions/session-2", {"projectId": "p1", "status": "REQUEST_RELEASE"})


async def test_the_project_may_come_from_the_environment(api: BrowserbaseApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSERBASE_PROJECT_ID", "p2")
    await (await create(api)).close()
    assert api.requests[0][1] == {"projectId": "p2"}


async def test_without_a_key_nothing_is_asked_and_the_variable_is_named(
    api: BrowserbaseApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BROWSERBASE_API_KEY")
    with pytest.raises(EndpointUnreachable) as refused:
        await create(api)
    assert "BROWSERBASE_API_KEY" in refused.value.hint
    assert api.requests == []


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (400, "projectId is required", "BROWSERBASE_PROJECT_ID"),
        (401, "Invalid API key", "BROWSERBASE_API_KEY"),
        (402, "Free plan minutes limit reached", "allowance"),
        (429, "You've exceeded your max concurrent sessions limit", "browser_close"),
        (500, f"failed for {KEY}", "network"),
    ],
)
async def test_a_refusal_says_what_the_service_said_and_what_to_do_and_never_the_key(
    api: BrowserbaseApi, status: int, message: str, hint: str
) -> None:
    api.refuse = (status, {"statusCode": status, "message": message})
    with pytest.raises(EndpointUnreachable, match=f"status {status}") as refused:
        await create(api)
    assert hint in refused.value.hint
    assert refused.value.status == status
    assert KEY not in f"{refused.value!r}"
    assert (message in refused.value.message) == (KEY not in message)


@pytest.mark.parametrize("answer", [{}, {"id": "s"}, {"id": "s", "connectUrl": "http://x"}, {"id": 1}])
async def test_an_answer_without_an_address_is_named(api: BrowserbaseApi, answer: dict[str, Any]) -> None:
    api.refuse = (201, answer)
    with pytest.raises(EndpointUnreachable, match="names no address"):
        await create(api)


async def test_a_session_that_cannot_be_connected_to_is_released(
    api: BrowserbaseApi, cdp_server: FakeCdpServer
) -> None:
    cdp_server.refuse = HTTPStatus.GONE
    with pytest.raises(EndpointUnreachable, match="status 410") as refused:
        await create(api)
    assert SIGNATURE not in f"{refused.value!r}"
    cdp_server.refuse = None
    cdp_server.on("Browser.getVersion", NEVER)
    with pytest.raises(EndpointUnreachable, match="answered no command"):
        await create(api, timeout=0.5)
    assert api.released == ["session-1", "session-2"]


async def test_a_session_whose_connecting_is_cancelled_is_released(
    api: BrowserbaseApi, cdp_server: FakeCdpServer
) -> None:
    cdp_server.on("Browser.getVersion", NEVER)
    connecting = asyncio.create_task(create(api))
    await cdp_server.called("Browser.getVersion")
    connecting.cancel()
    await asyncio.gather(connecting, return_exceptions=True)
    assert api.released == ["session-1"]


async def test_a_session_that_is_created_while_we_are_being_cancelled_is_released(api: BrowserbaseApi) -> None:
    api.may_answer.clear()
    connecting = asyncio.create_task(create(api))
    async with asyncio.timeout(HANG):
        while not api.created:  # noqa: ASYNC110 -- made in another thread
            await asyncio.sleep(0.005)
    connecting.cancel()
    await asyncio.sleep(0)
    api.may_answer.set()
    await asyncio.gather(connecting, return_exceptions=True)
    assert connecting.cancelled()
    assert api.released == ["session-1"]


async def test_a_release_that_fails_is_told_and_does_not_stop_the_closing(api: BrowserbaseApi) -> None:
    session = await create(api)
    api.refuse = (500, {"message": "down"})
    await session.close()
    assert session.release_error is not None
    assert "status 500" in session.release_error


async def test_neither_key_nor_signature_is_logged(api: BrowserbaseApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await (await create(api)).close()
    logged = "".join(record.getMessage() for record in caplog.records if record.name != "websockets.server")
    assert KEY not in logged
    assert SIGNATURE not in logged
    assert KEY not in f"{BrowserbaseEndpoint()!r} {BrowserbaseEndpoint()}"
