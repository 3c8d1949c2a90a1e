"""What dialogs, frames and tasks cost on this machine: ``python bench/dialogs.py [--rounds 5]``. By hand, when quiet.

Prints a table and writes ``bench/out/dialogs.json``. Only ratios within one run compare: machines and loads differ.
Times are in milliseconds, by the page's clock where a page is involved (its offset from ours is measured first).
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.site import Site

from watchkeeper.supervisor import LocalEndpoint, Supervisor, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.options import BridgeChoice

OUT = Path(__file__).parent / "out"
WAYS: tuple[BridgeChoice, ...] = ("never", "debugger", "xhr")
ENDPOINT = LocalEndpoint(headless=True)
SCRIPTS = (0, 20, 100, 500)
NOW = "performance.timeOrigin + performance.now()"


def figures(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"median": round(statistics.median(ordered), 2), "p95": round(p95, 2), "n": len(ordered)}


async def with_supervisor(bridge: BridgeChoice, act: Callable[[Supervisor], Awaitable[Any]], **options: Any) -> Any:
    registry = SupervisorRegistry(options=SupervisorOptions(bridge=bridge, **options))
    try:
        return await act(await registry.get_or_start("task", ENDPOINT))
    finally:
        await registry.stop_all()


async def clock_offset(supervisor: Supervisor) -> float:
    """The page's clock minus ours, from the quickest of many round trips."""
    trips = []
    for _ in range(50):
        before = time.time()
        page = await supervisor.evaluate(NOW, await_promise=False)
        after = time.time()
        trips.append((after - before, page / 1000 - (before + after) / 2))
    return min(trips)[1]


async def dialog_times(site: Site, bridge: BridgeChoice, rounds: int) -> dict[str, Any]:
    """From ``confirm()`` in the page until ``snapshot()`` has it, and from our answer until the page has gone on."""

    async def act(supervisor: Supervisor) -> dict[str, Any]:
        await supervisor.navigate(site.page("/", "<p>page</p>"))
        offset = await clock_offset(supervisor)
        script = f"void setTimeout(() => {{ asked = {NOW}; confirm('?'); went = {NOW}; }}, 2)"
        seen, continued = [], []
        for _ in range(20 * rounds):
            await supervisor.evaluate(script)
            await supervisor.wait_for(lambda view: True if view.pending_dialogs else None, 5)
            visible = time.time()
            answered = time.time()
            await supervisor.answer_dialog("accept")
            asked, went = await supervisor.evaluate("[asked, went]")
            seen.append((visible - (asked / 1000 - offset)) * 1000)
            continued.append(((went / 1000 - offset) - answered) * 1000)
        return {"confirm -> visible": figures(seen), "answer -> goes on": figures(continued)}

    told: dict[str, Any] = await with_supervisor(bridge, act)
    return told


async def attach_times(site: Site, bridge: BridgeChoice, rounds: int) -> dict[str, float]:
    """From asking for a session of an open tab until dialogs of it would reach us."""

    async def act(supervisor: Supervisor) -> list[float]:
        await supervisor.navigate(site.page("/", "<p>page</p>"))
        target = supervisor.snapshot().tabs[0].target_id
        times = []
        for _ in range(10 * rounds):
            session = supervisor.state.sessions.of_target(target)
            assert session is not None
            await supervisor.browser.command("Target.detachFromTarget", {"sessionId": session.session_id})
            await supervisor.wait_for(lambda view: True if not view.tabs else None, 5)
            supervisor.browser.adopt(target, supervisor)
            before = time.perf_counter()
            await supervisor.browser.attach(target)
            await supervisor.wait_for_state(
                lambda state: True if (s := state.sessions.of_target(target)) and s.prepared else None, 5
            )
            times.append((time.perf_counter() - before) * 1000)
        return times

    return figures(await with_supervisor(bridge, act))


def cached_script(number: int) -> Callable[[BaseHTTPRequestHandler], tuple[int, dict[str, str], bytes]]:
    body = f"window.n{number} = (() => {{ {'let x = 1; x += 1; ' * 60} return x }})();".encode()
    headers = {"Content-Type": "text/javascript", "Cache-Control": "max-age=600"}
    return lambda request: (200, headers, body)


