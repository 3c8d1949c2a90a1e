"""What the documents name exists: links and their anchors, settings, variables, tools, codes, names of the code."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from fakes.markdown import ROOT, Page, pages

from watchkeeper.server.settings import CONFIG_VARIABLE, all_settings
from watchkeeper.server.tools import ALL_TOOLS

SECTION = re.compile(r"(browser|context|compression|auxiliary|prompt_caching|server)(\.[a-z_]+)+")
VARIABLE = re.compile(r"WATCHKEEPER_[A-Z_]+")
FILE_ENDS = (".md", ".py", ".json", ".yaml", ".yml", ".db", ".toml", ".svg", ".lock")


@cache
def names() -> frozenset[str]:
    """Every word of the code, and of the programs in the documents: a name that stands there is one that there is."""
    parts = [ROOT / part for part in ("supervisor", "context", "server", "bench")]
    programs = [block.text for page in pages() for block in page.blocks() if block.language in ("python", "yaml")]
    code = [path.read_text("utf-8") for part in parts for path in sorted(part.rglob("*.py"))]
    return frozenset(re.findall(r"\w+", "\n".join([*code, *programs])))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links():
        if re.match(r"[a-z]+:", link):
            assert link.startswith("https://"), f"{page.name}: {link}"
            continue
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        assert target.exists(), f"{page.name}: there is no {link}"
        if anchor:
            assert anchor in Page(target).anchors(), f"{page.name}: {link} has no such heading"


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in Page(index).links()}
    for page in pages():
        if page.path not in (index, ROOT / "README.md"):
            assert page.path in linked, f"docs/README.md does not link {page.name}"


def test_settings_and_variables_that_are_named_exist() -> None:
    names = {setting.name for setting in all_settings()}
    heads = {name.rsplit(".", depth)[0] for name in names for depth in range(1, name.count(".") + 1)}
    variables = {setting.variable for setting in all_settings()} | {CONFIG_VARIABLE}
    for page in pages():
        for code in page.code():
            word = code.partition(":")[0].partition("=")[0].strip()
            if SECTION.fullmatch(word) and not word.endswith(FILE_ENDS):
                known = word in names or word in heads or word.startswith("context.engines.")
                assert known, f"{page.name}: there is no setting {word}"
        for variable in VARIABLE.findall(page.text):
            known = variable in variables or any(variable.startswith(f"{one}__") for one in variables)
            assert known or variable.endswith("_"), f"{page.name}: there is no variable {variable}"


def test_names_that_look_like_ours_are() -> None:
    known = names() | {spec.name for spec in ALL_TOOLS}
    for page in pages():
        for code in page.code():
            if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", code):
                assert code in known, f"{page.name}: nothing is called {code}"


def test_paths_of_this_repository_that_are_named_exist() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    tops = {line.split("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    for page in pages():
        for code in page.code():
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/[\w-]+\.\w+", code) and code.split("/")[0] in tops:
                assert (ROOT / code).exists(), f"{page.name}: there is no {code}"


def test_no_page_speaks_of_what_is_not_there() -> None:
    for page in pages():
        assert not re.search(r"\bTODO\b|\bTBD\b|coming soon", page.text), page.name
        for line, text in enumerate(page.text.splitlines(), 1):
            assert len(text) <= 400 or text.startswith("|"), f"{page.name}:{line} is long"
    assert Path(__file__).exists()
