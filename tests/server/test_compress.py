"""compress_context through the official client: every way in, every way out, and nothing shared that should not be."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.security.files import transcript_file
from watchkeeper.server.settings import Settings

from .conftest import Connect

pytestmark = pytest.mark.anyio
SAMPLE = Path(__file__).parents[2] / "server/watchkeeper/server/demo/transcript.json"
MESSAGES: list[dict[str, Any]] = json.loads(SAMPLE.read_text("utf-8"))
TARGET = {"mode": "force", "target_tokens": 4000}


@pytest.fixture
def dispatcher(tmp_path: Path) -> Dispatcher:
    return Dispatcher(Settings.model_validate({"server": {"allowed_dirs": [str(tmp_path)]}}))


def said(result: CallToolResult) -> str:
    return result.content[0].text  # type: ignore[union-attr,no-any-return]


def error_code(result: CallToolResult) -> str:
    assert result.is_error
    return str(result.structured_content["error"]["code"])


async def test_messages_come_back_smaller_with_a_report_in_both_forms(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("compress_context", {"messages": MESSAGES, **TARGET})
    found = result.structured_content
    assert found["report"]["compressed"] is True
    assert 0 < found["report"]["tokens_after"] <= 4000 < found["report"]["tokens_before"]
    assert found["messages"][-1] == MESSAGES[-1]
    assert "Compressed: " in said(result)
    assert json.dumps(found["messages"], ensure_ascii=False) in said(result)


async def test_what_is_not_due_is_left_alone_and_says_why(connect: Connect) -> None:
    async with connect() as client:
        result = await client.call_tool("compress_context", {"messages": MESSAGES, "current_tokens": 10})
    assert result.structured_content["report"]["compressed"] is False
    assert "threshold" in result.structured_content["report"]["reason"]
    assert result.structured_content["messages"] == MESSAGES
    assert "Keep your messages as they are." in said(result)


async def test_a_transcript_gives_a_summary_to_start_afresh_with(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "talk.json").write_text(SAMPLE.read_text("utf-8"))
    async with connect() as client:
        arguments = {"transcript": str(tmp_path / "talk.json"), **TARGET}
        result = await client.call_tool("compress_context", arguments)
    summary = result.structured_content["summary"]
    assert "HARB-2291" in summary
    assert "You are a careful engineer" not in summary
    assert "messages" not in result.structured_content
    assert summary in said(result)


async def test_a_transcript_can_be_written_to_a_file_in_its_own_form(connect: Connect, tmp_path: Path) -> None:
    lines = "".join(json.dumps(message) + "\n" for message in MESSAGES)
    (tmp_path / "talk.jsonl").write_text(lines)
    async with connect() as client:
        arguments = {"transcript": str(tmp_path / "talk.jsonl"), "output": "file", **TARGET}
        result = await client.call_tool("compress_context", arguments)
    written = Path(result.structured_content["file"])
    assert written.parent == tmp_path.resolve()
    assert json.loads(written.read_text().splitlines()[0])["role"] == "system"
    if os.name == "posix":
        assert written.stat().st_mode & 0o077 == 0


async def test_a_dry_run_changes_nothing_and_gives_the_report_only(connect: Connect) -> None:
    async with connect() as client:
        arguments = {"messages": MESSAGES, "mode": "dry_run", "target_tokens": 4000, "session_id": "s"}
        result = await client.call_tool("compress_context", arguments)
    assert set(result.structured_content) == {"report"}


async def test_files_outside_of_the_allowed_folders_are_refused_whether_they_exist_or_not(
    connect: Connect, tmp_path: Path
) -> None:
    (tmp_path / "link.json").symlink_to(SAMPLE)
    async with connect() as client:
        for name in (SAMPLE, "/nowhere/x.json", tmp_path / "link.json", tmp_path / ".." / "x.json", "relative.json"):
            result = await client.call_tool("compress_context", {"transcript": str(name)})
            assert error_code(result) == "path_refused", name
        missing = await client.call_tool("compress_context", {"transcript": str(tmp_path / "x.json")})
    assert error_code(missing) == "transcript_not_found"


def test_sessions_of_claude_code_can_be_named_over_stdio_only() -> None:
    from watchkeeper.server.errors import ToolError

    with pytest.raises(ToolError, match="over stdio only"):
        transcript_file("claude-code:latest", Settings.model_validate({"server": {"transport": "http"}}))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_arguments"),
        ({"messages": MESSAGES, "transcript": "x"}, "invalid_arguments"),
        ({"messages": [], "mode": "sideways"}, "invalid_arguments"),
        ({"messages": ["x"]}, "invalid_arguments"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "nobody", "content": "b"}]}, "invalid_messages"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "invalid_messages"),
    ],
)
async def test_what_does_not_fit_is_refused(connect: Connect, arguments: dict[str, Any], code: str) -> None:
    async with connect() as client:
        assert error_code(await client.call_tool("compress_context", arguments)) == code


async def test_calls_without_a_session_leave_nothing_behind(connect: Connect, dispatcher: Dispatcher) -> None:
    async with connect() as client:
        await client.call_tool("compress_context", {"messages": MESSAGES, **TARGET})
        assert dispatcher.conversations.host("").sessions() == []
        await client.call_tool("compress_context", {"messages": MESSAGES, "session_id": "kept", **TARGET})
        assert dispatcher.conversations.host("").sessions() == ["kept"]
        ended = await client.call_tool("compress_context", {"session_id": "kept", "session": "end"})
        again = await client.call_tool("compress_context", {"session_id": "kept", "session": "end"})
    assert (ended.structured_content["ended"], again.structured_content["ended"]) == (True, False)


async def test_marks_for_prompt_caching_are_set_where_they_are_taken(connect: Connect) -> None:
    async with connect() as client:
        arguments = {"messages": MESSAGES, "provider": "anthropic", "model": "claude-sonnet-4", **TARGET}
        result = await client.call_tool("compress_context", arguments)
    assert result.structured_content["report"]["cache"]["state"] == "enabled"
    assert json.dumps(result.structured_content["messages"]).count("cache_control") == 4


async def test_progress_is_reported_to_whoever_asks(connect: Connect) -> None:
    told: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    async with connect() as client:
        await client.call_tool("compress_context", {"messages": MESSAGES, **TARGET}, progress_callback=progress)
        with anyio.fail_after(20):
            while not told:
                await anyio.lowlevel.checkpoint()
    assert all(0 <= done <= 1 for done in told)


class TestAnArchive:
    """The tools that come with an engine or an archive."""

    @pytest.fixture(params=["compressor", "lcm"])
    def dispatcher(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        context = {"engine": request.param, "archive": request.param == "compressor"}
        made = Dispatcher(Settings.model_validate({"context": context, "compression": {"context_length": 16_000}}))
        made.prepare()
        return made

    async def test_what_was_compressed_is_found_and_expanded_again(self, dispatcher: Dispatcher) -> None:
        prefix = "lcm" if dispatcher.settings.context.engine == "lcm" else "archive"
        async with Client(make_server(dispatcher), mode="auto") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert {f"{prefix}_grep", f"{prefix}_expand"} <= set(names)
            compressed = await client.call_tool("compress_context", {"messages": MESSAGES, "mode": "force"})
            assert not compressed.is_error, said(compressed)
            found = await client.call_tool(f"{prefix}_grep", {"query": "refunds-2026-03-08.csv"})
            assert not found.is_error, said(found)
            hit = found.structured_content["result"]["found"][0]["hits"][0]
            whole = await client.call_tool(f"{prefix}_expand", {"id": hit["id"]})
            wrong = await client.call_tool(f"{prefix}_expand", {"id": "m999999"})
        assert "refunds-2026-03-08.csv" in said(whole)
        assert wrong.is_error
        await dispatcher.close()

    async def test_principals_do_not_find_each_others_words(self, dispatcher: Dispatcher) -> None:
        if dispatcher.settings.context.engine == "lcm":
            tool = "lcm_grep"
        else:
            tool = "archive_grep"

        async def silent(done: float, total: float | None = None, message: str | None = None) -> None:
            return None

        for principal in ("alice", "bob"):
            text = f"the word of {principal} is quicksilver"
            messages = [MESSAGES[0], {"role": "user", "content": text}, *MESSAGES[2:]]
            reply = await dispatcher.call("compress_context", {"messages": messages, **TARGET}, principal, silent)
            assert not reply.is_error, reply.text
        found = await dispatcher.call(tool, {"query": "quicksilver", "all_sessions": True}, "bob", silent)
        assert "bob" in found.text
        assert "alice" not in found.text
        await dispatcher.close()


async def test_an_engine_that_cannot_be_had_is_an_error_at_the_start() -> None:
    from watchkeeper.context import ContextError

    dispatcher = Dispatcher(Settings.model_validate({"context": {"engine": "nosuch"}}))
    with pytest.raises(ContextError, match="nosuch"):
        dispatcher.prepare()


CLASHING = """
from watchkeeper.context.engine import ContextEngine

