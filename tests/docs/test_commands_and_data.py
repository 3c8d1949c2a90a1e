"""Commands are ones that the parser takes, settings ones that exist, tool calls ones that fit their schema."""

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.markdown import ROOT, Block, Page, commands, pages

from watchkeeper.server import cli
from watchkeeper.server.commands import run as server_commands
from watchkeeper.server.errors import ToolError
from watchkeeper.server.settings import Settings
from watchkeeper.server.settings_sources import SettingsError, load
from watchkeeper.server.startup import boot
from watchkeeper.server.tools import ALL_TOOLS
from watchkeeper.server.tools.arguments import checked
from watchkeeper.server.tools.spec import ToolSpec

TOOLS = {spec.name: spec for spec in ALL_TOOLS}
CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
WITH_AN_ARGUMENT = {("compress",), ("archive", "forget")}
PLACEHOLDER = re.compile(r"\b(N|FILE|SESSION|NAME|PORT|PATH)\b")


def blocks(*languages: str) -> list[Block]:
    return [block for page in pages() for block in page.blocks() if block.language in languages and block.runs]


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> Iterator[Any]:
    """``parse(words)``: what ``watchkeeper`` makes of them, settings included, up to where it would begin."""

    def begun(command: str, parsed: Any, options: dict[str, str]) -> int:
        load(options)
        return 0

    monkeypatch.setattr(server_commands, "run", begun)
    monkeypatch.setattr(boot, "may_answer", lambda *_: False)
    monkeypatch.setattr(boot, "end_on_signals", lambda: None)
    yield cli.main


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("WATCHKEEPER_"):
            monkeypatch.delenv(name)


def understood(parse: Any, words: list[str], place: str) -> None:
    try:
        parse(words)
    except SettingsError as error:
        pytest.fail(f"{place}: {error}")
    except SystemExit as ended:
        assert not ended.code, f"{place}: watchkeeper {' '.join(words)} is not understood"


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text("utf-8")))


def test_every_command_is_one_that_there_is(parse: Any) -> None:
    files = {block.said for page in pages() for block in page.blocks() if block.mark == "file"}
    seen = 0
    for block in blocks("sh"):
        for command in commands(block):
            words = shlex.split(command, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            seen += 1
            match words:
                case ["watchkeeper", *rest]:
                    understood(parse, [PLACEHOLDER.sub("1", word) for word in rest], block.place)
                case ["make", target]:
                    assert target in targets(), f"{block.place}: make {target}"
                case ["python", name, *_] if name.endswith(".py"):
                    assert name in files or (ROOT / name).is_file(), f"{block.place}: {name}"
                case ["uv" | "python" | "pip" | "pipx", *_]:
                    assert "install" in words, f"{block.place}: {command}"
                case ["docker", "build" | "run", *_]:  # there is none here; what they name is looked for
                    named = re.findall(r"seccomp=(\S+)", command)
                    assert (ROOT / "Dockerfile").is_file(), block.place
                    assert all((ROOT / name).is_file() for name in named), f"{block.place}: {named}"
                case _:
                    pytest.fail(f"{block.place}: {command} is not checked by any test; say so with a mark")
    assert seen


def test_commands_in_the_text_are_ones_that_there_are(parse: Any) -> None:
    for page in pages():
        for code in page.code():
            if code.startswith("watchkeeper ") and "…" not in code and "|" not in code:
                words = [PLACEHOLDER.sub("1", word) for word in shlex.split(code)[1:]]
                # A sentence may leave out what the command is for: `watchkeeper compress`.
                understood(parse, [*words, "1"] if tuple(words) in WITH_AN_ARGUMENT else words, page.name)
            elif re.fullmatch(r"make [a-z]+", code):
                assert code.removeprefix("make ") in targets(), f"{page.name}: {code}"
            elif re.fullmatch(r"python bench/\S+\.py", code):
                assert (ROOT / code.removeprefix("python ")).is_file(), f"{page.name}: {code}"


def servers(found: Any) -> Iterator[list[str]]:
    """The commands of entries of clients."""
    if isinstance(found, dict):
        for entry in (*found.get("mcpServers", {}).values(), *found.get("servers", {}).values()):
            if "command" in entry:
                yield [entry["command"], *entry.get("args", [])]


def test_json_can_be_read_and_says_what_is_so(parse: Any) -> None:
    for block in blocks("json"):
        try:
            found = json.loads(block.text)
        except ValueError as error:
            pytest.fail(f"{block.place}: {error}")
        for command in servers(found):
            assert Path(command[0]).name == "watchkeeper", block.place
            understood(parse, command[1:], block.place)
        if isinstance(found, dict) and set(found) == {"name", "arguments"}:
            fits(TOOLS[found["name"]], found["arguments"], block.place)


def fits(spec: ToolSpec, arguments: dict[str, Any], place: str) -> None:
    try:
        checked(spec, arguments)
    except ToolError as error:
        pytest.fail(f"{place}: {error}")


def calls(page: Page) -> Iterator[tuple[str, str]]:
    yield from ((page.name, code) for code in page.code())
    for block in page.blocks():
        if block.language == "text":
            yield from ((block.place, line.strip().removeprefix("> ")) for line in block.text.splitlines())


def test_calls_of_tools_fit_their_schema() -> None:
    seen = 0
    for page in pages():
        for place, code in calls(page):
            found = CALL.fullmatch(code)
            if found is None or found[1] not in TOOLS or "…)" in code:
                continue
            seen += 1
            call = ast.parse(code.replace("=true", "=True").replace("=false", "=False"), mode="eval").body
            assert isinstance(call, ast.Call), f"{place}: {code}"
            assert not call.args or found[2].isidentifier() or "," in found[2], f"{place}: {code}"
            spec, known = TOOLS[found[1]], {}
            for argument in call.keywords:
                assert argument.arg in spec.properties, f"{place}: {code}"
                if isinstance(argument.value, ast.Constant | ast.List | ast.Dict):
                    known[argument.arg] = ast.literal_eval(argument.value)
            if len(known) == len(call.keywords) and set(spec.required) <= set(known):
                fits(spec, known, place)
    assert seen > 5


def test_yaml_and_toml_can_be_read_and_settings_are_ones_that_there_are(
    parse: Any, tmp_path: Path, clean_environment: None
) -> None:
    sections = set(Settings.model_fields)
    for block in blocks("toml"):
        tomllib.loads(block.text)
    for block in blocks("yaml"):
        found = yaml.safe_load(block.text)
        if isinstance(found, dict) and set(found) <= sections:
            config = tmp_path / "settings.yaml"
            config.write_text(block.text, "utf-8")
            try:
                load({}, {}, config)
            except SettingsError as error:
                pytest.fail(f"{block.place}: {error}")
        for job in (found.get("jobs") or {}).values() if isinstance(found, dict) else ():
            for step in job["steps"]:
                for line in str(step.get("run", "")).splitlines():
                    if line.strip().startswith("watchkeeper "):
                        understood(parse, shlex.split(line)[1:], block.place)
