"""The guide to engines: its example is loaded as the guide says and held to the contract of engines."""

import re
from pathlib import Path

import pytest

from watchkeeper.context.archive import open_archive
from watchkeeper.context.discovery import list_engines, load_engine
from watchkeeper.context.plugins.context_engine.lcm import LcmEngine
from watchkeeper.context.plugins.context_engine.lcm.settings import LcmSettings
from watchkeeper.context.testing import EngineContract

DOCS = Path(__file__).parents[2] / "docs"


def block(kind, having):
    (found,) = [
        b for b in re.findall(rf"```{kind}\n(.*?)```", (DOCS / "engines.md").read_text(), re.DOTALL) if having in b
    ]
    return found


@pytest.fixture
def example(tmp_path):
    folder = tmp_path / "context_engine" / "keep_recent"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(block("yaml", "version:"))
    (folder / "__init__.py").write_text(block("python", "class KeepRecent"))
    return tmp_path


class TestExampleOfTheGuide(EngineContract):
    @pytest.fixture(autouse=True)
    def place(self, example):
        self.folder = example

    def make_engine(self):
        return load_engine("keep_recent", directories=[self.folder], context_length=8_000)


def test_the_example_is_listed_takes_its_settings_and_has_at_most_fifty_lines(example):
    (info,) = [i for i in list_engines([example]) if i.name == "keep_recent"]
    assert (info.version, info.problem) == ("1.0.0", "")
    assert load_engine("keep_recent", directories=[example], settings={"keep": 20}).keep == 20
    assert len(block("python", "class KeepRecent").splitlines()) <= 50


class TestLossless(EngineContract):
    """The shipped engine keeps the same contract."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.archive = open_archive(tmp_path / "archive.db")
        yield
        self.archive.close()

    def make_engine(self):
        return LcmEngine(8_000, {"leaf_tokens": 2_000, "background": False}, archive=self.archive)


def test_the_table_of_settings_is_what_the_engine_takes():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (DOCS / "archive.md").read_text(), re.MULTILINE)
    defaults = LcmSettings()
    assert {name for name, _ in rows} == set(LcmSettings.__dataclass_fields__)
    for name, shown in rows:
        if re.fullmatch(r"[\d.]+", shown):
            assert float(shown) == float(getattr(defaults, name)), name
