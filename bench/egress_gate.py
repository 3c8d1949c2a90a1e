"""What the gate in front of launched browsers costs: the same requests with and without it, in one run.

Usage: python bench/egress_gate.py
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.site import Site

from watchkeeper.server.settings import Settings
from watchkeeper.server.tasks import endpoint, options
from watchkeeper.supervisor import SupervisorRegistry

ROUNDS = 5
EACH = (
    "(async () => { const t = performance.now(); for (let i = 0; i < 100; i++) await (await fetch('%s?' + i)).text();"
)
EACH += " return (performance.now() - t) / 100 })()"
BIG = 50_000_000
SETTINGS = {
    "direct (loopback, as by default)": {},
    "through the gate": {"allowed_hosts": ("127.0.0.1",)},
}


async def measure(site: Site) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {name: {} for name in SETTINGS}
    running = {}
    for name, browser in SETTINGS.items():
        settings = Settings.model_validate({"browser": {"headless": True, **browser}})
        registry = SupervisorRegistry(options=options(settings))
        running[name] = registry, await registry.get_or_start("bench", endpoint(settings))
    for _ in range(ROUNDS):
        for name, (_, supervisor) in running.items():
            into = found[name]
            for path in ("/a", "/b", "/a", "/b"):
                started = time.perf_counter()
                await supervisor.navigate(site.url(path))
                into.setdefault("navigate, ms", []).append((time.perf_counter() - started) * 1000)
            kept = await supervisor.evaluate(EACH % "/small")
            into.setdefault("request on an open connection, ms", []).append(kept)
            into.setdefault("request on a new connection, ms", []).append(await supervisor.evaluate(EACH % "/once"))
            script = "fetch('/big').then(r => r.arrayBuffer()).then(b => b.byteLength)"
            started = time.perf_counter()
            assert await supervisor.evaluate(script) == BIG
            into.setdefault("50 MB, MB/s", []).append(BIG / 1e6 / (time.perf_counter() - started))
    for registry, _ in running.values():
        await registry.stop_all()
    return found


def main() -> None:
    with Site() as site:
        for path in ("/a", "/b", "/small"):
            site.page(path, "<title>x</title>x")
        site.pages["/once"] = lambda request: (200, {"Connection": "close"}, b"x")
        site.pages["/big"] = bytes(BIG)
        found = asyncio.run(measure(site))
    rows = next(iter(found.values()))
    for row in rows:
        print(row, *(f"{name}: {statistics.median(found[name][row]):.2f}" for name in found), sep=" | ")


if __name__ == "__main__":
    main()
