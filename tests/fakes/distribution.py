"""Building wheel and sdist of the checkout, without a network."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUARD_S = 110
EPOCH = "1700000000"
"""The time that goes into archives. https://reproducible-builds.org/specs/source-date-epoch/"""


@dataclass(frozen=True)
class Archives:
    wheel: Path
    sdist: Path


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What it prints; its status is 0. The settings of the person who runs the tests are not seen."""
    ours = ("WATCHKEEPER_", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command, cwd=cwd, env={**inherited, **environment}, capture_output=True, text=True, timeout=GUARD_S
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, output: Path) -> Archives:
    run(sys.executable, "-m", "hatchling", "build", "-d", output, cwd=source, SOURCE_DATE_EPOCH=EPOCH)
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    return Archives(wheel, sdist)
