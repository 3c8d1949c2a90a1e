"""Each scenario that the conformance tests have for servers passes, or fails as ``expected_failures.toml`` says.

Rules: nothing is left out in silence. A scenario that was not run, that checked nothing, that warns, or that passes
though it is expected to fail, is as unexpected as one that fails. The servers are processes; the tests come over HTTP.
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NODE = HERE / "node_modules/.bin/node"
OLD, NEW = (HERE / f"node_modules/conformance-{name}/dist/index.js" for name in ("2025-11-25", "2026-07-28"))
LIMIT_S = 120
FAILING = ("FAILURE", "WARNING")
WITHOUT_FIXTURES = frozenset(
    {
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "ping",
        "prompts-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-stateless",
        "tools-list",
    }
)
"""Scenarios that can be run against any server. ``server-stateless`` needs some tools of its own for a part of it."""


@dataclass(frozen=True)
class Run:
    """One pass of one version of the tests, at one revision of the protocol, against one server."""

    name: str
    tests: Path
    revision: str | None
    real: bool = False


RUNS = (
    Run("0.1", OLD, None),
    Run("2025-03-26", NEW, "2025-03-26"),
    Run("2025-06-18", NEW, "2025-06-18"),
    Run("2025-11-25", NEW, "2025-11-25"),
    Run("2026-07-28", NEW, "2026-07-28"),
    Run("ours 2025-11-25", NEW, "2025-11-25", real=True),
    Run("ours 2026-07-28", NEW, "2026-07-28", real=True),
)


@dataclass
class Outcome:
    """Of one scenario in one run: ids of checks by what became of them, and what was said of those that failed."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    unexpected: list[str] = field(default_factory=list)

    def cell(self) -> str:
        if self.unexpected:
            return "FAILED"
        return f"passed {len(self.passed)}" + (f", expected {len(self.expected)}" if self.expected else "")


def conformance(tests: Path, *arguments: str) -> str:
    """What the tests print. Their exit status is left aside: it knows of no warnings."""
    command = [str(NODE), str(tests), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    return done.stdout


def scenarios(run: Run) -> set[str]:
    """The names of those for servers that belong to the revision of this run; extensions are nobody's duty."""
    listed = conformance(run.tests, "list", "--server")
    found = {name: tags.split(",") for name, tags in re.findall(r"^  - (\S+) \[([^\]]*)\]$", listed, re.MULTILINE)}
    assert found, f"no scenarios are listed:\n{listed}"
    names = {name for name, tags in found.items() if "extension" not in tags and run.revision in (None, *tags)}
    return names & WITHOUT_FIXTURES if run.real else names


def outcomes(run: Run, url: str) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        of_revision = ["--spec-version", run.revision] if run.revision else []
        said = conformance(run.tests, "server", "--url", url, "--suite", "all", "-o", folder, *of_revision)
        found: dict[str, Outcome] = {}
        for file in Path(folder).glob("server-*/checks.json"):
            name = re.sub(r"^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$", r"\1", file.parent.name)
            found[name] = outcome(json.loads(file.read_text("utf-8")))
    wanted = scenarios(run)
    for name in wanted - set(found):
        found[name] = Outcome(unexpected=[f"was not run. The tests said:\n{said[-2000:]}"])
    return {name: found[name] for name in wanted}


def outcome(checks: list[dict[str, Any]]) -> Outcome:
    made = Outcome()
    for check in checks:
        if check["status"] in FAILING:
            made.failed[check["id"]] = f"{check['status']}: {check.get('errorMessage') or check['description']}"
        elif check["status"] == "SUCCESS":
            made.passed.add(check["id"])
    made.passed -= set(made.failed)
    return made


def judge(run: Run, found: dict[str, Outcome], expectations: list[dict[str, str]]) -> None:
    """Sets what was expected and what was not."""
    known = {(each["scenario"], each["check"]) for each in expectations if each["run"] == run.name}
    for scenario, check in sorted(known):
        if scenario not in found or check in found[scenario].passed:
            found.setdefault(scenario, Outcome()).unexpected.append(
                f"{check} does not fail: take it off expected_failures.toml"
            )
    for name, of in found.items():
        of.expected = {check for check in of.failed if (name, check) in known}
        of.unexpected += [f"{check}: {said}" for check, said in of.failed.items() if check not in of.expected]
        if not of.passed and not of.expected and not of.unexpected:
            of.unexpected.append("checked nothing")


@contextmanager
def serving(command: list[str]) -> Iterator[str]:
    """The address of a server that this command starts; it has to end well."""
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log: list[str] = []
    try:
        assert server.stderr is not None
        first = server.stderr.readline()
        threading.Thread(target=lambda: log.extend(server.stderr or ()), daemon=True).start()
        found = re.search(r"http://[^/\s]+/mcp", first)
        assert found is not None, first
        yield found[0]
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            status = server.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            raise
        assert status == 0, "".join(log)


def table(results: dict[str, dict[str, Outcome]]) -> str:
    names = sorted({name for found in results.values() for name in found})
    rows = [["scenario", *results]]
    for name in names:
        rows.append([name, *(found[name].cell() if name in found else "" for found in results.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def main(watchkeeper: str) -> int:
    expectations = tomllib.loads((HERE / "expected_failures.toml").read_text("utf-8")).get("failure", [])
    results: dict[str, dict[str, Outcome]] = {}
    for real, command in (
        (False, [sys.executable, str(HERE / "fixture_server.py")]),
        (True, [watchkeeper, "serve", "--transport=http", "--port=0"]),
    ):
        with serving(command) as url:
            for run in RUNS:
                if run.real is real:
                    results[run.name] = outcomes(run, url)
                    judge(run, results[run.name], expectations)
    sys.stdout.write(table(results))
    bad = 0
    for run_name, found in results.items():
        for name, of in sorted(found.items()):
            for said in of.unexpected:
                bad += 1
                sys.stdout.write(f"\n{run_name}, {name}: {said}\n")
    passed = sum(len(of.passed) for found in results.values() for of in found.values())
    expected = sum(len(of.expected) for found in results.values() for of in found.values())
    sys.stdout.write(f"\n{passed} checks passed, {expected} failed as expected, {bad} unexpected\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