async def load_times(site: Site, rounds: int) -> dict[str, dict[str, Any]]:
    """Load times by the page's own clock, the ways in turn within each round; scripts come from the cache."""
    for number in range(max(SCRIPTS)):
        site.pages[f"/s{number}.js"] = cached_script(number)
    pages = {
        f"{count} scripts": "".join(f"<script src='/s{n}.js'></script>" for n in range(count)) for count in SCRIPTS
    }
    pages["100 debugger statements"] = f"<script>{'debugger;' * 100}</script>"
    urls = {name: site.page(f"/page{index}", text) for index, (name, text) in enumerate(pages.items())}
    took: dict[str, dict[str, list[float]]] = {name: {way: [] for way in WAYS} for name in pages}
    registries = {way: SupervisorRegistry(options=SupervisorOptions(bridge=way)) for way in WAYS}
    try:
        tasks = {way: await registry.get_or_start("task", ENDPOINT) for way, registry in registries.items()}
        for turn in range(rounds * 2 + 1):
            for name, url in urls.items():
                for way in WAYS:
                    await tasks[way].navigate(url)
                    entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
                    loaded = await tasks[way].evaluate(
                        f"new Promise(r => {{ const t = () => {entry} ? r({entry}) : setTimeout(t, 1); t() }})"
                    )
                    if turn:  # the first fills the caches
                        took[name][way].append(loaded)
    finally:
        for registry in registries.values():
            await registry.stop_all()
    return {name: {way: figures(values) for way, values in by_way.items()} for name, by_way in took.items()}


async def event_rate(site: Site) -> dict[str, float]:
    """Console messages per second until the last of 50,000 is there, and what the rings do not hold any more."""

    async def act(supervisor: Supervisor) -> dict[str, float]:
        await supervisor.navigate(site.page("/", ""))
        before = time.perf_counter()
        await supervisor.evaluate("void setTimeout(() => { for (let n = 0; n < 50000; n++) console.log(n) }, 0)")
        view = await supervisor.wait_for(
            lambda v: v if v.console_other and v.console_other[-1].text == "49999" else None, 120
        )
        took = time.perf_counter() - before
        return {"per second": round(50_000 / took), "kept": len(view.console_other), "counted": view.console_dropped}

    told: dict[str, float] = await with_supervisor("auto", act)
    return told


def memory(processes: Iterable[psutil.Process]) -> float:
    """Proportional set size in MB: what is shared counts once."""
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 1e6


async def idle_memory(site: Site) -> dict[str, dict[str, float]]:
    """Of tasks with one tab each, in one browser: the whole, and what each further task adds."""
    registry = SupervisorRegistry()
    own = psutil.Process(os.getpid())
    told: dict[str, dict[str, float]] = {}
    first: tuple[int, float, float] | None = None
    url = site.page("/", "<p>idle</p>")
    try:
        for count in (1, 10, 50):
            for number in range(count):
                supervisor = await registry.get_or_start(f"task-{number}", ENDPOINT)
                if not supervisor.snapshot().tabs:
                    await supervisor.navigate(url)
            ours, theirs = own.memory_info().rss / 1e6, memory(own.children(recursive=True))
            row = {"our RSS": round(ours, 1), "browser PSS": round(theirs, 1)}
            if first is not None:
                row["ours per task"] = round((ours - first[1]) / (count - first[0]), 3)
                row["browser per task"] = round((theirs - first[2]) / (count - first[0]), 1)
            first = first or (count, ours, theirs)
            told[f"{count} tasks"] = row
    finally:
        await registry.stop_all()
    return told


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    result: dict[str, Any] = {"load average before": os.getloadavg()}
    with Site() as site:
        for way in WAYS:
            result[f"dialogs, {way}"] = await dialog_times(site, way, rounds)
            result[f"attach, {way}"] = await attach_times(site, way, rounds)
        result["load"] = await load_times(site, rounds)
        result["events"] = await event_rate(site)
        result["memory in MB"] = await idle_memory(site)
    result["load average after"] = os.getloadavg()
    OUT.mkdir(exist_ok=True)
    (OUT / "dialogs.json").write_text(json.dumps(result, indent=1))
    for name, value in result.items():
        if isinstance(value, dict):
            print(f"\n{name}")
            for key, part in value.items():
                print(f"  {key:28} {part}")
        else:
            print(f"{name}: {value}")


if __name__ == "__main__":
    asyncio.run(main())
