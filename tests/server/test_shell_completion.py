"""Completions, in the shells themselves: bash always, others where they are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from watchkeeper.server.cli import main
from watchkeeper.server.commands.command_line import SHELLS
from watchkeeper.server.commands.completion import script

INSTALLED = [shell for shell in SHELLS if shell == "bash" or shutil.which(shell)]
CASES = {
    "watchkeeper inst": {"install"},
    "watchkeeper install cla": {"claude-desktop", "claude-code"},
    "watchkeeper install --scope ": {"user", "project"},
    "watchkeeper install cursor --browser.headl": {"--browser.headless"},
    "watchkeeper --browser.headless ": {"true", "false"},
    "watchkeeper --transport ": {"stdio", "http"},
    "watchkeeper serve --browser.dialog_policy auto_d": {"auto_dismiss"},
    "watchkeeper archive pru": {"prune"},
    "watchkeeper archive prune --da": {"--days"},
    "watchkeeper help arch": {"archive"},
    "watchkeeper completion ": set(SHELLS),
}


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "watchkeeper"
    path.write_text(script("bash"))
    return path


@pytest.mark.parametrize(("line", "expected"), CASES.items(), ids=list(CASES))
def test_bash_completes_commands_options_settings_and_choices(line: str, expected: set[str], bash_script: Path) -> None:
    asked = f"""
        source {bash_script}
        read -ra COMP_WORDS <<< '{line}'; [[ '{line}' == *' ' ]] && COMP_WORDS+=('')
        COMP_LINE='{line}'; COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        $(complete -p watchkeeper | sed 's/.*-F \\([^ ]*\\).*/\\1/') 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert set(run("bash", "--norc", "-c", asked).split()) == expected


def test_bash_completes_the_names_of_files(bash_script: Path) -> None:
    asked = f"""
        source {bash_script}
        COMP_WORDS=(watchkeeper compress {bash_script.parent}/watch); COMP_CWORD=2; COMP_LINE="${{COMP_WORDS[*]}}"
        _shtab_watchkeeper 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert run("bash", "--norc", "-c", asked).split() == [str(bash_script)]


@pytest.mark.parametrize("shell", INSTALLED)
def test_shells_that_are_here_understand_their_scripts(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(script(shell))
    run(shell, "--no-execute" if shell == "fish" else "-n", str(path))
    if shell == "fish":
        asked = f"source {path}; complete -C 'watchkeeper install --scope '"
        assert set(run("fish", "--no-config", "-c", asked).split()) >= {"user", "project"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_setting_is_in_every_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    from watchkeeper.server.settings import all_settings

    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert [s.name for s in all_settings() if s.name not in said] == []
