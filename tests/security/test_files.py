"""Which files a client, a model or a page can get at, by tools and by raw commands."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.site import Site

from watchkeeper.server.errors import ToolError
from watchkeeper.server.security import files
from watchkeeper.server.settings import Settings

from .conftest import GUARD_S, Agent, StartAgent

ERROR = "file_refused"


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """The one allowed folder; a secret lies beside it, and links lead there."""
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("the secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "out").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "mine.txt").write_text("mine")
    os.mkfifo(folder / "pipe")
    return folder


def settings(inside: Path) -> Settings:
    return Settings.model_validate({"server": {"allowed_dirs": (str(inside),)}})


OUTSIDE: dict[str, Callable[[Path], str]] = {
    "an absolute path": lambda inside: str(inside.parent / "secret.txt"),
    "a way up": lambda inside: f"{inside}/../secret.txt",
    "a link to a file": lambda inside: str(inside / "link.txt"),
    "a link to a folder": lambda inside: str(inside / "out" / "secret.txt"),
    "a folder whose name begins alike": lambda inside: f"{inside}-not/x",
    "what does not exist": lambda inside: "/nowhere/at/all",
    "a system file": lambda inside: "/etc/passwd",
    "a home that nobody has": lambda inside: "~nobody-of-this-name/x",
    "a zero byte": lambda inside: f"{inside}/a\0b",
    "links in a circle": lambda inside: str(inside / "circle"),
    "a pipe": lambda inside: str(inside / "pipe"),
    "a path without end": lambda inside: "/x" * 5000,
    "a name that is too long": lambda inside: f"{inside}/{'x' * 5000}",
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_what_lies_outside_is_refused_however_it_is_written(inside: Path, kind: str) -> None:
    with pytest.raises(ToolError) as refused:
        files.allowed_file(Path(OUTSIDE[kind](inside)), settings(inside))
    assert refused.value.code == "path_refused"
    assert files.refusal(OUTSIDE[kind](inside), settings(inside)) is not None


def test_what_lies_inside_may_be_used(inside: Path) -> None:
    assert files.allowed_file(inside / "mine.txt", settings(inside)) == (inside / "mine.txt").resolve()
    assert files.allowed_file(inside / "new" / "file", settings(inside))
    assert files.refusal(str(inside), settings(inside)) is None


def test_files_are_written_for_their_owner_alone_and_through_no_link(inside: Path) -> None:
    files.write_private(inside / "new.bin", b"x")
    assert (inside / "new.bin").stat().st_mode & 0o777 == 0o600
    (inside / "mine.txt").chmod(0o644)
    files.write_private(inside / "mine.txt", b"x")
    assert (inside / "mine.txt").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ToolError):
        files.write_private(inside / "link.txt", b"overwritten")  # put there after the path was checked
    assert (inside.parent / "secret.txt").read_text() == "the secret"


def test_without_folders_in_the_settings_neither_the_root_nor_the_home_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (Path("/"), tmp_path):
        monkeypatch.chdir(folder)
        (allowed,) = files.allowed_folders(Settings())
        assert allowed not in (Path("/"), tmp_path)
        assert files.refusal("/etc/passwd", Settings()) is not None
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert files.allowed_folders(Settings()) == [project]


async def opened(agent: StartAgent, site: Site, inside: Path) -> Agent:
    acting = await agent(server={"allowed_dirs": (str(inside),), "toolsets": ("core", "actions", "capture", "state")})
    page = "<input type=file id=f onchange='f.files[0].text().then(t => document.title = t)'><div id=d>drop</div>"
    await acting("browser_navigate", url=site.page("/", page))
    return acting


def code(reply: Any) -> str:
    return str(reply.structured.get("error", {}).get("code", ""))


@pytest.mark.anyio
@pytest.mark.chrome
async def test_no_raw_command_reads_or_writes_outside(agent: StartAgent, site: Site, inside: Path) -> None:
    acting = await opened(agent, site, inside)
    handle = (await acting.cdp("Runtime.evaluate", expression="f")).structured["result"]["result"]["objectId"]
    for write in OUTSIDE.values():
        path = write(inside)
        drag = {"type": "drop", "x": 9, "y": 9, "data": {"items": [], "files": [path], "dragOperationsMask": 1}}
        assert code(await acting.cdp("DOM.setFileInputFiles", files=[path], objectId=handle)) == ERROR
        both = [str(inside / "mine.txt"), path]
        assert code(await acting.cdp("DOM.setFileInputFiles", files=both, objectId=handle)) == ERROR
        assert code(await acting.cdp("Input.dispatchDragEvent", **drag)) == ERROR
        for method in ("Browser.setDownloadBehavior", "Page.setDownloadBehavior"):
            assert code(await acting.cdp(method, behavior="allow", downloadPath=path)) == ERROR
            assert code(await acting.cdp(method, behavior="allow")) == ERROR
            assert code(await acting.cdp(method, behavior="default")) == ERROR
    assert (await acting.cdp("Runtime.evaluate", expression="f.files.length")).structured["result"]["result"] == {
        "type": "number",
        "value": 0,
        "description": "0",
    }
    mine = await acting.cdp("DOM.setFileInputFiles", files=[str(inside / "mine.txt")], objectId=handle)
    assert not mine.is_error, mine.text
    for method in ("PWA.launchFilesInApp", "Extensions.loadUnpacked", "Tethering.bind", "Cast.enable"):
        assert code(await acting.cdp(method)) == "method_refused"


@pytest.mark.anyio
@pytest.mark.chrome
async def test_tools_take_files_from_allowed_folders_only(agent: StartAgent, site: Site, inside: Path) -> None:
    acting = await opened(agent, site, inside)
    tree = (await acting("browser_snapshot")).structured["snapshot"]
    (ref,) = re.findall(r"\be\d+\b", next(line for line in tree.splitlines() if "file" in line.lower()))
    for write in OUTSIDE.values():
        path = write(inside)
        reply = await acting("browser_files", action="upload", ref=ref, paths=[path])
        assert code(reply) == "path_refused", reply.text
        assert code(await acting("browser_storage", action="load", path=path)) == "path_refused"
    reply = await acting("browser_files", action="upload", ref=ref, paths=[str(inside / "mine.txt")])
    assert not reply.is_error, reply.text


async def _downloads(acting: Agent) -> set[int]:
    listed = (await acting("browser_files", action="list")).structured
    return {download["number"] for download in listed["downloads"]}


@pytest.mark.anyio
@pytest.mark.chrome
async def test_a_download_that_nobody_asked_for_is_not_saved(
    agent: StartAgent, site: Site, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    site.pages["/f"] = lambda request: (200, {"Content-Disposition": 'attachment; filename="../../evil.sh"'}, b"evil")
    acting = await opened(agent, site, inside)
    await acting("browser_navigate", url=site.url("/f"))
    await acting.cdp("Runtime.evaluate", expression="location = '/f'")
    assert not list(tmp_path.rglob("*evil*"))
    await acting("browser_files", action="save")
    before = await _downloads(acting)
    await acting.cdp("Runtime.evaluate", expression="location = '/f'")
    begun: set[int] = set()
    async with asyncio.timeout(GUARD_S):
        while not begun:  # a script starts it, so no action reports it
            begun = await _downloads(acting) - before
    await acting("browser_files", action="wait", number=max(begun))
    saved = list(tmp_path.rglob("*evil*"))
    assert saved and all(path.parent == inside for path in saved)
