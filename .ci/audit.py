"""Dependency audit, as far as this machine can do it; it says what it could not do.

Always: what is installed is what ``constraints.txt`` pins, and nothing comes from outside of a registry. With
``pip-audit`` installed and its database in reach: no version has a known vulnerability.

Usage: python .ci/audit.py [--complete]
(exit status 1: something is wrong, or with ``--complete`` something could not be checked; 0: nothing is known to be)
"""

import importlib.metadata as metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = "watchkeeper"
TIMEOUT_S = 120


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {canonical(name): version.split(";")[0].strip() for name, version in pairs}


def wanted() -> set[str]:
    """What the project needs, directly or not, of what is installed."""
    found: set[str] = set()
    waiting = [PROJECT]
    while waiting:
        name = canonical(re.split(r"[\s\[<>=!~;(]", waiting.pop(), maxsplit=1)[0])
        if name in found:
            continue
        try:
            requires = metadata.distribution(name).requires or []
        except metadata.PackageNotFoundError:
            continue  # of an extra or another platform
        found.add(name)
        waiting += [one for one in requires if name == PROJECT or "extra ==" not in one]
    return found - {PROJECT}


def drift() -> list[str]:
    pins, problems = pinned(), []
    for name in sorted(wanted()):
        one = metadata.distribution(name)
        if name not in pins:
            problems.append(f"{name} {one.version} is not pinned in constraints.txt")
        elif pins[name] != one.version:
            problems.append(f"{name} is installed as {one.version}, and pinned to {pins[name]}")
        direct = one.read_text("direct_url.json")
        if direct and "url" in json.loads(direct) and not json.loads(direct)["url"].startswith("file:"):
            problems.append(f"{name} comes from {json.loads(direct)['url']}, not from a registry")
    return problems


def vulnerabilities() -> tuple[bool | None, str]:
    """Whether any is known (None: it could not be checked), and what can be said."""
    beside = Path(sys.executable).parent / "pip-audit"
    program = str(beside) if beside.exists() else shutil.which("pip-audit")
    if program is None:
        return None, "NOT checked for known vulnerabilities: pip-audit is not installed (pip install pip-audit)."
    command = [
        program,
        "--requirement",
        str(ROOT / "constraints.txt"),
        "--disable-pip",
        "--no-deps",
        "--progress-spinner=off",
    ]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"NOT checked for known vulnerabilities: no answer within {TIMEOUT_S} s."
    said = (ran.stdout + ran.stderr).strip()
    if ran.returncode == 0:
        return False, "no known vulnerabilities."
    if re.search(r"^Found \d+ known vulnerabilit", said, re.MULTILINE):
        return True, said
    reason = said.splitlines()[-1][:200] if said else f"status {ran.returncode}"
    return None, f"NOT checked for known vulnerabilities: the database is out of reach ({reason})."


def main(arguments: Sequence[str] = ()) -> int:
    problems = drift()
    for problem in problems:
        print(f"audit: {problem}")
    if not problems:
        print(f"audit: {len(wanted())} dependencies, all as pinned.")
    found, said = vulnerabilities()
    print(f"audit: {said}")
    unchecked = found is None and "--complete" in arguments
    return 1 if problems or found or unchecked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
