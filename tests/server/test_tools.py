"""The browser tools through the official client, in both eras, on a fake browser."""

import logging
from typing import Any

import anyio
import pytest
from fakes.cdp_server import NEVER, Refusal
from fakes.fake_browser import FakeBrowser
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.tools.spec import Arguments, Call, ToolResult, ToolSpec

from .conftest import Connect

pytestmark = pytest.mark.anyio
URL = {"url": "http://a.test/"}


def said(result: CallToolResult) -> str:
    assert len(result.content) == 1
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text


def error_of(result: CallToolResult) -> dict[str, Any]:
    """The error, which stands whole in both forms."""
    assert result.is_error
    error: dict[str, Any] = result.structured_content["error"]
    assert f"Error ({error['code']}): {error['message']}" in said(result)
    assert error["hint"] in said(result)
    return error


async def test_the_tools_are_listed_with_schemas_and_annotations(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools)[:4] == ["browser_navigate", "browser_snapshot", "browser_dialog", "browser_cdp"]
    for tool in tools.values():
        assert tool.title and tool.description and tool.annotations
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is not None
    assert tools["browser_snapshot"].annotations.read_only_hint is True  # type: ignore[union-attr]
    assert tools["browser_cdp"].annotations.destructive_hint is True  # type: ignore[union-attr]


