"""What the gate in front of launched browsers costs: the same requests with and without it, in one run.

Usage: python bench/egress_gate.py
"""

import asyncio
import statistics
import time

from watchkeeper.server.settings import Settings
from watchkeeper.server.tasks import endpoint, options
from watchkeeper.supervisor import SupervisorRegistry

ROUNDS = 5
EACH = """(async () => {
  const start = performance.now();
  for (let i = 0; i < 100; i++) await (await fetch('%s?' + i)).text();
  return (performance.now() - start) / 100;
})()"""
BIG = 50_000_000
SETTINGS = {
    "direct (loopback, as by default)": {},
    "through the gate": {"allowed_hosts": ("127.0.0.1",)},
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that adds as little of its own as it can: each answer in one piece."""
    try:
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1]
            body = bytes(BIG) if path == b"/big" else b"<title>x</title>x"
            once = path.startswith(b"/once")
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + (b"Connection: close\r\n\r\n" if once else b"\r\n") + body)
            await writer.drain()
            if once:
                break
    except (OSError, asyncio.IncompleteReadError):
        return
    finally:
        writer.close()


async def measure() -> dict[str, dict[str, list[float]]]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    at = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
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
                await supervisor.navigate(at + path)
                into.setdefault("navigate, ms", []).append((time.perf_counter() - started) * 1000)
            for row, path in (("open", "/small"), ("new", "/once")):
                took = await supervisor.evaluate(EACH % path)
                into.setdefault(f"request on {row} connection, ms", []).append(took)
            script = "fetch('/big').then(r => r.arrayBuffer()).then(b => b.byteLength)"
            started = time.perf_counter()
            assert await supervisor.evaluate(script) == BIG
            into.setdefault("50 MB, MB/s", []).append(BIG / 1e6 / (time.perf_counter() - started))
    for registry, _ in running.values():
        await registry.stop_all()
    server.close()
    return found


def main() -> None:
    found = asyncio.run(measure())
    for row in next(iter(found.values())):
        print(row, *(f"{name}: {statistics.median(found[name][row]):.2f}" for name in found), sep=" | ")


if __name__ == "__main__":
    main()
