"""What is cut off a large result is in the archive, when there is one, and the result says how to get it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fakes.fake_browser import FakeBrowser

from watchkeeper.server.dispatch import Dispatcher, Reply
from watchkeeper.server.settings import Settings

pytestmark = pytest.mark.anyio
SECRET = "correct-horse-battery"
LARGE = "".join(f'row {number}: \u00fc \u20ac \U0001f600 \\ "q" \n\t' for number in range(4_000)) + SECRET
EXPRESSION = "document\n.body.innerText"
CALLS = {
    "browser_cdp": {"method": "Runtime.evaluate", "params": {"expression": EXPRESSION}},
    "browser_evaluate": {"expression": EXPRESSION},
}


async def silent(done: float, total: float | None = None, message: str | None = None) -> None:
    return None


async def called(dispatcher: Dispatcher, name: str, principal: str = "", **arguments: Any) -> Reply:
    return await dispatcher.call(name, arguments, principal, silent)


def made(browser: FakeBrowser, context: dict[str, Any]) -> Dispatcher:
    settings = {
        "browser": {
            "cdp_url": browser.url,
            "bridge": "never",
            "secrets": {"word": {"value": SECRET, "hosts": "a.test"}},
        },
        "context": context,
    }
    dispatcher = Dispatcher(Settings.model_validate(settings))
    dispatcher.prepare()
    browser.on("Runtime.evaluate", {"result": {"type": "string", "value": LARGE}})
    return dispatcher


@pytest.fixture(params=["compressor", "lcm"])
async def dispatcher(request: pytest.FixtureRequest, browser: FakeBrowser, tmp_path: Path) -> AsyncIterator[Dispatcher]:
    engine = request.param
    path = tmp_path / "archive.db"
    made_here = made(browser, {"engine": engine, "archive": True, "engines": {engine: {"path": str(path)}}})
    yield made_here
    await made_here.close()


@pytest.mark.parametrize("tool", CALLS)
async def test_the_tool_that_the_note_names_gives_the_whole_back_byte_for_byte(
    dispatcher: Dispatcher, tool: str
) -> None:
    await called(dispatcher, "browser_navigate", url="http://a.test/")
    cut = await called(dispatcher, tool, **CALLS[tool])
    assert not cut.is_error, cut.text
    named = re.search(r'(\w+)\(id="(m\d+)"\)', cut.text.rpartition("[end ")[2])
    assert named, cut.text[-300:]
    expand, handle = named.groups()
    assert cut.structured["archived"] == handle
    assert named.group() in cut.structured["note"]

    parts, cursor = [], ""
    for _ in range(200):
        reply = await called(dispatcher, expand, id=handle, cursor=cursor, max_tokens=20_000)
        assert not reply.is_error, reply.text
        page = reply.structured["result"]
        parts.append(page["part"]["json"])
        cursor = page.get("next", "")
        if not cursor:
            break
    content = json.loads("".join(parts))["content"]
    (shown,) = (text for key, text in cut.structured.items() if key.endswith("_json"))
    assert content.startswith(shown)
    whole = json.loads(content)
    assert (whole if tool == "browser_evaluate" else whole["result"]["value"]) == LARGE.replace(SECRET, "[secret:word]")
    assert json.dumps(whole, ensure_ascii=False, separators=(",", ":")) == content

    grep = expand.replace("expand", "grep")
    found = await called(dispatcher, grep, query=f"{tool} innerText", all_sessions=True)
    assert f'"{handle}"' in json.dumps(found.structured)


async def test_one_principal_does_not_reach_what_was_cut_for_another(dispatcher: Dispatcher) -> None:
    expand = "lcm_expand" if dispatcher.settings.context.engine == "lcm" else "archive_expand"
    await called(dispatcher, "browser_navigate", "alice", url="http://a.test/")
    cut = await called(dispatcher, "browser_evaluate", "alice", expression=EXPRESSION)
    handle = cut.structured["archived"]
    assert (await called(dispatcher, expand, "bob", id=handle)).is_error
    assert not (await called(dispatcher, expand, "alice", id=handle)).is_error


async def test_without_an_archive_nothing_is_kept_and_no_handle_named(
    browser: FakeBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    dispatcher = made(browser, {})
    await called(dispatcher, "browser_navigate", url="http://a.test/")
    cut = await called(dispatcher, "browser_evaluate", expression=EXPRESSION)
    assert cut.structured["note"].startswith("Cut: 20000 of ")
    assert "archive" not in cut.text.rpartition("[end ")[2]
    assert "archived" not in cut.structured
    assert not list(tmp_path.rglob("*.db"))
    await dispatcher.close()


async def test_an_archive_that_fails_is_told_and_the_result_is_given_all_the_same(dispatcher: Dispatcher) -> None:
    from watchkeeper.context.store import ArchiveError

    def full(*_: Any) -> None:
        raise ArchiveError("archive_unusable", "the disk is full")

    dispatcher.conversations.keep = full  # type: ignore[method-assign, assignment]
    await called(dispatcher, "browser_navigate", url="http://a.test/")
    cut = await called(dispatcher, "browser_evaluate", expression=EXPRESSION)
    assert not cut.is_error
    assert len(cut.structured["value_json"]) == 20_000
    assert "could not be kept in the archive: the disk is full." in cut.text


async def test_a_secret_that_the_cut_would_go_through_is_masked_whole(
    dispatcher: Dispatcher, browser: FakeBrowser
) -> None:
    await called(dispatcher, "browser_navigate", url="http://a.test/")
    value = "x" * (20_000 - len(SECRET) // 2) + SECRET + "y" * 10_000
    browser.on("Runtime.evaluate", {"result": {"type": "string", "value": value}})
    cut = await called(dispatcher, "browser_evaluate", expression=EXPRESSION)
    assert cut.structured["value_json"].rstrip("abcdefghijklmnopqrstuvwyz:]").endswith("x[")
    assert SECRET[:8] not in cut.text
