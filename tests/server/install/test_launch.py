"""How a client starts this installation, and where each client's file is on each system."""

import sys
import tempfile
from pathlib import Path

import pytest

from watchkeeper.server.commands.install.clients import CLIENTS, Machine, client_named, location
from watchkeeper.server.commands.install.entry import Given
from watchkeeper.server.commands.install.hooks import hooks, is_our_hook
from watchkeeper.server.commands.install.launch import Launch, is_ours, launch
from watchkeeper.server.errors import ToolError


def script(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_script_is_named_absolutely_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = script(tmp_path / "tools" / "watchkeeper")
    link = tmp_path / "bin" / "watchkeeper"
    link.parent.mkdir()
    link.symlink_to(real)
    assert launch(str(link)).command == str(link)
    monkeypatch.setenv("PATH", str(link.parent))
    assert launch("watchkeeper").command == str(link)
    monkeypatch.chdir(link.parent)
    assert launch("./watchkeeper").command == str(link)
    monkeypatch.setenv("PATH", "/nowhere")
    assert launch("watchkeeper").command != str(link), "a file that merely lies here is not what was started"


def test_python_dash_m_is_started_as_it_was(tmp_path: Path) -> None:
    python = script(tmp_path / "venv" / "bin" / "python")
    found = launch("/x/server/watchkeeper/server/__main__.py", executable=str(python))
    assert (found.command, found.arguments) == (str(python), ("-m", "watchkeeper.server"))


def test_another_program_that_runs_us_finds_the_script_beside_its_python(tmp_path: Path) -> None:
    python = script(tmp_path / "bin" / "python")
    assert launch("/usr/bin/other", executable=str(python)).arguments == ("-m", "watchkeeper.server")
    beside = script(tmp_path / "bin" / "watchkeeper")
    assert launch("/usr/bin/other", executable=str(python)).command == str(beside)


@pytest.mark.parametrize(
    ("prefix", "runner", "arguments"),
    [
        ("/home/a/.cache/uv/archive-v0/Xy", "uvx", ("watchkeeper",)),
        ("/caches/uv-here/builds/Xy", "uvx", ("watchkeeper",)),
        ("/home/a/.cache/pipx/4f", "pipx", ("run", "watchkeeper")),
        ("/home/a/.local/pipx/.cache/4f", "pipx", ("run", "watchkeeper")),
    ],
)
def test_a_temporary_environment_is_started_by_its_runner(
    prefix: str, runner: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = script(tmp_path / runner)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = launch(f"{prefix}/bin/watchkeeper", prefix=prefix, environment={"UV_CACHE_DIR": "/caches/uv-here"})
    assert found.command == str(path)
    assert found.arguments[-1] == "watchkeeper"
    assert found.arguments[0] == arguments[0] or found.arguments[0] == "--from"
    assert "temporary" in found.note
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="temporary environment"):
        launch("", prefix=prefix, environment={"UV_CACHE_DIR": "/caches/uv-here"})


def test_pipx_and_uv_installations_that_stay_are_not_taken_for_temporary_ones(tmp_path: Path) -> None:
    path = script(tmp_path / "watchkeeper")
    for prefix in ("/home/a/.local/share/pipx/venvs/watchkeeper", "/home/a/.local/share/uv/tools/watchkeeper"):
        assert launch(str(path), prefix=prefix, environment={}).command == str(path)


def test_a_command_in_the_folder_for_temporary_files_is_remarked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert "emptied" in launch(str(script(tmp_path / "watchkeeper"))).note


@pytest.mark.parametrize(
    ("command", "arguments", "ours"),
    [
        ("/x/bin/watchkeeper", [], True),
        ("C:\\x\\Watchkeeper.exe", ["--headless", "true"], True),
        ("watchkeeper", [], True),
        ("/usr/bin/python3", ["-m", "watchkeeper.server"], True),
        ("/x/uvx", ["--from", "git+https://example.com/w", "watchkeeper"], True),
        ("uvx", ["watchkeeper@0.1.0"], True),
        ("uv", ["run", "--directory", "/x", "watchkeeper"], True),
        ("pipx", ["run", "watchkeeper"], True),
        ("/x/watchkeeper-guard", [], False),
        ("uvx", ["watchkeeper-other"], False),
        ("python3", ["-m", "other", "watchkeeper.server"], False),
        ("npx", ["watchkeeper"], False),
    ],
)
def test_an_entry_is_ours_by_what_it_starts(command: str, arguments: list[str], ours: bool) -> None:
    assert is_ours({"command": command, "args": arguments}) is ours


@pytest.mark.parametrize("value", [None, [], "watchkeeper", {"url": "http://x"}, {"command": 1, "args": "x"}])
def test_what_is_no_entry_of_a_command_is_not_ours(value: object) -> None:
    assert not is_ours(value)


WHERE = {
    ("claude-desktop", "darwin"): "Library/Application Support/Claude/claude_desktop_config.json",
    ("claude-desktop", "win32"): "AppData/Roaming/Claude/claude_desktop_config.json",
    ("claude-desktop", "linux"): ".config/Claude/claude_desktop_config.json",
    ("claude-code", "linux"): ".claude.json",
    ("cursor", "win32"): ".cursor/mcp.json",
    ("vscode", "darwin"): "Library/Application Support/Code/User/mcp.json",
    ("vscode", "win32"): "AppData/Roaming/Code/User/mcp.json",
    ("vscode-insiders", "linux"): ".config/Code - Insiders/User/mcp.json",
}


@pytest.mark.parametrize(("client", "system"), WHERE)
def test_each_system_has_its_place(client: str, system: str, tmp_path: Path) -> None:
    machine = Machine(system, tmp_path, {}, tmp_path / "project")
    assert location(client_named(client), "user", machine) == tmp_path / WHERE[client, system]


def test_variables_move_the_places(tmp_path: Path) -> None:
    moved = {"XDG_CONFIG_HOME": str(tmp_path / "xdg"), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    machine = Machine("linux", tmp_path, moved, tmp_path)
    assert location(client_named("vscode"), "user", machine) == tmp_path / "xdg" / "Code" / "User" / "mcp.json"
    assert location(client_named("claude-code"), "user", machine) == tmp_path / "claude" / ".claude.json"


def test_the_packaged_claude_desktop_is_preferred_and_two_of_them_are_asked_about(tmp_path: Path) -> None:
    machine = Machine("win32", tmp_path, {"LOCALAPPDATA": str(tmp_path / "L")}, tmp_path)
    client = client_named("claude-desktop")
    inner = Path("LocalCache") / "Roaming" / "Claude" / "claude_desktop_config.json"
    first, second = (tmp_path / "L" / "Packages" / f"Claude_{name}" / inner for name in ("a", "b"))
    first.parents[3].mkdir(parents=True)
    assert location(client, "user", machine) == first
    second.parents[3].mkdir(parents=True)
    with pytest.raises(ToolError, match="more than once"):
        location(client, "user", machine)
    second.parent.mkdir(parents=True)
    second.write_text("{}")
    assert location(client, "user", machine) == second


def test_the_names_of_the_command_line_are_those_of_the_table() -> None:
    from watchkeeper.server.commands.command_line import CLIENTS as named

    assert named == tuple(client.name for client in CLIENTS)


def test_a_hook_survives_a_shell_with_blanks_in_paths_and_windows(tmp_path: Path) -> None:
    started = Launch("C:\\Program Files\\w\\watchkeeper.exe")
    made = dict(hooks(started, Given(("--context.archive", "true")), "win32"))
    group = made["hooks", "PreCompact"]
    said = group["hooks"][0]["command"]
    assert said == "'C:/Program Files/w/watchkeeper.exe' hook pre-compact --context.archive true"
    assert is_our_hook(group)
    with pytest.raises(ToolError, match="secret"):
        hooks(started, Given(secret=("context.engines",)), sys.platform)


@pytest.mark.parametrize(
    "group",
    [
        {},
        {"hooks": []},
        {"hooks": [{"type": "command", "command": "watchkeeper version"}]},
        {"hooks": [{"type": "command", "command": "echo 'open"}]},
        {"hooks": [{"type": "command", "command": "watchkeeper hook pre-compact"}, {"command": "echo theirs"}]},
    ],
)
def test_hooks_of_others_are_not_ours(group: object) -> None:
    assert not is_our_hook(group)
