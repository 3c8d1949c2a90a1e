"""The imitation of a hosted browser does what such services do; what is tested through it depends on that."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from fakes.hosted_proxy import HostedProxy, hosted_chromium

from watchkeeper.supervisor.backends import CdpEndpoint, Connected, connect
from watchkeeper.supervisor.errors import EndpointUnreachable, TransportClosed

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
HANG = 30.0


@pytest.fixture
async def hosted() -> AsyncIterator[HostedProxy]:
    async with hosted_chromium() as proxy:
        yield proxy


class Client:
    def __init__(self, connected: Connected) -> None:
        self.connected = connected
        self.events: list[dict[str, Any]] = []
        self._numbers = count(100)

    @classmethod
    async def attach(cls, hosted: HostedProxy) -> "Client":
        return cls(await connect(CdpEndpoint(hosted.url), timeout=HANG))

    async def call(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> Any:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self.connected.transport.send(json.dumps(message))
        async with asyncio.timeout(HANG):
            while (reply := json.loads(await self.connected.transport.receive())).get("id") != number:
                self.events.append(reply)
        return reply["result"]

    async def page(self) -> str:
        target = await self.call("Target.createTarget", {"url": "about:blank"})
        attached = await self.call("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        await self.call("Page.enable", {}, attached["sessionId"])
        return str(attached["sessionId"])


async def test_native_dialogs_are_dismissed_by_the_service(hosted: HostedProxy) -> None:
    client = await Client.attach(hosted)
    session = await client.page()
    for kind, result in (("confirm", False), ("prompt", None)):
        answer = await client.call("Runtime.evaluate", {"expression": f"{kind}('really?')"}, session)
        assert answer["result"].get("value") is result
    assert [dialog["type"] for dialog in hosted.dismissed] == ["confirm", "prompt"]
    assert [e["method"] for e in client.events if "Dialog" in e["method"]] == [
        "Page.javascriptDialogOpening",
        "Page.javascriptDialogClosed",
    ] * 2
    await client.connected.close()


async def test_messages_keep_their_order_under_latency(hosted: HostedProxy) -> None:
    client = await Client.attach(hosted)
    session = await client.page()
    hosted.latency_s = 0.02
    await client.call("Runtime.enable", {}, session)
    script = "for (let n = 0; n < 200; n++) console.log(n)"
    await client.call("Runtime.evaluate", {"expression": script}, session)
    await client.call("Runtime.evaluate", {"expression": "1"}, session)
    said = [e["params"]["args"][0]["value"] for e in client.events if e["method"] == "Runtime.consoleAPICalled"]
    assert said == list(range(200))
    await client.connected.close()


async def test_an_expired_signature_ends_the_connection_and_is_refused_until_it_is_renewed(hosted: HostedProxy) -> None:
    client = await Client.attach(hosted)
    old = hosted.url
    await hosted.expire()
    with pytest.raises(TransportClosed, match="session expired"):
        await client.call("Browser.getVersion")
    hosted.renew()
    with pytest.raises(EndpointUnreachable, match="status 401"):
        await connect(CdpEndpoint(old), timeout=HANG)
    again = await Client.attach(hosted)
    assert await again.call("Browser.getVersion")
    await client.connected.close()
    await again.connected.close()


async def test_a_dropped_connection_can_be_made_anew_and_a_stalled_one_is_noticed(hosted: HostedProxy) -> None:
    client = await Client.attach(hosted)
    hosted.drop()
    with pytest.raises(TransportClosed, match="broke off"):
        await client.call("Browser.getVersion")
    again = await Client.attach(hosted)
    await again.call("Browser.getVersion")
    hosted.stall()
    with pytest.raises(TransportClosed, match="no answer to a ping"):
        await again.call("Browser.getVersion")
    await client.connected.close()
    await again.connected.close()
