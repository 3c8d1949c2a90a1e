"""Resources, subscriptions and consent on a real browser: pushed by what a page does, in both eras at once."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import mcp_types as types
import pytest
from fakes.hearing import Heard, hearing
from fakes.site import Site
from mcp import Client

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import WatchkeeperServer, make_server
from watchkeeper.server.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
GUARD_S = 60.0
SNAPSHOT, DIALOGS, CONSOLE = (f"watchkeeper://tasks/default/{part}" for part in ("snapshot", "dialogs", "console"))
PAGE = """<title>Shop</title><h1>Basket</h1>
<button onclick="document.title = confirm('Delete it?') ? 'deleted' : 'kept'">Delete</button>
<button onclick="console.error('it broke')">Break</button>"""


@pytest.fixture
async def dispatcher() -> AsyncIterator[Dispatcher]:
    asked = {"ask_person": ["dialogs"]}
    made = Dispatcher(Settings.model_validate({"browser": {"headless": True}, "server": asked}))
    yield made
    with anyio.fail_after(GUARD_S):
        await made.close()


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    text: str = content.text  # type: ignore[union-attr]
    return text


async def click(client: Client, name: str) -> Any:
    page = await read(client, SNAPSHOT)
    ref = next(line for line in page.splitlines() if f'button "{name}"' in line).split()[0].lstrip("- ")
    return await client.call_tool("browser_click", {"ref": ref})


async def until(client: Client, heard: Heard, uri: str, text: str) -> None:
    """Read when told that there is something new, until it has the text."""
    while True:
        heard.forget(uri)  # before it is read: what is told meanwhile counts
        if text in await read(client, uri):
            return
        await heard.until(uri)


async def test_what_a_page_does_is_told_and_read_in_both_eras_and_a_person_decides(
    dispatcher: Dispatcher, site: Site
) -> None:
    site.pages["/"] = PAGE
    server: WatchkeeperServer = make_server(dispatcher)
    asked: list[str] = []

    async def dismiss(context: Any, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "dismiss"})

    def opened(era: str, **options: Any) -> Client:
        return Client(server, mode=era, read_timeout_seconds=GUARD_S, elicitation_callback=dismiss, **options)

    uris = [SNAPSHOT, DIALOGS, CONSOLE]
    async with hearing(opened, "auto", uris) as (new, told_new), hearing(opened, "legacy", uris) as (old, told_old):
        both = ((new, told_new), (old, told_old))
        assert not (await new.call_tool("browser_navigate", {"url": f"http://127.0.0.1:{site.port}/"})).is_error
        for client, heard in both:
            await heard.until("resources", SNAPSHOT)
            await until(client, heard, SNAPSHOT, "Basket")
        await click(new, "Break")
        for client, heard in both:
            await until(client, heard, CONSOLE, "it broke")
        for era, (client, _) in enumerate(both):
            await click(client, "Delete")
            for other, heard in both:
                await until(other, heard, DIALOGS, '"opened_at"')
                open_now = json.loads(await read(other, DIALOGS))["pending_dialogs"]
                assert [dialog["message"] for dialog in open_now] == ["Delete it?"]
                assert (await read(other, SNAPSHOT)).startswith("A dialog is open:"), "reading waits for no dialog"
            answered = await client.call_tool("browser_dialog", {"action": "accept"})
            assert answered.structured_content["dialog"]["response"] == {"action": "dismiss"}, era
            for other, heard in both:
                await until(other, heard, DIALOGS, '"pending_dialogs": []')
        supervisor = dispatcher.tasks.require("", "default")
        assert await supervisor.evaluate("document.title") == "kept"
        await new.call_tool("browser_close", {})
        for client, heard in both:
            await heard.until("resources")
            assert [r.uri for r in (await client.list_resources()).resources] == ["watchkeeper://status"]
    assert len(asked) == 2 and all("Delete it?" in message for message in asked)