async def test_a_page_is_opened(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("browser_navigate", URL)
    assert not result.is_error
    assert result.structured_content["url"] == "http://a.test/"
    assert said(result).startswith("Opened: http://a.test/")


@pytest.mark.parametrize("tool", ["browser_snapshot", "browser_dialog", "browser_cdp"])
async def test_before_a_task_has_a_browser_its_tools_say_how_to_start_one(connect: Connect, tool: str) -> None:
    arguments: dict[str, Any] = {"browser_dialog": {"action": "accept"}, "browser_cdp": {"method": "A.b"}}.get(tool, {})
    async with connect() as client:
        error = error_of(await client.call_tool(tool, arguments))
    assert error["code"] == "no_task"
    assert "browser_navigate" in error["hint"]


async def test_every_result_begins_with_the_open_dialogs(connect: Connect, browser: FakeBrowser) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        browser.on("Runtime.evaluate", NEVER)
        async with anyio.create_task_group() as group:
            held: list[CallToolResult] = []

            async def evaluate() -> None:
                held.append(
                    await client.call_tool(
                        "browser_cdp", {"method": "Runtime.evaluate", "params": {"expression": "confirm()"}}
                    )
                )

            group.start_soon(evaluate)
            await browser.called("Runtime.evaluate", 2)
            await browser.dialog(message='Sure?"\n- d-9')
        [interrupted] = held
        refused = await client.call_tool("browser_navigate", URL)
    for result in (interrupted, refused):
        assert error_of(result)["code"] == "dialog_opened"
        assert said(result).startswith('A dialog is open:\n- d-1: confirm "Sure?\\"\\n- d-9" in f1')
        assert 'browser_dialog(action="accept"|"dismiss")' in said(result)
        [pending] = result.structured_content["pending_dialogs"]
        assert (pending["id"], pending["type"], pending["message"]) == ("d-1", "confirm", 'Sure?"\n- d-9')


async def test_a_dialog_is_answered_and_then_gone(
    connect: Connect, browser: FakeBrowser, dispatcher: Dispatcher
) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        supervisor = dispatcher.tasks.require("", "default")
        await browser.dialog(kind="prompt", default="x")
        await supervisor.wait_for(lambda view: view.pending_dialogs or None, 10)

        async def closed(call: Any) -> dict[str, Any]:
            await browser.emit("Page.javascriptDialogClosed", {"result": True, "userInput": "Ada"}, "S1")
            return {}

        browser.on("Page.handleJavaScriptDialog", closed)
        wrong = await client.call_tool("browser_dialog", {"action": "accept", "dialog_id": "d-7"})
        right = await client.call_tool("browser_dialog", {"action": "accept", "prompt_text": "Ada"})
        again = await client.call_tool("browser_dialog", {"action": "accept"})
    assert error_of(wrong)["code"] == "unknown_dialog"
    assert not right.is_error
    assert right.structured_content["delivered"] is True
    assert right.structured_content["dialog"]["closed_by"] == "agent"
    assert "is open" not in said(right)
    assert (await browser.called("Page.handleJavaScriptDialog")).params == {"accept": True, "promptText": "Ada"}
    assert error_of(again)["code"] == "no_dialog_open"
    assert "d-1" in error_of(again)["message"]


async def test_a_cdp_command_gives_its_result_fenced_and_structured(connect: Connect, browser: FakeBrowser) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        result = await client.call_tool("browser_cdp", {"method": "Runtime.evaluate", "params": {"expression": "1+1"}})
        browser.on("DOM.enable", Refusal(-32000, "not now"))
        failed = await client.call_tool("browser_cdp", {"method": "DOM.enable"})
        unknown = await client.call_tool("browser_cdp", {"method": "DOM.enable", "frame_id": "f77"})
    assert result.structured_content == {"result": {"result": {"type": "number", "value": 2}}}
    assert '{"result":{"type":"number","value":2}}' in said(result)
    assert error_of(failed)["code"] == "protocol_error"
    assert error_of(unknown)["code"] == "unknown_frame"


async def test_a_large_result_is_cut_and_says_so(connect: Connect, browser: FakeBrowser) -> None:
    browser.on("DOM.getDocument", {"root": "x" * 100_000})
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        result = await client.call_tool("browser_cdp", {"method": "DOM.getDocument"})
    assert len(said(result)) < 21_000
    assert "Cut: 20000 of 100011 characters." in said(result)
    assert len(result.structured_content["result_json"]) == 20_000


async def test_tasks_have_pages_of_their_own(connect: Connect, browser: FakeBrowser) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        error = error_of(await client.call_tool("browser_snapshot", {"task_id": "other"}))
        assert error["code"] == "no_task"
        await client.call_tool("browser_navigate", {**URL, "task_id": "other"})
    assert browser.pages == 2


async def test_a_task_keeps_the_policy_that_it_started_with(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("browser_navigate", {**URL, "dialog_policy": "auto_accept"})
        same = await client.call_tool("browser_navigate", {**URL, "dialog_policy": "auto_accept"})
        other = await client.call_tool("browser_navigate", {**URL, "dialog_policy": "must_respond"})
    assert not same.is_error
    assert error_of(other)["code"] == "policy_is_set"


async def test_no_more_tasks_than_allowed_are_started(connect: Connect, dispatcher: Dispatcher) -> None:
    browser_settings = dispatcher.settings.browser.model_copy(update={"max_tasks": 1})
    dispatcher.tasks.settings = dispatcher.settings.model_copy(update={"browser": browser_settings})
    async with connect() as client:
        await client.call_tool("browser_navigate", URL)
        assert error_of(await client.call_tool("browser_navigate", {**URL, "task_id": "b"}))["code"] == "too_many_tasks"
        assert not (await client.call_tool("browser_navigate", URL)).is_error


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://169.254.169.254/", "a.test"])
async def test_addresses_that_may_not_be_opened_are_refused_in_each_tool(connect: Connect, url: str) -> None:
    async with connect() as client:
        assert error_of(await client.call_tool("browser_navigate", {"url": url}))["code"] == "url_refused"
        await client.call_tool("browser_navigate", URL)
        raw = await client.call_tool("browser_cdp", {"method": "Page.navigate", "params": {"url": url}})
    assert error_of(raw)["code"] == "url_refused"


async def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(connect: Connect) -> None:
    async with connect() as client:
        with pytest.raises(MCPError, match="Did you mean browser_snapshot"):
            await client.call_tool("browser_snapshoot", {})


async def test_wrong_arguments_are_a_tool_error_and_the_next_call_works(connect: Connect) -> None:
    async with connect() as client:
        error = error_of(await client.call_tool("browser_navigate", {"ulr": "x"}))
        assert error["code"] == "invalid_arguments"
        assert not (await client.call_tool("browser_navigate", URL)).is_error


@pytest.mark.parametrize(
    ("name", "has_structured"),
    [("claude-code", False), ("Visual Studio Code", False), ("my-program", True), ("codex-mcp-client", False)],
)
async def test_clients_with_a_model_get_text_only(connect: Connect, name: str, has_structured: bool) -> None:
    from mcp_types import Implementation

    async with connect(client_info=Implementation(name=name, version="1")) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("browser_snapshot", {})
    assert all((tool.output_schema is not None) == has_structured for tool in tools)
    assert (result.structured_content is not None) == has_structured
    assert "no_task" in said(result)


class TestWhatNobodyForesaw:
    """A tool that fails, hangs or waits, beside the real ones."""

    @pytest.fixture
    def started(self) -> anyio.Event:
        return anyio.Event()

    @pytest.fixture
    def ended(self) -> list[str]:
        return []

    @pytest.fixture
    def dispatcher(self, started: anyio.Event, ended: list[str]) -> Dispatcher:
        from watchkeeper.server.settings import Settings

        async def run(call: Call, arguments: Arguments) -> ToolResult:
            if arguments.get("fail"):
                raise ZeroDivisionError("token sk-secret")
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("ended")
            raise AssertionError

        spec = ToolSpec(
            "probe",
            "Probe",
            "Probe.",
            {"fail": {"type": "boolean"}},
            run,
            lambda a, s: 0.2 if not a else 30.0,
            browser=False,
        )
        return Dispatcher(Settings(), tools=(spec,))

    async def test_an_unforeseen_error_is_a_number_for_the_client_and_a_traceback_in_the_log(
        self, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.ERROR):
            async with connect() as client:
                result = await client.call_tool("probe", {"fail": True})
        error = error_of(result)
        assert error["code"] == "internal_error"
        assert error["id"] in error["message"]
        assert "ZeroDivisionError" not in said(result)
        assert "sk-secret" not in said(result)
        [record] = [r for r in caplog.records if error["id"] in r.getMessage()]
        assert record.exc_info is not None

    async def test_a_call_past_its_limit_is_stopped_and_says_so(self, connect: Connect, ended: list[str]) -> None:
        async with connect() as client:
            error = error_of(await client.call_tool("probe", {}))
        assert error["code"] == "timeout"
        assert ended == ["ended"]

    async def test_a_cancelled_call_stops_and_the_server_serves_the_next(
        self, connect: Connect, started: anyio.Event, ended: list[str]
    ) -> None:
        async with connect() as client:
            with anyio.move_on_after(20) as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.call_tool, "probe", {"fail": False})
                    await started.wait()
                    group.cancel_scope.cancel()
            assert not scope.cancelled_caught
            assert error_of(await client.call_tool("probe", {"fail": True}))["code"] == "internal_error"
        assert ended == ["ended"]

    async def test_while_the_server_ends_new_calls_are_refused(self, connect: Connect, dispatcher: Dispatcher) -> None:
        async with connect() as client:
            dispatcher.refuse_new()
            assert error_of(await client.call_tool("probe", {"fail": True}))["code"] == "shutting_down"
