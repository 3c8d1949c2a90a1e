"""The programs and commands of the documents run as they stand.

A page is a story that takes place in one folder: its files are written, its commands are run in order, its programs run
one after the other in one process. What a page says that is printed is printed.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.markdown import ROOT, Block, Page, commands, pages, printed

from watchkeeper.context.samples import load_sample

pytestmark = pytest.mark.chrome
GUARD_S = 100.0
Results = dict[str, "subprocess.CompletedProcess[str]"]
RUNNER = Path(__file__).with_name("run_programs.py")
HARMLESS = ("version", "config", "engines", "compress", "archive list", "doctor")
NOT_RUN = 11
"""How many blocks say that they cannot be run. Each has a reason; a new one should have a good one."""


def run(command: list[str], folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=GUARD_S)


def runs_here(command: str, files: set[str]) -> bool:
    """Commands of ours that change nothing, and the programs that the page itself has written."""
    words = shlex.split(command, comments=True)
    if any(re.fullmatch("[A-Z]+", word) for word in words):
        return False  # the reader has to put something of their own there
    if words[0] == "watchkeeper":
        return " ".join(words[1:]).startswith(HARMLESS)
    return words[0] == "python" and words[1] in files


def tell(block: Block, output: str) -> None:
    missing = printed(block.text, output)
    assert not missing, f"{block.place} says that this is printed: {missing}\nand this was:\n{output}"


def files_of(page: Page, folder: Path, real: Callable[[str], str]) -> set[str]:
    names = set()
    for block in page.blocks():
        if block.mark == "file":
            path = folder / block.said
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(real(block.text) + "\n", "utf-8")
            names.add(block.said)
    (folder / "conversation.json").write_text(json.dumps(load_sample("checkout")), "utf-8")
    return names


def run_programs(page: Page, folder: Path, environment: dict[str, str], real: Callable[[str], str]) -> dict[str, str]:
    """Place -> what was printed there."""
    programs = [
        (block.place, real(block.text))
        for block in page.blocks()
        if block.language == "python" and block.runs and block.mark != "file"
    ]
    if not programs:
        return {}
    listed = folder / "programs.json"
    listed.write_text(json.dumps(programs), "utf-8")
    done = run([sys.executable, str(RUNNER), str(listed)], folder, environment)
    assert done.returncode == 0, f"{page.name}: {done.stdout}\n{done.stderr}"
    return dict(json.loads(line) for line in done.stdout.splitlines())


def run_commands(
    page: Page, folder: Path, environment: dict[str, str], files: set[str], real: Callable[[str], str], seen: Results
) -> dict[str, str]:
    outputs = {}
    for block in page.blocks():
        if block.language != "sh" or not block.runs:
            continue
        outputs[block.place] = ""
        for command in commands(block):
            if not runs_here(command, files):
                continue
            status = re.search(r"# exits with (\d)", command)
            words = shlex.split(real(command), comments=True)
            alike = " ".join(words)
            done = seen.get(alike) or run(words, folder, environment)
            if words[1:] == ["doctor"]:  # starts a browser; several pages begin with it
                seen[alike] = done
            expected = int(status[1]) if status else 0
            assert done.returncode == expected, f"{block.place}: {command}\n{done.stdout}\n{done.stderr}"
            outputs[block.place] += done.stdout + done.stderr
    return outputs


@pytest.fixture(scope="module")
def seen() -> Results:
    return {}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_what_a_page_says_can_be_done(
    page: Page, tmp_path: Path, reader: dict[str, str], real: Callable[[str], str], seen: Results
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    files = files_of(page, folder, real)
    outputs = run_commands(page, folder, reader, files, real, seen) | run_programs(page, folder, reader, real)
    before = ""
    for block in page.blocks():
        if block.mark == "prints":
            tell(block, outputs[before])
        before = block.place


def test_every_file_of_a_page_is_used_by_its_commands() -> None:
    for page in pages():
        used = " ".join(block.text for block in page.blocks() if block.language == "sh")
        for block in page.blocks():
            if block.mark == "file" and block.language == "python":
                assert block.said in used, block.place


def test_what_cannot_be_run_says_why_and_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [block for page in pages() for block in page.blocks() if not block.runs]
    for block in blocks:
        assert len(block.said.split()) >= 3, f"{block.place} needs a reason"
    listed = "\n".join(f"{block.place}: {block.said}" for block in blocks)
    assert len(blocks) == NOT_RUN, f"{len(blocks)} blocks are not run:\n{listed}"


def test_every_block_says_what_it_is() -> None:
    known = {"sh", "python", "json", "yaml", "toml", "text", "js", "html"}
    for page in pages():
        for block in page.blocks():
            assert block.language in known, f"{block.place}: {block.language!r}"
    assert (ROOT / "docs").is_dir()
