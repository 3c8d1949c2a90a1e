"""The command line: cheap to import, readable, and its failures are sentences."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.raw_client import COMMAND, clean

from watchkeeper.server import own_version
from watchkeeper.server.cli import main
from watchkeeper.server.commands.command_line import Parser, parser

from .test_compress import SAMPLE

pytestmark = pytest.mark.usefixtures("clean_environment")


def test_importing_the_command_line_imports_neither_the_sdk_nor_pydantic() -> None:
    code = "import sys, watchkeeper.server.cli; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"argparse", "mcp", "mcp_types", "pydantic", "anyio", "websockets", "yaml"} & set(done.stdout.split())


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["version"], ["--version"]):
        assert main(arguments) == 0
        assert capsys.readouterr().out == f"{own_version()}\n"


def commands(known: Parser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, and what is below it."""
    yield path
    for name, below in known.below().items():
        yield from commands(below, (*path, name))


@pytest.mark.parametrize("command", list(commands(parser())), ids=" ".join)
def test_help_fits_into_80_columns_and_has_examples(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "watchkeeper" in said
    assert ("examples:\n  " if command else "exit status:\n  ") in said
    assert main(["help", *command]) == 0
    assert capsys.readouterr().out == said


def test_the_examples_of_help_are_understood() -> None:
    """None has an option that does not exist; what they do is tested elsewhere."""
    for command in commands(parser()):
        found = parser()
        for name in command:
            found = found.below()[name]
        for line in (found.epilog or "").splitlines():
            words = shlex.split(line.partition(" > ")[0], comments=True)
            if words[:1] == ["watchkeeper"]:
                settings = [n for n, word in enumerate(words) if word.startswith("--") and "." in word]
                dropped = {m for n in settings for m in (n, n + 1)}
                parser().parse_args([word for n, word in enumerate(words) if n and n not in dropped])


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["instal"], "install"),
        (["archive", "pune"], "prune"),
        (["install", "curser"], "cursor"),
        (["help", "archiv"], "archive"),
        (["--headles", "--frobnicate-", "--tolsets"], ""),
        (["compress", "x", "--targt-tokens"], "--target-tokens"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_one(
    arguments: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"did you mean {nearest}" in said if nearest else "error:" in said


def test_config_shows_every_value_with_its_source_and_hides_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE", "hunter2hunter2hunter2")
    arguments = ["config", "--port", "1234", "--browser.cdp_url=ws://user:hunter2@host/x?token=hunter2"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "server.port = 1234   [command line]" in said
    assert "browser.cdp_url = (hidden)   [command line]" in said
    assert "alice (hidden)   [environment variable WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE]" in said
    assert "hunter2" not in said
    assert main([*arguments, "--json"]) == 0
    described = {setting["name"]: setting for setting in json.loads(capsys.readouterr().out)}
    assert described["server.port"]["value"] == 1234
    assert "hunter2" not in json.dumps(described)


def test_options_count_before_and_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--port", "7", "config"], ["config", "--port", "7"], ["--server.port", "7", "config"]):
        assert main(arguments) == 0
        assert "server.port = 7   [command line]" in capsys.readouterr().out


def test_engines_are_listed_with_the_active_one_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "--context.engine", "lcm"]) == 0
    said = capsys.readouterr().out
    assert "\n* lcm" in f"\n{said}"
    assert "\n  compressor" in f"\n{said}"


def test_compress_prints_the_summary_on_stdout_and_the_report_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", str(SAMPLE), "--target-tokens", "4000"]) == 0
    out, err = capsys.readouterr()
    assert "HARB-2291" in out
    assert "Compressed: " in err
    assert "Compressed: " not in out


def test_compress_gives_messages_and_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", str(SAMPLE), "--target-tokens", "4000", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["report"]["compressed"] is True
    assert result["messages"][0]["role"] == "system"


def test_compress_writes_a_file_in_the_form_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.json"
    assert main(["compress", str(SAMPLE), "--target-tokens", "4000", "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(output.read_text())["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["compress", "/nowhere.json"], 1, "does not exist"),
        (["compress", str(SAMPLE), "--target-tokens", "1"], 1, "target_tokens"),
        (["config", "--server.prot", "1"], 2, "did you mean server.port?"),
        (["config", "--config", "/nowhere.yaml"], 2, "cannot be read"),
        (["serve", "--transport", "http", "--host", "0.0.0.0"], 1, "server.auth_tokens"),
        (["serve", "--context.engine", "nosuch"], 1, "nosuch"),
    ],
)
def test_failures_are_sentences_with_a_status(arguments: list[str], status: int, said: str) -> None:
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=clean(), timeout=60
    )
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["--frobnicate"],
        ["compress"],
        ["config", "--server.port"],
        ["archive"],
        ["archive", "list", "--principal", "../x"],
    ],
)
def test_wrong_usage_is_told_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
