"""``watchkeeper doctor`` without a browser: each subject finds what is wrong, and says what mends it."""

import http.server
import json
import socket
import sys
import threading
from pathlib import Path

import pytest

from watchkeeper.server.cli import main
from watchkeeper.server.commands.doctor import Finding, browser, entries, examine, folders, machine, network
from watchkeeper.server.settings import Settings

Capture = pytest.CaptureFixture[str]


def settings(**sections: object) -> Settings:
    return Settings.model_validate(sections)


def kernel(folder: Path, **numbers: int) -> Path:
    places = {"max_user_namespaces": "user", "unprivileged_userns_clone": "kernel"}
    for name, number in numbers.items():
        path = folder / places.get(name, "kernel") / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")
    return folder


@pytest.mark.parametrize(
    ("numbers", "level", "remedy"),
    [
        ({"max_user_namespaces": 100}, "ok", ""),
        ({"max_user_namespaces": 0}, "wrong", "sysctl user.max_user_namespaces"),
        ({"unprivileged_userns_clone": 0}, "wrong", "sysctl kernel.unprivileged_userns_clone=1"),
        ({"apparmor_restrict_unprivileged_userns": 1}, "note", "/etc/apparmor.d"),
        ({"apparmor_restrict_unprivileged_userns": 0}, "ok", ""),
    ],
)
def test_what_keeps_a_sandbox_from_working_is_found(
    numbers: dict[str, int], level: str, remedy: str, tmp_path: Path
) -> None:
    (found,) = machine.sandbox(settings(), is_root=False, kernel=kernel(tmp_path, **numbers))
    assert found.level == level
    assert remedy in found.remedy


def test_root_and_a_sandbox_that_was_switched_off_are_remarked_on(tmp_path: Path) -> None:
    (found,) = machine.sandbox(settings(), is_root=True, kernel=tmp_path)
    assert (found.level, "root" in found.what) == ("note", True)
    off = settings(browser={"extra_args": ["--no-sandbox"]})
    (found,) = machine.sandbox(off, is_root=False, kernel=tmp_path)
    assert "extra_args" in found.what


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:9222", "--remote-debugging-port=9222"),
        ("ws://localhost:9333/devtools/browser/x", "--remote-debugging-port=9333"),
        ("http://browsers.example:9222", ""),
        ("http://127.0.0.1:x", ""),
    ],
)
def test_a_browser_here_that_does_not_answer_is_told_how_to_start(url: str, said: str) -> None:
    remedy = browser.attached_remedy(settings(browser={"cdp_url": url}))
    assert said in remedy
    assert bool(said) == ("--user-data-dir" in remedy)


def test_a_port_that_is_taken_is_told_with_who_has_it() -> None:
    class Browser(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/json/version" else 404)
            self.end_headers()
            self.wfile.write(b'{"Browser": "Chrome/140"}')

        def log_message(self, *_: object) -> None:
            """Quietly."""

    with http.server.HTTPServer(("127.0.0.1", 0), Browser) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        taken = settings(server={"transport": "http", "port": server.server_port})
        (found,) = network.examined(taken)
        server.shutdown()
    assert found.level == "wrong"
    assert "a browser's debugging port has it" in found.what
    assert "server.port" in found.remedy
    (found,) = network.examined(taken)
    assert found.level == "ok"


def test_a_port_matters_over_http_only_and_a_host_has_to_exist() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        assert list(network.examined(settings(server={"port": one.getsockname()[1]}))) == []
    (found,) = network.examined(settings(server={"transport": "http", "host": "256.0.0.1"}))
    assert "no address" in found.what


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["watchkeeper"])
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return tmp_path


def levels(found: "list[Finding]") -> list[str]:
    return [one.level for one in found]


def test_folders_are_looked_at_and_none_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(folders.examined(settings(server={"allowed_dirs": ["nowhere", "/"]})))
    assert levels(found) == ["wrong", "note"]
    monkeypatch.chdir(home)
    assert levels(list(folders.examined(settings(context={"archive": True})))) == ["ok", "ok"]
    assert [one.name for one in home.iterdir()] == ["project"]


def test_an_archive_that_others_can_read_is_told(home: Path) -> None:
    archive = home / ".local" / "share" / "watchkeeper" / "archive.db"
    archive.parent.mkdir(parents=True)
    archive.write_text("")
    archive.chmod(0o644)
    found = [one for one in folders.examined(settings()) if one.about == "archive"]
    assert (found[0].level, found[0].remedy) == ("note", f"chmod 600 {archive}")


