"""Every browser tool through the official client on a real Chromium, as a model would use them."""

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from fakes.site import Site
from mcp import Client

from watchkeeper.server.dispatch import Dispatcher
from watchkeeper.server.protocol.app import make_server
from watchkeeper.server.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]

PAGE = """<title>Desk</title>
<button onclick="this.textContent = 'clicked'">Go</button>
<input aria-label=Name onkeydown="if (event.key == 'Enter') document.title = 'sent ' + value">
<select aria-label=Color><option>red<option>blue</select>
<input type=checkbox aria-label=Agree>
<input type=file aria-label=Paper onchange="document.title = this.files[0].name">
<button onclick="console.error('boom'); fetch('/data').then(r => r.text())">Noise</button>
<button onclick="window.open('/two')">Pop</button>
<a href=/two>Two</a> <a href=/file download=report.txt>Report</a>
<iframe title=Inner src="{other}/in"></iframe>
<div style="height: 3000px"></div>"""

Tool = Callable[..., Any]


class Agent:
    """Calls tools and keeps the last snapshot, to find refs by label."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen = ""

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        result = await self._client.call_tool(f"browser_{tool}", arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        assert not result.is_error, text
        if tool == "snapshot":
            self._seen = text
        return result

    async def fails(self, tool: str, **arguments: Any) -> str:
        result = await self._client.call_tool(f"browser_{tool}", arguments)
        assert result.is_error, result
        assert result.structured_content is not None
        text: str = result.content[0].text  # type: ignore[union-attr]
        assert result.structured_content["error"]["message"] in text, "an error is whole in its text"
        return text

    async def text(self, tool: str, **arguments: Any) -> str:
        said: str = (await self(tool, **arguments)).content[0].text
        return said

    def ref(self, label: str) -> str:
        found = re.search(rf'^ *(\S+) [^"\n]*"{label}"', self._seen, re.MULTILINE)
        assert found, f"{label} is not in:\n{self._seen}"
        return found.group(1)


@pytest.fixture
async def agent(site: Site, tmp_path: Path) -> AsyncIterator[Agent]:
    site.page("/in", "<button onclick=\"document.body.append('inner clicked')\">Inner go</button>")
    site.page("/two", "<title>Two</title>second")
    site.pages["/data"] = lambda _: (200, {"Content-Type": "text/plain"}, b"DATA")
    site.pages["/file"] = lambda _: (200, {"Content-Disposition": "attachment"}, b"x" * 100_000)
    settings = Settings.model_validate(
        {
            "browser": {"headless": True},
            "server": {"allowed_dirs": [str(tmp_path)], "toolsets": ["core", "actions", "capture", "state"]},
        }
    )
    dispatcher = Dispatcher(settings)
    async with Client(make_server(dispatcher)) as client:
        yield Agent(client)
    await dispatcher.close()


@pytest.fixture
async def desk(agent: Agent, site: Site) -> Agent:
    await agent("navigate", url=site.page("/", PAGE))
    await agent("snapshot")
    return agent


async def value(agent: Agent, expression: str) -> Any:
    return (await agent("evaluate", expression=expression)).structured_content["value"]


async def test_forms_are_filled_and_sent(desk: Agent) -> None:
    assert 'Clicked e1 button "Go".' in await desk.text("click", ref=desk.ref("Go"))
    await desk("type", ref=desk.ref("Name"), text="Zoë 漢字")
    await desk("select", ref=desk.ref("Color"), values=["blue"])
    await desk("check", ref=desk.ref("Agree"))
    await desk("press", keys="Enter", ref=desk.ref("Name"))
    script = "[document.querySelector('button').textContent, document.title, document.querySelector('select').value]"
    assert await value(desk, script) == ["clicked", "sent Zoë 漢字", "blue"]
    assert await value(desk, "document.querySelector('[type=checkbox]').checked") is True


async def test_an_element_of_another_sites_frame_is_clicked(desk: Agent) -> None:
    assert (await desk("wait", text="Inner go")).structured_content["met"]
    await desk("snapshot")
    await desk("click", ref=desk.ref("Inner go"))
    assert "inner clicked" in await desk.text("snapshot")


async def test_where_one_goes_and_comes_from_is_told(desk: Agent) -> None:
    assert 'the page is now "Two"' in await desk.text("click", ref=desk.ref("Two"))
    await desk("history", action="back")
    assert await value(desk, "document.title") == "Desk"
    assert 'the page is now "Two"' in await desk.text("history", action="forward")
    await desk("history", action="reload")
    assert "no page to go forward to" in await desk.fails("history", action="forward")


async def test_tabs_are_listed_selected_and_closed(desk: Agent) -> None:
    assert "opened tab t2" in await desk.text("click", ref=desk.ref("Pop"))
    await desk("tabs", action="select", tab="t2")
    await desk("wait", text="second")
    assert await value(desk, "document.title") == "Two"
    listed = await desk.text("tabs", action="list")
    assert re.search(r't2 "Two" .*\(selected, opened by t1\)', listed) and 't1 "Desk"' in listed
    assert "t2 was closed" in await desk.text("tabs", action="close")
    assert await value(desk, "document.title") == "Desk"
    assert "There is no tab 't9'" in await desk.fails("tabs", action="select", tab="t9")
    await desk("tabs", action="new")
    assert "t3" in await desk.text("tabs", action="list")


async def test_console_and_network_are_told(desk: Agent) -> None:
    assert "from now on" in await desk.text("network")
    await desk("click", ref=desk.ref("Noise"))
    await desk("wait", quiet=True)
    assert "boom" in await desk.text("console")
    listed = await desk.text("network", url="/data")
    number = int(re.search(r"(\d+) GET \S+/data 200", listed).group(1))  # type: ignore[union-attr]
    assert "DATA" in await desk.text("network", body=number)


async def test_pictures_come_as_images_and_pdf_as_a_file(desk: Agent, tmp_path: Path) -> None:
    for arguments in ({}, {"full_page": True, "format": "jpeg"}, {"ref": desk.ref("Go")}):
        result = await desk("screenshot", **arguments)
        assert result.content[1].type == "image" and len(result.content[1].data) > 100
    path = Path((await desk("screenshot", format="pdf")).structured_content["path"])
    assert path.parent == tmp_path and path.read_bytes().startswith(b"%PDF") and path.stat().st_mode & 0o077 == 0


async def test_files_go_up_and_come_down(desk: Agent, tmp_path: Path) -> None:
    (tmp_path / "paper.txt").write_text("words")
    await desk("files", action="upload", ref=desk.ref("Paper"), paths=[str(tmp_path / "paper.txt")])
    assert await value(desk, "document.title") == "paper.txt"
    outside = await desk.fails("files", action="upload", ref=desk.ref("Paper"), paths=["/etc/hostname"])
    assert "outside of the allowed folders" in outside
    await desk("files", action="save")
    await desk("click", ref=desk.ref("Report"))
    with anyio.fail_after(30):
        while "report.txt" not in await desk.text("files", action="list"):
            pass  # it begins with the answer of the site, which may come after that of the click
    saved = (await desk("files", action="wait")).structured_content["downloads"][0]
    assert (saved["state"], saved["received"]) == ("completed", 100_000)
    assert Path(saved["path"]).read_bytes() == b"x" * 100_000 and Path(saved["path"]).parent == tmp_path


async def test_a_sign_in_is_saved_and_loaded_without_showing_its_value(desk: Agent, site: Site, tmp_path: Path) -> None:
    await desk("evaluate", expression="document.cookie = 'sid=topsecret; path=/'; localStorage.note = 'kept'; 0")
    shown = await desk("storage", action="cookies")
    assert "sid" in shown.content[0].text and "topsecret" not in json.dumps(shown.model_dump(mode="json"))
    path = tmp_path / "state.json"
    await desk("storage", action="save", path=str(path))
    assert path.stat().st_mode & 0o077 == 0
    await desk("close")
    await desk("navigate", url=site.url("/two"))
    assert await value(desk, "document.cookie") == ""
    await desk("storage", action="load", path=str(path))
    await desk("navigate", url=site.url("/two"))
    assert await value(desk, "[document.cookie, localStorage.note]") == ["sid=topsecret", "kept"]
    assert "outside" in await desk.fails("storage", action="save", path="/tmp/../etc/state.json")


async def test_surroundings_are_emulated(desk: Agent) -> None:
    await desk("emulate", width=400, height=300, colors="dark", timezone="Asia/Tokyo")
    script = "[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, new Date(0).getHours()]"
    assert await value(desk, script) == [400, True, 9]


async def test_an_open_dialog_stands_first_in_every_result_and_the_page_is_seen_beside_it(desk: Agent) -> None:
    opened = await desk.fails("evaluate", expression="confirm('Sure?')")
    assert opened.startswith("A dialog is open:") and 'browser_dialog(action="accept"|"dismiss")' in opened
    result = await desk("snapshot")
    assert result.content[0].text.startswith("A dialog is open:") and 'button "Go"' in result.content[0].text
    assert result.structured_content["pending_dialogs"][0]["message"] == "Sure?"
    assert len((await desk("screenshot")).content) == 2
    assert "dialog_opened" in await desk.fails("click", ref=desk.ref("Go"))
    await desk("dialog", action="accept")
    assert (await desk("snapshot")).structured_content["pending_dialogs"] == []


async def test_wrong_arguments_and_refs_are_told_and_change_nothing(desk: Agent) -> None:
    assert "unknown argument 'reff' (did you mean 'ref'?)" in await desk.fails("click", reff="e1")
    assert "e999" in await desk.fails("click", ref="e999")
    assert "64" in await desk.fails("snapshot", task_id="x" * 65)
    assert "no_task" in await desk.fails("click", ref="e1", task_id="other")
    assert "one thing" in await desk.fails("wait", text="a", gone="b")
    assert (await desk("wait", text="never", timeout=1)).structured_content["met"] is False


async def test_what_a_password_field_holds_is_never_shown(desk: Agent, site: Site) -> None:
    await desk("navigate", url=site.page("/login", "<input type=password aria-label=Word value=hunter2>"))
    shown = await desk("snapshot")
    assert "hunter2" not in json.dumps(shown.model_dump(mode="json"))


async def test_two_tasks_have_nothing_in_common(desk: Agent, site: Site) -> None:
    await desk("evaluate", expression="document.cookie = 'mine=1'; 0")
    await desk("navigate", url=site.url("/two"), task_id="other")
    result = await desk("evaluate", expression="document.cookie", task_id="other")
    assert result.structured_content["value"] == ""
    await desk("close", task_id="other")
    assert await value(desk, "document.cookie") == "mine=1"
