"""Resources through the official client, in both eras: what is listed, what reading gives, and what is refused."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fakes.cdp_server import NEVER
from fakes.fake_browser import FakeBrowser
from mcp import Client
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol import principal, resources
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.settings import Settings

from .conftest import Connect

pytestmark = pytest.mark.anyio
URL = {"url": "http://a.test/"}
OF_DEFAULT = [f"watchkeeper://tasks/default/{part}" for part in ("snapshot", "dialogs", "console")]


async def text(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    found: str = content.text  # type: ignore[union-attr]
    return found


async def parsed(client: Client, uri: str) -> Any:
    return json.loads(await text(client, uri))


async def refusal(client: Client, uri: str) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await client.read_resource(uri)
    return raised.value


async def test_the_status_and_each_live_task_are_listed(connect: Connect) -> None:
    async with connect() as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.subscribe and client.server_capabilities.resources.list_changed
        assert [r.uri for r in (await client.list_resources()).resources] == ["watchkeeper://status"]
        await client.call_tool("browser_navigate", URL)
        listed = (await client.list_resources()).resources
        assert [r.uri for r in listed] == ["watchkeeper://status", *OF_DEFAULT]
        assert all(r.title and r.description and r.mime_type and r.annotations for r in listed)
        await client.call_tool("browser_close", {})
        assert len((await client.list_resources()).resources) == 1


async def test_every_template_says_what_it_gives(connect: Connect) -> None:
    async with connect() as client:
        templates = (await client.list_resource_templates()).resource_templates
    assert [t.uri_template for t in templates] == [r.uri for r in resources.RESOURCES if "{" in r.uri]
    assert all(t.title and t.description and t.mime_type for t in templates)


async def test_a_long_list_comes_in_pages_and_loses_nobody(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE", 6)  # two tasks
    names = ["a", "b/c", "d e", "é?{x}", "z"]
    async with connect() as client:
        for name in names:
            await client.call_tool("browser_navigate", {**URL, "task_id": name})
        first = await client.list_resources()
        await client.call_tool("browser_close", {"task_id": "b/c"})  # the last of the page before ends meanwhile
        pages = [first]
        while pages[-1].next_cursor:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        uris = [r.uri for page in pages for r in page.resources]
        assert [len(page.resources) for page in pages] == [7, 6, 3]
        assert len(set(uris)) == len(uris) == 1 + 3 * len(names)
        for uri in uris:
            if "b%2Fc" not in uri:
                assert await text(client, uri)  # every address leads to its own task again
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="ä")


async def test_the_page_is_read_fenced_and_dialogs_first_also_while_one_is_open(
    connect: Connect, browser: FakeBrowser, dispatcher: Dispatcher
) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        supervisor = dispatcher.tasks.require("", "default")
        browser.on("Runtime.evaluate", NEVER)
        await browser.dialog(message='Sure?"\n\u202eevil')
        await supervisor.wait_for(lambda view: view.pending_dialogs or None, 10)
        page = await text(client, OF_DEFAULT[0])
        raw = await text(client, OF_DEFAULT[1])
    assert page.startswith('A dialog is open:\n- d-1: confirm "Sure?\\"\\n\\u202eevil"')
    assert "\u202e" not in page + raw
    [pending] = json.loads(raw)["pending_dialogs"]
    assert (pending["id"], pending["message"]) == ("d-1", 'Sure?"\n\u202eevil')


async def test_the_console_and_the_status_are_read(
    connect: Connect, browser: FakeBrowser, dispatcher: Dispatcher
) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        supervisor = dispatcher.tasks.require("", "default")
        line = {"type": "log", "args": [{"type": "string", "value": "hello"}], "executionContextId": 1, "timestamp": 1}
        await browser.emit("Runtime.consoleAPICalled", line, "S1")
        await supervisor.wait_for(lambda view: view.console_other or None, 10)
        console = await parsed(client, OF_DEFAULT[2])
        status = await parsed(client, "watchkeeper://status")
    assert [(e["level"], e["text"]) for e in console["entries"]] == [("log", "hello")]
    assert [task["task_id"] for task in status["tasks"]] == ["default"]


async def test_what_happened_meanwhile_is_kept_for_the_next_call(connect: Connect, dispatcher: Dispatcher) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        dispatcher.tasks.require("", "default").notice = "The browser was started again."
        assert "started again" not in "".join([await text(client, uri) for uri in OF_DEFAULT])
        result = await client.call_tool("browser_tabs", {"action": "list"})
    assert result.structured_content["notice"] == "The browser was started again."


@pytest.mark.parametrize(
    "uri",
    [
        "watchkeeper://nothing",
        "watchkeeper://tasks/default/cookies",
        "watchkeeper://tasks//snapshot",
        "watchkeeper://tasks/a/b/snapshot",
        "file:///etc/passwd",
        f"watchkeeper://tasks/{'x' * 65}/snapshot",
    ],
)
async def test_an_address_that_is_none_of_ours_is_refused_with_a_hint(connect: Connect, uri: str) -> None:
    async with connect() as client:
        error = await refusal(client, uri)
        modern = client.protocol_version == "2026-07-28"
    assert error.error.code == (-32602 if modern else -32002)
    assert error.error.data["uri"] == uri
    assert error.error.data["hint"] in error.error.message


async def test_reading_starts_no_browser_and_says_what_does(connect: Connect, browser: FakeBrowser) -> None:
    async with connect() as client:
        for uri in OF_DEFAULT:
            error = await refusal(client, uri)
            assert error.error.data["code"] == "no_task"
            assert "browser_navigate" in error.error.message
    assert browser.pages == 0


async def test_a_page_that_does_not_answer_ends_at_its_deadline_and_is_still_known(
    connect: Connect, browser: FakeBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    slow = replace(resources._TOOLS["browser_snapshot"], limit=lambda arguments, settings: 0.2)
    monkeypatch.setitem(resources._TOOLS, "browser_snapshot", slow)
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        for method in ("Runtime.evaluate", "Accessibility.getFullAXTree", "DOM.getDocument"):
            browser.on(method, NEVER)
        with anyio.fail_after(30):
            try:
                page = await text(client, OF_DEFAULT[0])
            except MCPError as error:
                assert error.error.data["code"] == "timeout"
            else:
                assert "cannot be read now" in page
        assert await parsed(client, OF_DEFAULT[1]) == {"pending_dialogs": [], "recent_dialogs": []}


async def test_declared_secrets_are_masked_in_what_is_read(browser: FakeBrowser) -> None:
    secret = {"PIN": {"value": "hunter2-hunter2", "hosts": "a.test"}}
    settings = Settings.model_validate({"browser": {"cdp_url": browser.url, "bridge": "never", "secrets": secret}})
    dispatcher = Dispatcher(settings)
    async with Client(make_server(dispatcher)) as client:
        await client.call_tool("browser_navigate", URL)
        supervisor = dispatcher.tasks.require("", "default")
        await browser.dialog(message="Is hunter2-hunter2 right?")
        await supervisor.wait_for(lambda view: view.pending_dialogs or None, 10)
        read = [await text(client, uri) for uri in OF_DEFAULT]
    await dispatcher.close()
    assert not any("hunter2" in one for one in read)
    assert "[secret:PIN]" in read[0] and "[secret:PIN]" in read[1]


@pytest.fixture
async def archiving(browser: FakeBrowser, tmp_path: Path) -> AsyncIterator[Dispatcher]:
    context = {"archive": True, "engines": {"compressor": {"path": str(tmp_path / "archive.db")}}}
    made = Dispatcher(
        Settings.model_validate({"browser": {"cdp_url": browser.url, "bridge": "never"}, "context": context})
    )
    made.prepare()
    yield made
    await made.close()


async def test_what_was_archived_is_read_in_pages(archiving: Dispatcher, browser: FakeBrowser) -> None:
    browser.on("DOM.getDocument", {"root": " ".join(map(str, range(20_000)))})
    async with Client(make_server(archiving)) as client:
        await client.call_tool("browser_navigate", URL)
        cut = await client.call_tool("browser_cdp", {"method": "DOM.getDocument"})
        uri: str | None = f"watchkeeper://archive/{cut.structured_content['archived']}"
        parts = []
        while uri is not None:
            page = await parsed(client, uri)
            parts.append(page["part"]["json"] if "part" in page else json.dumps(page["messages"][0]["message"]))
            uri = page.get("next")
        error = await refusal(client, "watchkeeper://archive/m999")
    assert len(parts) > 1
    assert "19999" in json.loads("".join(parts))["content"]
    assert error.error.data["code"] == "engine_tool_failed" and "m999" in error.error.message


async def test_the_archive_of_one_principal_is_read_by_no_other(
    archiving: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = archiving.conversations.keep("alice", "default", "only for alice", "browser_cdp")
    assert kept is not None
    for who, sees in (("alice", True), ("bob", False), ("", False)):
        token = AccessToken(token="t", client_id=who, scopes=[]) if who else None
        monkeypatch.setattr(principal, "get_access_token", lambda token=token: token)
        async with Client(make_server(archiving)) as client:
            ref = ResourceTemplateReference(type="ref/resource", uri=resources.ARCHIVED.uri)
            suggested = (await client.complete(ref, {"name": "id", "value": ""})).completion.values
            assert suggested == ([kept[0]] if sees else [])
            if sees:
                assert "only for alice" in await text(client, f"watchkeeper://archive/{kept[0]}")
            else:
                await refusal(client, f"watchkeeper://archive/{kept[0]}")


async def test_without_an_archive_its_addresses_say_which_setting_makes_one(connect: Connect) -> None:
    async with connect() as client:
        error = await refusal(client, "watchkeeper://archive/m1")
    assert "context.archive" in error.error.message
