"""``watchkeeper install`` and ``uninstall``: what is written, what is refused, and that undoing leaves no trace."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.server.cli import main
from watchkeeper.server.commands.install import command, config_file, ledger
from watchkeeper.server.commands.install.clients import CLIENTS

Capture = pytest.CaptureFixture[str]
OTHERS = """\
{
  "theme": "dark",
  "mcpServers": {
    "files": {"command": "npx", "env": {"TOKEN": "ghp_0123456789abcdefghij0123456789abcdef"}}
  },
  "zoom": 1.10
}
"""


def run(*arguments: str) -> int:
    return main(list(arguments))


def cursor(home: Path, text: str = OTHERS) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(text)
    return path


def entry(path: Path, *keys: str) -> Any:
    found = json.loads(path.read_text())
    for key in keys or ("mcpServers", "watchkeeper"):
        found = found[key]
    return found


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: str(client.name))
def test_each_client_gets_an_absolute_command_that_exists_and_gives_it_back(
    client: Any, home: Path, capsys: Capture
) -> None:
    for scope in client.scopes():
        assert run("install", client.name, "--scope", scope, "--yes") == 0
        (piece,) = ledger.pieces(ledger.location())
        made = entry(Path(piece.file), *client.key, "watchkeeper")
        assert Path(made["command"]).is_absolute()
        assert os.access(made["command"], os.X_OK)
        assert dict(client.form).items() <= made.items()
        assert run("install", client.name, "--scope", scope) == 0
        assert "It is there already" in capsys.readouterr().out
        assert run("uninstall", client.name, "--scope", scope, "--yes") == 0
        assert not Path(piece.file).exists()
        assert ledger.pieces(ledger.location()) == []


def test_the_change_is_shown_without_secrets_and_nothing_is_written_where_nobody_can_be_asked(
    home: Path, capsys: Capture
) -> None:
    path = cursor(home)
    assert run("install", "cursor") == command.EXIT_NOT_AGREED
    said = capsys.readouterr().out
    assert f"--- {path}" in said
    assert '+    "watchkeeper": {' in said
    assert "ghp_" not in said
    assert "Nothing was written. --yes" in said
    assert path.read_text() == OTHERS
    assert not ledger.location().exists()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 3), ("", 3), (None, 3)])
def test_a_person_is_asked(answer: str | None, status: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: str) -> str:
        if answer is None:
            raise EOFError
        return answer

    path = cursor(home)
    monkeypatch.setattr(command, "input", asked, raising=False)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    assert run("install", "cursor") == status
    assert (path.read_text() == OTHERS) == (status != 0)


def test_everything_else_stays_to_the_letter_and_a_backup_beside_it(home: Path) -> None:
    path = cursor(home)
    path.chmod(0o640)
    assert run("install", "cursor", "--yes") == 0
    changed = path.read_text()
    assert entry(path, "theme") == "dark"
    assert '"zoom": 1.10\n' in changed
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.with_name("mcp.json.watchkeeper-backup").read_text() == OTHERS
    assert run("uninstall", "cursor", "--yes") == 0
    assert path.read_text() == OTHERS


def test_undoing_works_after_the_client_has_changed_other_parts(home: Path) -> None:
    path = cursor(home, "{}")
    assert run("install", "cursor", "--yes") == 0
    others = {"command": "x"}
    told = json.loads(path.read_text())
    path.write_text(json.dumps({"new": 1, "mcpServers": {**told["mcpServers"], "other": others}}))
    assert run("uninstall", "cursor", "--yes") == 0
    assert json.loads(path.read_text()) == {"new": 1, "mcpServers": {"other": others}}


def test_an_entry_that_is_not_ours_is_left_alone_unless_forced_and_comes_back(home: Path, capsys: Capture) -> None:
    text = '{\n  "mcpServers": {\n    "watchkeeper": { "command": "guard" }\n  }\n}\n'
    path = cursor(home, text)
    assert run("install", "cursor", "--yes") == 1
    assert "does not start Watchkeeper" in capsys.readouterr().err
    assert run("uninstall", "cursor", "--yes") == 1
    assert path.read_text() == text
    assert run("install", "cursor", "--yes", "--name", "wk") == 0
    assert run("uninstall", "cursor", "--yes", "--name", "wk") == 0
    assert run("install", "cursor", "--yes", "--force") == 0
    assert run("install", "cursor", "--yes", "--browser.headless", "true") == 0
    assert run("uninstall", "cursor", "--yes") == 0
    assert path.read_text() == text


def test_settings_become_arguments_secrets_become_variables_and_paths_are_absolute(home: Path, capsys: Capture) -> None:
    path = cursor(home, "{}")
    given = ["--browser.user_data_dir", "profile", "--server.allowed_dirs=a, /b", "--headless", "true"]
    hidden = ["--auxiliary.compression.api_key", 'k"ey-1234567', "--browser.secrets.Pw.value", "hunter2hunter2"]
    assert run("install", "cursor", "--yes", *given, *hidden, "--browser.secrets.Pw.hosts", "a.example") == 0
    said = capsys.readouterr().out
    assert "hunter2" not in said and "1234567" not in said
    assert "goes into `env`" in said
    made = entry(path)
    here = str(home / "project")
    assert made["args"][:4] == ["--browser.user_data_dir", f"{here}/profile", "--server.allowed_dirs", f"{here}/a,/b"]
    assert made["env"]["WATCHKEEPER_AUXILIARY__COMPRESSION__API_KEY"] == 'k"ey-1234567'
    assert json.loads(made["env"]["WATCHKEEPER_BROWSER__SECRETS"]) == {
        "Pw": {"value": "hunter2hunter2", "hosts": "a.example"}
    }
    from watchkeeper.server.settings_sources import load

    values = dict(zip(made["args"][::2], made["args"][1::2], strict=True))
    loaded = load({name.removeprefix("--"): value for name, value in values.items()}, made["env"]).settings
    assert loaded.browser.secrets["Pw"].hosts == ("a.example",)
    assert loaded.server.allowed_dirs == (f"{here}/a", "/b")


def test_what_a_person_added_to_our_entry_stays_when_it_is_written_again(home: Path) -> None:
    path = cursor(home, "{}")
    assert run("install", "cursor", "--yes", "--headless", "true") == 0
    told = json.loads(path.read_text())
    told["mcpServers"]["watchkeeper"] |= {"env": {"LANG": "de"}, "disabled": True}
    path.write_text(json.dumps(told))
    assert run("install", "cursor", "--yes") == 0
    made = entry(path)
    assert (made["env"], made["disabled"], made["args"]) == ({"LANG": "de"}, True, [])


def test_a_shared_file_gets_no_secrets(home: Path, capsys: Capture) -> None:
    assert run("install", "cursor", "--scope", "project", "--yes", "--cdp-url", "ws://h/?token=abc") == 1
    assert "WATCHKEEPER_BROWSER__CDP_URL" in capsys.readouterr().err
    assert not (home / "project" / ".cursor").exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text('{"mcpServers": {,}}'), "line 1"),
        (lambda path: path.write_text("[]"), "not an object"),
        (lambda path: path.write_text('{"mcpServers": "x"}'), "not an object"),
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "not UTF-8"),
        (lambda path: path.mkdir(), "no ordinary file"),
        (lambda path: os.mkfifo(path), "no ordinary file"),
        (lambda path: path.symlink_to("nowhere.json"), "leads nowhere"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(
    make: Callable[[Path], object], said: str, home: Path, capsys: Capture
) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else None
    assert run("install", "cursor", "--yes") == 1
    err = capsys.readouterr().err
    assert said in err
    assert str(path) in err
    assert before is None or path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_what_is_not_understood_comes_with_the_text_to_paste(home: Path, capsys: Capture) -> None:
    cursor(home, '{"mcpServers": {,}}')
    assert run("install", "cursor", "--yes") == 1
    assert '"watchkeeper": {' in capsys.readouterr().err


def test_comments_of_vs_code_stay(home: Path) -> None:
    path = home / ".config" / "Code" / "User" / "mcp.json"
    path.parent.mkdir(parents=True)
    text = '{\n\t// mine\n\t"servers": {},\n\t"inputs": [], // for keys\n}\n'
    path.write_text(text)
    assert run("install", "vscode", "--yes") == 0
    assert "// mine" in path.read_text()
    assert '\t\t"watchkeeper": {\n\t\t\t"type": "stdio"' in path.read_text()
    assert run("uninstall", "vscode", "--yes") == 0
    assert path.read_text() == text


def test_a_link_stays_a_link_and_a_byte_order_mark_stays(home: Path, capsys: Capture) -> None:
    real = home / "dotfiles.json"
    real.write_bytes(b"\xef\xbb\xbf{}")
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.symlink_to(real)
    assert run("install", "cursor", "--yes") == 0
    assert f"is a link; what changes is {real}" in " ".join(capsys.readouterr().out.split())
    assert path.is_symlink()
    assert real.read_bytes().startswith(b'\xef\xbb\xbf{\n  "mcpServers"')
    assert run("uninstall", "cursor", "--yes") == 0
    assert real.read_bytes() == b"\xef\xbb\xbf{}"


def test_a_change_between_showing_and_writing_is_noticed(home: Path) -> None:
    path = cursor(home)
    before = config_file.read(path)
    path.write_text('{"written": "by the client"}')
    with pytest.raises(config_file.ToolError, match="changed while you looked"):
        config_file.write(before, "{}")
    assert path.read_text() == '{"written": "by the client"}'
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_the_clients_own_lock_is_waited_for_held_and_freed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    lock = home / ".claude.json.lock"
    lock.mkdir()
    monkeypatch.setattr(config_file, "LOCK_WAIT_S", 0.0)
    with pytest.raises(config_file.ToolError, match="holds"):
        config_file.write(config_file.read(path), '{"a": 1}', locked=True)
    assert path.read_text() == "{}"
    os.utime(lock, (0, 0))  # its holder died long ago
    config_file.write(config_file.read(path), '{"a": 1}', locked=True)
    assert path.read_text() == '{"a": 1}'
    assert not lock.exists()


def test_a_failing_disk_leaves_the_file_as_it_was(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    path = cursor(home)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert run("install", "cursor", "--yes") == 1
    assert "No space left" in capsys.readouterr().err
    assert path.read_text() == OTHERS
    assert [one.name for one in path.parent.iterdir()] == ["mcp.json"]


def test_claude_code_gets_its_hooks_beside_those_of_others_and_loses_only_ours(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    theirs = {"matcher": "compact", "hooks": [{"type": "command", "command": "echo theirs"}]}
    text = json.dumps({"model": "opus", "hooks": {"SessionStart": [theirs]}}, indent=2)
    settings.write_text(text)
    assert run("install", "claude-code", "--with-hook", "--yes", "--context.archive_keep_days", "30") == 0
    found = json.loads(settings.read_text())
    assert found["hooks"]["SessionStart"][0] == theirs
    (before,) = found["hooks"]["PreCompact"]
    assert "matcher" not in before
    said = before["hooks"][0]["command"]
    assert said.endswith("hook pre-compact --context.archive_keep_days 30 --context.archive true")
    assert found["hooks"]["SessionStart"][1]["matcher"] == "compact"
    assert "--context.archive" in entry(home / ".claude.json")["args"]
    assert run("install", "claude-code", "--yes") == 0, "without a word about hooks they stay"
    assert len(json.loads(settings.read_text())["hooks"]["PreCompact"]) == 1
    assert run("install", "claude-code", "--no-hook", "--yes") == 0
    assert settings.read_text() == text
    assert run("install", "claude-code", "--with-hook", "--yes") == 0
    assert run("uninstall", "claude-code", "--yes") == 0
    assert settings.read_text() == text
    assert not (home / ".claude.json").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["install"], 2, "name a client"),
        (["install", "cursor", "--transport", "http"], 1, "over stdio"),
        (["install", "cursor", "--with-hook"], 1, "no hooks"),
        (["install", "claude-desktop", "--scope", "project"], 1, "single project"),
        (["install", "claude-code", "--with-hook", "--context.archive", "false"], 1, "needs the archive"),
        (["install", "cursor", "--browser.headles", "true"], 2, "did you mean browser.headless"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], status: int, said: str, home: Path, capsys: Capture
) -> None:
    assert run(*arguments) == status
    assert said in capsys.readouterr().err
    assert [one.name for one in home.iterdir()] == ["project"]


def test_nothing_to_undo_is_said(home: Path, capsys: Capture) -> None:
    assert run("uninstall", "cursor") == 0
    assert "Nothing to take out" in capsys.readouterr().out


def test_the_text_to_paste_is_printed_and_nothing_written(home: Path, capsys: Capture) -> None:
    assert run("install", "vscode", "--print") == 0
    assert json.loads(capsys.readouterr().out)["servers"]["watchkeeper"]["type"] == "stdio"
    assert [one.name for one in home.iterdir()] == ["project"]


def test_the_list_names_files_and_entries(home: Path, capsys: Capture) -> None:
    cursor(home)
    assert run("install", "cursor", "--yes") == 0
    capsys.readouterr()
    assert run("install", "--list") == 0
    said = capsys.readouterr().out
    assert f"{home}/.cursor/mcp.json\n           entry watchkeeper" in said
    assert f"{home}/.config/Claude/claude_desktop_config.json\n           no such file yet" in said
