"""What must agree before a version is released."""

import re
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.distribution import ROOT, run

from watchkeeper.server import own_version

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_by_hand_in_one_place() -> None:
    assert own_version() == PROJECT["version"], "make setup, after the version has changed"
    elsewhere = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])")
    said = [
        path.relative_to(ROOT).as_posix()
        for part in ("context", "server", "supervisor")
        for path in (ROOT / part).rglob("*.py")
        if elsewhere.search(path.read_text("utf-8"))
    ]
    assert said == []


def test_the_changelog_begins_with_this_version_and_goes_back_in_order() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    parsed = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) \((unreleased|\d{4}-\d\d-\d\d)\)", head) for head in heads]
    assert all(parsed), heads
    versions = [tuple(map(int, found.groups()[:3])) for found in parsed if found]
    assert versions == sorted(versions, reverse=True)
    assert heads[0].startswith(f"{PROJECT['version']} (")
    assert not [head for head in heads[1:] if "unreleased" in head]


def test_the_extras_that_errors_name_exist() -> None:
    named = set()
    for part in ("context", "server", "supervisor"):
        for path in (ROOT / part).rglob("*.py"):
            named |= set(re.findall(r"watchkeeper\[([a-z]+)\]", path.read_text("utf-8")))
    assert named and named <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_little_and_names_versions(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 60 and "latest" not in job.get("container", "")
        for step in job["steps"]:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+(\.\d+\.\d+)?", step.get("uses", "a/b@v1")), step
    assert "secrets." not in path.read_text("utf-8")


def test_a_tag_of_another_version_is_not_released() -> None:
    script = ROOT / ".ci" / "package"
    assert script.stat().st_mode & stat.S_IXUSR
    with pytest.raises(AssertionError, match=rf"The tag is v9\.9\.9, and pyproject\.toml says {PROJECT['version']}"):
        run(script, sys.executable, "v9.9.9", cwd=ROOT)
