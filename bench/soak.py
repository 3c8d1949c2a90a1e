"""Many hours in a few minutes: mixed work in one server process, and whether anything grows.

    python bench/soak.py [--minutes 10]        or `make soak`, `SOAK_MINUTES=60 make soak`

One server over HTTP, two clients with tokens of their own, one of each era of the protocol, and others that come,
listen and go. Each round does every kind of work (``soak_work.py``) on tasks that begin and end; every few rounds the
browser is killed. At the quiet end of each round memory, open files, threads, processes and tasks of the event loop
are taken; ``flat.py`` judges them. Exit status 1 where something grows, a call was late, or something came out wrong.
Writes ``bench/out/soak.json`` with every sample, and the server's log beside it.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2 as httpx
import psutil
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from fakes.hearing import hearing
from fakes.site import Site
from flat import LEAST_SAMPLES, Sample, Verdict, counts_judged, judged
from soak_work import ACTS, DIALOG_TIMEOUT_S, Agent, Tally, Wrong, done, filling, furnish, killed

from watchkeeper.server.settings import Settings

OUT = Path(__file__).parent / "out"
TOKENS = {"ALICE": "alice-soaks-with-this", "BOB": "bob-soaks-with-that"}
FILLING = 150
"""Big answers: more than what is kept for clients that come back (8 MiB)."""
KILL_EVERY = 8
AT_ONCE = 3
"""Tasks of one client at the same time."""
KEEPER = "keeper"
"""A task that stays from round to round, so that its browser does."""
SETTLE_S = 20.0
END_S = 30.0
MEMORY_NOISE = {"server_mb": 3.0, "browser_mb": 25.0}
"""What memory may gain in the second half without being growth."""
COUNTS_SPARE = {"open_files": 1, "threads": 1, "event_loop_tasks": 1, "processes": 1}


class Server:
    """The process under test; its log goes into a file."""

    def __init__(self, folder: Path, out: Path) -> None:
        self._said = out / "soak-stderr.txt"
        command = [sys.executable, "-m", "watchkeeper.server", "serve", "--transport", "http", "--port", "0"]
        command += ["--headless", "true", "--log-level", "info", "--log-file", str(out / "soak.log")]
        command += ["--server.allowed_dirs", str(folder), "--browser.dialog_timeout_s", str(DIALOG_TIMEOUT_S)]
        tokens = {f"WATCHKEEPER_SERVER__AUTH_TOKENS__{name}": token for name, token in TOKENS.items()}
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=said, env={**os.environ, **tokens}
            )
        self.url = ""

    async def listening(self) -> None:
        with anyio.fail_after(END_S):
            while "/mcp" not in (said := self._said.read_text()):
                if self.process.poll() is not None:
                    raise SystemExit(f"The server did not start: {said}")
                await anyio.sleep(0.1)
        self.url = said.split("listening on ")[1].split("/mcp")[0]

    async def status(self) -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=END_S) as http:
            answer = await http.get(f"{self.url}/status", headers=_bearer("ALICE"))
        found: dict[str, Any] = answer.json()
        return found

    def processes(self) -> list[psutil.Process]:
        """Everything below the server, zombies included."""
        return psutil.Process(self.process.pid).children(recursive=True)

    async def end(self) -> list[str]:
        """What was wrong with its end."""
        if self.process.poll() is not None:
            return [f"the server ended by itself with {self.process.returncode}"]
        left = self.processes()
        self.process.terminate()
        try:
            with anyio.fail_after(END_S):
                while self.process.poll() is None:
                    await anyio.sleep(0.1)
        except TimeoutError:
            self.process.kill()
            return ["the server did not end"]
        await anyio.sleep(1)
        alive = [str(one.pid) for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
        wrong = [f"processes are left: {', '.join(alive)}"] if alive else []
        return wrong + ([f"the server ended with {self.process.returncode}"] if self.process.returncode else [])


def _bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[name]}"}


@asynccontextmanager
async def connected(server: Server, name: str, era: str, **options: Any) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(headers=_bearer(name), timeout=300) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=era, read_timeout_seconds=300, **options) as client:
            yield client


class Soak:
    def __init__(self, server: Server, site: Site, seconds: float) -> None:
        self.tally = Tally()
        self.samples: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self._server = server
        self._site = site
        self._seconds = seconds
        self._settings = Settings.model_validate({"browser": {"dialog_timeout_s": DIALOG_TIMEOUT_S}})
        self._random = random.Random(1)
        self._lives: dict[int, int] = {}

    async def run(self) -> None:
        async with connected(self._server, "ALICE", "auto") as a, connected(self._server, "BOB", "legacy") as b:
            alice, bob = (Agent(client, self._settings, self.tally) for client in (a, b))
            for agent in (alice, bob):
                await filling(agent, "filling", self._site, FILLING)
            number = 0
            while self._goes_on():
                await alice.call("browser_navigate", url="about:blank", task_id=KEEPER)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._round(alice, f"a{number}"))
                    group.create_task(self._round(bob, f"b{number}"))
                    group.create_task(self._listeners(number))
                if number % KILL_EVERY == KILL_EVERY // 2:
                    await self._kill(alice)
                self._site.requests.clear()
                await self._sample(number)
                number += 1
            for agent in (alice, bob):
                await agent.call("browser_close", task_id=KEEPER)
            self.closed = await self._settled()

    def _goes_on(self) -> bool:
        """For the time that was wanted; on a slow machine for up to three times that, until there can be a verdict."""
        took = time.monotonic() - self.started
        return took < self._seconds or (len(self.samples) < 2 * LEAST_SAMPLES and took < 3 * self._seconds)

    async def _round(self, agent: Agent, name: str) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(number: int, act: Any) -> None:
            async with turns:
                await done(act, agent, f"{name}-{number}", self._site, self.tally)

        acts = list(ACTS)
        self._random.shuffle(acts)
        async with asyncio.TaskGroup() as group:
            for number, act in enumerate(acts):
                group.create_task(one(number, act))

    async def _listeners(self, number: int) -> None:
        """Clients of both eras come, subscribe, hear of a dialog, and go."""
        for era, name in (("auto", "ALICE"), ("legacy", "BOB")):
            task = f"heard-{number}"
            uri = f"watchkeeper://tasks/{task}/dialogs"

            def open(mode: str, name: str = name, **options: Any) -> Any:
                return connected(self._server, name, mode, **options)

            try:
                async with hearing(open, era, [uri]) as (client, heard):
                    agent = Agent(client, self._settings, self.tally)
                    await agent.call("browser_navigate", url=self._site.url("/"), task_id=task)
                    heard.forget(uri)
                    await agent.evaluate(task, "void setTimeout(() => alert('heard?'))")
                    await heard.until(uri)
                    await agent.dialog(task)
                    await agent.call("browser_dialog", action="accept", task_id=task)
                    await client.read_resource(uri)
                    await agent.call("browser_close", task_id=task)
            except* (Wrong, TimeoutError) as errors:
                self.tally.wrong.extend(f"listening, {era}: {error!r}" for error in _leaves(errors))

    async def _kill(self, agent: Agent) -> None:
        tasks = [f"killed-{n}" for n in range(3)]
        [browser] = (await self._server.status())["browsers"]
        try:
            with anyio.fail_after(120):
                await killed(agent, tasks, self._site, browser["pid"])
        except* (Wrong, TimeoutError) as errors:
            self.tally.wrong.extend(f"killed: {error!r}" for error in _leaves(errors))
        for task in tasks:
            await agent.call("browser_close", task_id=task)
        await agent.call("browser_navigate", url="about:blank", task_id=KEEPER)

    async def _sample(self, number: int) -> None:
        found = await self._settled()
        self.samples.append(found)
        shown = " ".join(f"{name}={value:g}" for name, value in found.items() if isinstance(value, int | float))
        print(f"round {number}: {shown} wrong={len(self.tally.wrong)} late={len(self.tally.late)}", flush=True)

    async def _settled(self) -> dict[str, Any]:
        """A sample at rest: counts at the lowest of some moments, for what is closing needs a moment to be closed."""
        lowest: dict[str, Any] = {}
        ends = time.monotonic() + SETTLE_S
        same = 0
        while time.monotonic() < ends and same < 4:
            await anyio.sleep(0.5)
            now = await self._now()
            less = [name for name in COUNTS_SPARE if now[name] < lowest.get(name, float("inf"))]
            same = 0 if less else same + 1
            lowest = {**now, **{name: min(now[name], lowest.get(name, now[name])) for name in COUNTS_SPARE}}
        return lowest

    async def _now(self) -> dict[str, Any]:
        status = await self._server.status()
        process, below = status["process"], self._server.processes()
        browser = next((one["pid"] for one in status["browsers"] if one["connected"]), 0)
        life = self._lives.setdefault(browser, len(self._lives))
        return {
            "at": round(time.monotonic() - self.started, 1),
            "life": life,
            "server_mb": process["memory_mb"],
            "browser_mb": round(sum(map(_pss_mb, below)), 1),
            "open_files": process["open_files"],
            "threads": process["threads"],
            "event_loop_tasks": process["event_loop_tasks"],
            "processes": len(below),
            "tasks": len(status["tasks"]),
        }

    def verdicts(self) -> dict[str, Verdict]:
        def series(name: str, of_life: bool) -> list[Sample]:
            return [(sample["at"], sample[name], sample["life"] if of_life else 0) for sample in self.samples]

        memory = {n: judged(series(n, n == "browser_mb"), noise) for n, noise in MEMORY_NOISE.items()}
        return memory | {n: counts_judged(series(n, False), spare) for n, spare in COUNTS_SPARE.items()}


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    found = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _pss_mb(process: psutil.Process) -> float:
    """Memory of a process, what it shares counted in part."""
    with contextlib.suppress(psutil.Error):
        return float(process.memory_full_info().pss) / 1e6
    return 0.0


async def soak(minutes: float, out: Path) -> int:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Site() as site:
        furnish(site)
        server = Server(Path(folder), out)
        try:
            await server.listening()
            run = Soak(server, site, minutes * 60)
            await run.run()
            last = await server.status()
        finally:
            wrong_end = await server.end()
        left = sorted(path.name for path in Path(folder).iterdir())
    verdicts = run.verdicts()
    wrong = run.tally.wrong + wrong_end + ([f"files are left: {left[:5]}"] if left else [])
    if run.closed["tasks"] or run.closed["processes"]:
        wrong.append(f"after all tasks were closed: {run.closed}")
    report = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": round((time.monotonic() - run.started) / 60, 1),
        "cores": os.cpu_count(),
        "flat": {name: verdict.as_dict() for name, verdict in verdicts.items()},
        "calls": dict(run.tally.calls),
        "errors": dict(run.tally.errors),
        "slowest_s": {tool: round(seconds, 2) for tool, seconds in sorted(run.tally.slowest.items())},
        "late": run.tally.late,
        "wrong": wrong,
        "closed": run.closed,
        "status": last,
        "samples": run.samples,
    }
    (out / "soak.json").write_text(json.dumps(report, indent=1))
    return _told(report, verdicts)


def _told(report: dict[str, Any], verdicts: dict[str, Verdict]) -> int:
    print(f"\n{sum(report['calls'].values())} calls in {report['minutes']} minutes, {len(report['samples'])} rounds")
    for name, verdict in verdicts.items():
        said = "flat" if verdict.flat else "NOT FLAT"
        print(f"  {name:17} {said:9} {verdict.first:g} → {verdict.last:g}; {verdict.why}")
    print(f"  after all tasks were closed: {report['closed']}")
    print(f"  late calls: {len(report['late'])}, wrong: {len(report['wrong'])}")
    for line in [*report["late"], *report["wrong"]][:40]:
        print(f"    {line}")
    good = all(verdict.flat for verdict in verdicts.values()) and not report["late"] and not report["wrong"]
    print("flat" if good else "NOT FLAT, or not right")
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SOAK_MINUTES", "10")))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # clients that go while something comes, which is the point
    return asyncio.run(soak(given.minutes, given.out))


if __name__ == "__main__":
    sys.exit(main())