class Clashing(ContextEngine):
    name = "clashing"

    def update_from_response(self, usage):
        pass

    def should_compress(self, prompt_tokens=None):
        return False

    def compress(self, messages, current_tokens=None, focus_topic=None):
        return messages

    def get_tool_schemas(self):
        return [{"name": "browser_click", "description": "not ours", "parameters": {"type": "object"}}]
"""


@pytest.mark.parametrize("toolsets", ["core,actions", "core"])
async def test_an_engine_whose_tool_has_the_name_of_an_offered_one_is_refused_at_the_start(
    tmp_path: Path, toolsets: str
) -> None:
    from watchkeeper.context import ContextError

    plugin = tmp_path / "context_engine" / "clashing"
    plugin.mkdir(parents=True)
    (plugin / "plugin.yaml").write_text("name: clashing\ndescription: takes a name\nversion: '1'\n")
    (plugin / "__init__.py").write_text(CLASHING)
    context = {"engine": "clashing", "plugin_dirs": [str(tmp_path)]}
    dispatcher = Dispatcher(Settings.model_validate({"context": context, "server": {"toolsets": toolsets}}))
    if toolsets == "core":  # what the error's hint proposes
        dispatcher.prepare()
    else:
        with pytest.raises(ContextError, match="'clashing' offers a tool 'browser_click'") as refused:
            dispatcher.prepare()
        assert refused.value.code == "tool_name_taken"
        assert "toolset" in refused.value.hint
    await dispatcher.close()
