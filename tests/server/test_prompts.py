"""Prompts and completions, in both eras."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fakes.fake_browser import FakeBrowser
from fakes.hearing import hearing
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol import prompts
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.settings import Settings

from .conftest import ERAS, Connect

pytestmark = pytest.mark.anyio
URL = {"url": "http://a.test/"}
ARCHIVE = "watchkeeper://archive/{id}{?cursor}"
SNAPSHOT = "watchkeeper://tasks/{task_id}/snapshot"


async def written(client: Client, name: str, **given: str) -> str:
    [message] = (await client.get_prompt(name, given)).messages
    assert message.role == "user"
    text: str = message.content.text  # type: ignore[union-attr]
    return text


async def suggested(client: Client, ref: Any, name: str, typed: str = "", **context: str) -> list[str]:
    answer = await client.complete(ref, {"name": name, "value": typed}, context or None)
    return list(answer.completion.values)


def archiving_in(browser: FakeBrowser, folder: Path, **server: Any) -> Dispatcher:
    context = {"archive": True, "engines": {"compressor": {"path": str(folder / "archive.db")}}}
    options = {"browser": {"cdp_url": browser.url, "bridge": "never"}, "context": context, "server": server}
    made = Dispatcher(Settings.model_validate(options))
    made.prepare()
    return made


@pytest.fixture
async def archiving(browser: FakeBrowser, tmp_path: Path) -> AsyncIterator[Dispatcher]:
    made = archiving_in(browser, tmp_path)
    yield made
    await made.close()


async def test_prompts_are_listed_with_their_arguments(connect: Connect) -> None:
    async with connect() as client:
        listed = (await client.list_prompts()).prompts
    assert [p.name for p in listed] == ["check_page", "browser_job", "decide_dialog"]
    assert all(p.title and p.description for p in listed)
    assert [(a.name, a.required) for a in listed[1].arguments or ()] == [
        ("job", True),
        ("url", False),
        ("task_id", False),
    ]


@pytest.mark.parametrize("toolsets", [["core"], ["core", "actions"], ["core", "actions", "capture", "state"]])
async def test_a_prompt_says_what_the_person_typed_and_names_tools_that_exist(
    browser: FakeBrowser, tmp_path: Path, toolsets: list[str]
) -> None:
    archiving = archiving_in(browser, tmp_path, toolsets=toolsets)
    tools = {spec.name for spec in archiving.offered()}
    async with Client(make_server(archiving)) as client:
        for prompt in (await client.list_prompts()).prompts:
            given = {argument.name: f"typed-{argument.name}" for argument in prompt.arguments or ()}
            text = await written(client, prompt.name, **given)
            assert all(value in text for value in given.values())
            named = {word.strip("(),.;:") for word in text.split() if word.startswith(("browser_", "archive_"))}
            assert named and named <= tools, prompt.name
    await archiving.close()


async def test_what_is_missing_or_unknown_is_refused_in_a_sentence(connect: Connect) -> None:
    async with connect() as client:
        for name, given, said in (
            ("browser_job", {}, "'job' is missing"),
            ("browser_job", {"job": "  "}, "'job' is missing"),
            ("browser_job", {"job": "x", "jbo": "y"}, "unknown argument 'jbo'"),
            ("browser_job", {"job": "x" * 10_001}, "more than 10000"),
            ("check_pgae", {}, "Did you mean check_page"),
        ):
            with pytest.raises(MCPError, match=said) as raised:
                await client.get_prompt(name, given)
            assert raised.value.error.code == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_come_and_go_with_their_tools_and_that_is_told(
    dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    found: set[str] = set()
    monkeypatch.setattr(dispatcher.tasks, "capabilities", lambda: frozenset(found))
    server = make_server(dispatcher)
    async with hearing(lambda era, **options: Client(server, mode=era, **options), era) as (client, heard):
        assert (await client.list_prompts()).prompts == []
        found.update({"cdp", "dialogs"})
        assert await server.offer.look()
        await heard.until("prompts", "tools")
        assert len((await client.list_prompts()).prompts) == 3


async def test_task_ids_and_addresses_are_suggested(connect: Connect, dispatcher: Dispatcher) -> None:
    async with connect() as client:
        for task_id in ("work", "shop", "workshop"):
            await client.call_tool("browser_navigate", {"url": f"http://{task_id}.test/", "task_id": task_id})
        template = ResourceTemplateReference(type="ref/resource", uri=SNAPSHOT)
        job = PromptReference(type="ref/prompt", name="browser_job")
        assert await suggested(client, template, "task_id") == ["shop", "work", "workshop"]
        assert await suggested(client, template, "task_id", "SH") == ["shop", "workshop"]
        assert await suggested(client, job, "task_id", "work") == ["work", "workshop"]
        assert await suggested(client, job, "url") == [f"http://{name}.test/" for name in ("shop", "work", "workshop")]
        assert await suggested(client, job, "url", task_id="work") == ["http://work.test/"]
        assert await suggested(client, job, "job", "buy") == []
        for ref, name in ((job, "nothing"), (ResourceTemplateReference(type="ref/resource", uri="x://y"), "task_id")):
            with pytest.raises(MCPError):
                await suggested(client, ref, name)


async def test_more_than_a_hundred_suggestions_are_cut_and_that_is_said(
    connect: Connect, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher.tasks, "live", lambda who: tuple(f"t{number:03}" for number in range(150)))
    async with connect() as client:
        ref = ResourceTemplateReference(type="ref/resource", uri=SNAPSHOT)
        answer = (await client.complete(ref, {"name": "task_id", "value": "t"})).completion
    assert (len(answer.values), answer.total, answer.has_more) == (100, 150, True)


async def test_archived_ids_are_suggested_the_newest_first(archiving: Dispatcher) -> None:
    made = [archiving.conversations.keep("", task, "x" * 9, "browser_cdp") for task in ("a", "b", "b")]
    handles = [kept[0] for kept in made if kept is not None]
    async with Client(make_server(archiving)) as client:
        archived = ResourceTemplateReference(type="ref/resource", uri=ARCHIVE)
        found = await suggested(client, archived, "id")
        pick_up = PromptReference(type="ref/prompt", name="pick_up")
        assert len(await suggested(client, pick_up, "session_id", "browser")) == 2
    assert sorted(found) == sorted(handles) and len(handles) == 3
    assert found.index(handles[2]) < found.index(handles[1])
    assert archiving.conversations.kept("", 2) == found[:2]


async def test_without_an_archive_nothing_of_one_is_suggested_or_offered(connect: Connect) -> None:
    async with connect() as client:
        assert await suggested(client, ResourceTemplateReference(type="ref/resource", uri=ARCHIVE), "id") == []
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("pick_up", {})
    assert "pick_up" in {prompt.name for prompt in prompts.PROMPTS}
