"""Wheel and sdist, built once for all tests of this folder; and the wheel in an environment of its own."""

import os
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
from fakes.distribution import ROOT, Archives, build, run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    return build(ROOT, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def unpacked(built: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree that the sdist holds."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built.sdist) as packed:
        packed.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="session")
def installed(built: Archives, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel.

    The dependencies are those of the environment that the tests run in: its folder comes last, and its own .pth files
    are not read there, so that the checkout is not seen.
    """
    place = tmp_path_factory.mktemp("installed")
    venv.create(place)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "--disable-pip-version-check"]
    run(*pip, "install", "--no-index", "--no-deps", "--quiet", built.wheel, cwd=place)
    (ours,) = place.glob("**/site-packages")
    (ours / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return programs
