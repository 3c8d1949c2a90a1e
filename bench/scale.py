"""How a browser's tasks grow: ``python bench/scale.py [--tasks 1,2,5,10,20,50]``. By hand, when the machine is quiet.

Prints a table and writes ``bench/out/scale.json``. Each number of tasks begins with a browser of its own; all of them
open the same page at once, each answers a dialog of its own, then all end at once. Memory is taken at rest: ours is
this process's resident set, the browser's is the proportional set of all its processes.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.site import Site

from watchkeeper.supervisor import LocalEndpoint, Supervisor, SupervisorOptions, SupervisorRegistry

OUT = Path(__file__).parent / "out"
COUNTS = (1, 2, 5, 10, 20, 50)
ENDPOINT = LocalEndpoint(headless=True)
GUARD_S = 300.0
REST_S = 2.0
PAGE = "<title>Shop</title>" + "".join(f"<p>Line {n} <a href='/{n}'>more</a></p>" for n in range(200))


def tasks(counts: Sequence[int] = COUNTS) -> list[dict[str, Any]]:
    """A row for each number of tasks: seconds until all had their page, milliseconds a task for the parts (median over
    tasks), seconds until all had ended, and memory in MB, whole and for each task beyond the first."""
    with Site() as site:
        site.page("/", PAGE)
        return [asyncio.run(_row(count, site)) for count in counts]


async def _row(count: int, site: Site) -> dict[str, Any]:
    registry = SupervisorRegistry(options=SupervisorOptions(launch_timeout_s=GUARD_S))
    names = [f"task-{number}" for number in range(count)]
    opened: list[float] = []
    answered: list[float] = []
    before_mb = _our_mb()
    try:
        async with asyncio.timeout(GUARD_S):
            first = await registry.get_or_start(names[0], ENDPOINT)
            await first.navigate(site.url("/"), timeout=GUARD_S)
            alone = await _memory(first)

            async def begin(name: str) -> None:
                supervisor = await registry.get_or_start(name, ENDPOINT)
                await supervisor.navigate(site.url("/"), timeout=GUARD_S)

            async def ask(name: str) -> None:
                await _dialog(_found(registry, name))

            started = time.monotonic()
            await _all(names[1:], begin, opened)
            all_opened = time.monotonic() - started
            await _all(names, ask, answered)
            together = await _memory(first)
            started = time.monotonic()
            await registry.stop_all()
            all_ended = time.monotonic() - started
    finally:
        await registry.stop_all()
    more = max(1, count - 1)
    return {
        "tasks": count,
        "all_opened_s": round(all_opened, 2),
        "begin_ms": _median_ms(opened),
        "dialog_ms": _median_ms(answered),
        "all_ended_s": round(all_ended, 2),
        "our_mb": round(together["our_mb"], 1),
        "browser_mb": round(together["browser_mb"], 1),
        "our_mb_a_task": round((together["our_mb"] - alone["our_mb"]) / more, 2) if count > 1 else None,
        "browser_mb_a_task": round((together["browser_mb"] - alone["browser_mb"]) / more, 1) if count > 1 else None,
        "browser_processes": together["processes"],
        "left_mb": round(_our_mb() - before_mb, 1),
    }


async def _all(names: Sequence[str], act: Callable[[str], Awaitable[None]], took: list[float]) -> None:
    async def one(name: str) -> None:
        started = time.monotonic()
        await act(name)
        took.append(time.monotonic() - started)

    await asyncio.gather(*map(one, names))


async def _dialog(supervisor: Supervisor) -> None:
    await supervisor.evaluate("void setTimeout(() => { got = confirm('Sure?') })", timeout=GUARD_S)
    await supervisor.wait_for(lambda view: view.pending_dialogs or None, GUARD_S)
    await supervisor.answer_dialog("accept")
    if await supervisor.evaluate("got", timeout=GUARD_S) is not True:
        raise SystemExit("A dialog was answered wrongly: no figures.")


def _found(registry: SupervisorRegistry, name: str) -> Supervisor:
    found = registry.get(name)
    assert found is not None
    return found


async def _memory(supervisor: Supervisor) -> dict[str, float]:
    await asyncio.sleep(REST_S)
    assert supervisor.browser.pid is not None
    process = psutil.Process(supervisor.browser.pid)
    family = [process, *process.children(recursive=True)]
    return {
        "our_mb": _our_mb(),
        "browser_mb": sum(one.memory_full_info().pss for one in family) / 1e6,
        "processes": len(family),
    }


def _our_mb() -> float:
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 1e6


def _median_ms(seconds: Sequence[float]) -> float | None:
    return round(statistics.median(seconds) * 1000, 1) if seconds else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(map(str, COUNTS)))
    given = parser.parse_args()
    rows = tasks([int(part) for part in given.tasks.split(",")])
    print("".join(f"{name:>18}" for name in rows[0]))
    for row in rows:
        print("".join(f"{'' if value is None else value:>18}" for value in row.values()))
    OUT.mkdir(exist_ok=True)
    (OUT / "scale.json").write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
