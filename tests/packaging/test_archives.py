"""What is in the wheel and in the sdist, and what they say of themselves."""

import os
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from fakes.distribution import ROOT, Archives, build, run

PARTS = ("context", "server", "supervisor")
DATA = {
    "watchkeeper/context/plugins/context_engine/lcm/plugin.yaml",
    "watchkeeper/context/py.typed",
    "watchkeeper/server/startup/boot_snapshot.json",
    "watchkeeper/server/demo/transcript.json",
    "watchkeeper/server/py.typed",
    "watchkeeper/supervisor/py.typed",
}
"""What is in the wheel beside Python and the scripts that run in pages (*.js)."""
NOT_SHIPPED = {".venv", ".git", "node_modules", "__pycache__", "dist", "build", "out"}
CACHES = {".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def sources() -> set[str]:
    """What git has or would take; where there is no git, in an unpacked sdist, what is there."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        return {name for name in listed if name and (ROOT / name).is_file()}
    places = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return {path.as_posix() for path in places if not {*path.parts} & (NOT_SHIPPED | CACHES)}


@pytest.fixture(scope="module")
def metadata(built: Archives) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(wheel.read(name).decode("utf-8"))


def test_the_wheel_has_the_three_parts_and_nothing_else(built: Archives) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert {name.partition(".dist-info/")[2] for name in about} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    code = {
        path.relative_to(ROOT / part).as_posix()
        for part in PARTS
        for suffix in ("*.py", "*.js")
        for path in (ROOT / part / "watchkeeper").rglob(suffix)
    }
    assert names - about == code | DATA
    assert "watchkeeper/__init__.py" not in names, "the namespace belongs to nobody"


def test_the_sdist_has_everything_that_builds_checks_and_tests_the_project(unpacked: Path) -> None:
    packed = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert packed - sources() <= {"PKG-INFO"}
    assert sources() - packed == set()
    assert not {part for name in packed for part in Path(name).parts} & (NOT_SHIPPED | CACHES)
    # Its generated files are those that its own code makes: nothing outside of it is needed.
    here = os.pathsep.join(str(unpacked / part) for part in PARTS)
    run(sys.executable, "-m", "watchkeeper.server.generate", "--check", cwd=unpacked, PYTHONPATH=here)


def test_the_same_source_gives_the_same_bytes_and_the_sdist_is_such_a_source(
    built: Archives, unpacked: Path, tmp_path: Path
) -> None:
    again = build(unpacked, tmp_path)
    assert again.wheel.name == built.wheel.name and again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.name == built.sdist.name and again.sdist.read_bytes() == built.sdist.read_bytes()


def test_the_metadata_says_what_an_index_shows(metadata: Message) -> None:
    assert (metadata["Name"], metadata["License-Expression"], metadata["Requires-Python"]) == (
        "watchkeeper",
        "MIT",
        ">=3.11",
    )
    assert 0 < len(metadata["Summary"]) <= 512
    assert {url.partition(", ")[0] for url in metadata.get_all("Project-URL", [])} == {
        "Changelog",
        "Documentation",
        "Homepage",
        "Issues",
        "Source",
    }
    assert {"Typing :: Typed", "Development Status :: 3 - Alpha"} <= set(metadata.get_all("Classifier", []))
    assert set(metadata.get_all("Provides-Extra", [])) == {"anthropic", "dev", "openai", "postgres", "telemetry"}
    needed = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert not [one for one in needed if re.match(r"pytest|mypy|ruff|hatch|playwright", one)]


def test_the_readme_works_outside_of_the_repository(metadata: Message) -> None:
    """An index shows it under an address of its own, where relative links lead nowhere."""
    readme = metadata.get_payload()
    assert isinstance(readme, str) and metadata["Description-Content-Type"] == "text/markdown"
    assert "<!-- mcp-name: io.github." in readme
    links = re.findall(r"\]\(([^)\s]+)\)|\b(?:src|href)=\"([^\"]+)\"", readme)
    relative = [link for link in map("".join, links) if not re.match(r"https://|#", link)]
    assert relative == []
    version = metadata["Version"]
    ours = [link for link in map("".join, links) if "/blob/" in link or "raw.githubusercontent.com" in link]
    assert ours and all(f"/v{version}/" in link for link in ours)