def test_what_the_hook_said_last_is_told(home: Path) -> None:
    from watchkeeper.server.commands.hook import note

    note("failed: the archive is full")
    found = [one for one in folders.examined(settings()) if one.about == "hook"]
    assert (found[0].level, "the archive is full" in found[0].what) == ("note", True)


def found_of(client: str) -> list[Finding]:
    return [one for one in entries.examined() if client in one.what and "no entry" not in one.what]


def written(path: Path, **entry: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {"watchkeeper": entry}}))


def test_an_entry_that_install_wrote_starts(home: Path) -> None:
    assert main(["install", "claude-code", "--with-hook", "--yes"]) == 0
    assert levels(found_of("Claude Code")) == ["ok", "ok"]
    (home / ".claude" / "settings.json").write_text('{"hooks": {"PreCompact": []}}')
    assert levels(found_of("Claude Code")) == ["ok"]


@pytest.mark.parametrize(
    ("body", "level", "said"),
    [
        (None, "wrong", "does not exist"),
        ("", "wrong", "does not start"),
        ("#!/bin/sh\necho broken >&2; exit 3\n", "wrong", "broken"),
        ("#!/bin/sh\necho 0.0.1\n", "note", "version 0.0.1"),
    ],
)
def test_an_entry_whose_command_is_of_no_use_is_found(body: str | None, level: str, said: str, home: Path) -> None:
    command = home / "bin" / "watchkeeper"
    if body is not None:
        command.parent.mkdir()
        command.write_text(body)
        command.chmod(0o755)
    written(home / ".cursor" / "mcp.json", command=str(command), args=[])
    (found,) = found_of("Cursor")
    assert found.level == level, found
    assert said in found.what
    assert "watchkeeper install cursor" in found.remedy


def test_an_entry_with_settings_that_are_wrong_is_found(home: Path) -> None:
    assert main(["install", "cursor", "--yes"]) == 0
    path = home / ".cursor" / "mcp.json"
    told = json.loads(path.read_text())
    told["mcpServers"]["watchkeeper"]["args"] += ["--browser.headles", "true"]
    path.write_text(json.dumps(told))
    (found,) = found_of("Cursor")
    assert (found.level, "browser.headless" in found.what) == ("wrong", True)


def test_a_command_without_its_path_is_remarked_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home / ".cursor" / "mcp.json", command="watchkeeper")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    (found,) = found_of("Cursor")
    assert found.level == "note"
    monkeypatch.setenv("PATH", "/nowhere")
    (found,) = found_of("Cursor")
    assert found.level == "wrong"


def test_a_projects_command_is_not_run_unless_install_wrote_it(home: Path) -> None:
    trap, sprung = home / "project" / "watchkeeper", home / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    written(home / "project" / ".mcp.json", command=str(trap))
    (found,) = found_of("Claude Code")
    assert found.level == "note"
    assert not sprung.exists()
    (home / "project" / ".mcp.json").unlink()
    assert main(["install", "claude-code", "--scope", "project", "--yes"]) == 0
    assert levels(found_of("Claude Code")) == ["ok"]


def test_a_clients_file_that_is_damaged_is_remarked_on(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{,}")
    (found,) = found_of(".cursor")
    assert (found.level, "line 1" in found.what) == ("note", True)


def test_findings_come_as_json_with_a_status(home: Path, capsys: Capture) -> None:
    assert main(["doctor", "--no-browser", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True
    assert {"version", "tokens", "engine", "clients"} <= {one["about"] for one in told["findings"]}
    assert main(["doctor", "--no-browser", "--json", "--server.allowed_dirs", "/nowhere"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_findings_fit_into_80_columns_of_a_terminal_and_are_a_line_each_for_programs(
    home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = settings(browser={"extra_args": ["--no-sandbox"]}, server={"allowed_dirs": ["/nowhere"]})
    assert examine(off, with_browser=False) == 1
    said = capsys.readouterr().out.splitlines()
    assert "WRONG server.allowed_dirs names /nowhere, which is no folder" in said
    assert not [line for line in said[:-2] if not line.startswith(("ok    ", "note  ", "WRONG ", "      -> "))]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert examine(off, with_browser=False) == 1
    wrapped = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in wrapped if str(home) not in line) <= 80
    assert len(wrapped) > len(said)
