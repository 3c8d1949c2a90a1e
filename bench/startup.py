"""How long the server takes to be of use, and how much memory it then has.

    python bench/startup.py [--runs 9] [--executable PATH] [--json FILE]

Everything is seen from outside: the client asks, /proc tells of processes, and the page's server of its request. Each
run is a server of its own. Times are milliseconds from the spawn, medians of the runs; memory is megabytes of the
server's own processes (browsers are not counted), resident (RSS), and with pages that processes share divided among
them (PSS). Modules are compiled beforehand, as an installer does. Linux only.

``first page`` asks right after the handshake, as a script does; ``first page, later`` after the server has loaded, as a
person's client does, timed from its own request.
"""

import argparse
import compileall
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import watchkeeper.context
import watchkeeper.server
import watchkeeper.supervisor
from watchkeeper.context.samples import load_sample

ANSWER_S = 60.0
LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SETTLED_S = 0.5
"""Before memory is read: what a call left to be done is done by then."""
Marks = dict[str, float]


def measure(runs: int = 9, executable: str | None = None) -> dict[str, Any]:
    """``stdio`` and ``http``: name -> median milliseconds; ``memory``: name -> (RSS, PSS) in megabytes."""
    compile_modules()
    options = ["--headless", "true", *(["--executable", executable] if executable else [])]
    with _page() as (url, asked):
        scripts = [_script(options, url, asked) for _ in range(runs)]
        persons = [_person(options, url) for _ in range(runs)]
        https = [_http([*options, "--transport", "http", "--port", "0"], url) for _ in range(max(1, runs // 3))]
    memory = {name: persons[0][1][name] for name in persons[0][1]}
    memory |= {f"http, {name}": https[0][1][name] for name in https[0][1]}
    return {
        "runs": runs,
        "stdio": _medians([*scripts]) | _medians([marks for marks, _ in persons]),
        "http": _medians([marks for marks, _ in https]),
        "memory": memory,
    }


def compile_modules() -> None:
    """As installers do; a checkout has what was imported last."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for part in (watchkeeper.context, watchkeeper.server, watchkeeper.supervisor):
        compileall.compile_dir(str(Path(str(part.__file__)).parent), quiet=2)


class Server:
    """A server over stdio, and the client that talks to it. It has ``ANSWER_S`` for everything."""

    def __init__(self, options: list[str], stderr: int = subprocess.DEVNULL) -> None:
        self.began = time.perf_counter()
        command = [sys.executable, "-m", "watchkeeper.server", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        self._guard = threading.Timer(ANSWER_S, self.process.kill)
        self._guard.start()
        self._number = 0

    @property
    def ms(self) -> float:
        """Since the spawn."""
        return (time.perf_counter() - self.began) * 1000

    def tell(self, method: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self._number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline() or b'{"id": -1}')
            if answer.get("id") == -1:
                raise TimeoutError(f"no answer to {method}")
            if answer.get("id") == self._number:
                return _result(answer)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def memory(self) -> tuple[float, float]:
        """RSS and PSS of the server and of its children that are no browsers."""
        time.sleep(SETTLED_S)
        own = [self.process.pid, *(pid for pid in children(self.process.pid) if not _is_browser(pid))]
        return tuple(round(sum(_smaps(pid, kind) for pid in own), 1) for kind in ("Rss", "Pss"))  # type: ignore[return-value]

    def end(self) -> float:
        """Milliseconds from the end of the input to the end of the process."""
        began = time.perf_counter()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        took = (time.perf_counter() - began) * 1000
        self._guard.cancel()
        self.process.stdout.close()
        return took


def _script(options: list[str], url: str, asked: Callable[[], float]) -> Marks:
    """A client that asks for a page at once."""
    server = Server(options)
    marks: Marks = {}
    launched: list[float] = []

    def watch() -> None:
        while server.process.poll() is None and not launched:
            if any(children(server.process.pid)):
                launched.append(server.ms)
            time.sleep(0.002)

    watching = threading.Thread(target=watch, daemon=True)
    server.ask("initialize", **LEGACY)
    marks["initialize"] = server.ms
    server.tell("notifications/initialized")
    server.ask("tools/list")
    marks["tools/list"] = server.ms
    watching.start()
    server.call("browser_navigate", url=url)
    marks["first page"] = server.ms
    marks["… its browser is started"] = launched[0] if launched else marks["first page"]
    marks["… its request reaches the site"] = (asked() - server.began) * 1000
    server.ask("prompts/list")
    marks["first answer of the live server"] = server.ms
    marks["end of input to end of process"] = server.end()
    return marks


def _person(options: list[str], url: str) -> tuple[Marks, dict[str, tuple[float, float]]]:
    """A client that asks when everything is loaded; with the memory at each stage."""
    server = Server(options)
    marks: Marks = {}
    memory: dict[str, tuple[float, float]] = {}
    server.ask("initialize", **LEGACY)
    server.tell("notifications/initialized")
    server.ask("tools/list")
    server.ask("prompts/list")
    marks["loaded, without a page"] = server.ms
    memory["idle"] = server.memory()
    began = server.ms
    server.call("browser_navigate", url=url)
    marks["first page, later"] = server.ms - began
    for number in range(5):
        server.call("browser_navigate", url=f"{url}?{number}")
        server.call("browser_snapshot")
        server.call("browser_evaluate", expression="1 + 1")
    server.call("browser_screenshot")
    memory["after browsing"] = server.memory()
    server.call("compress_context", messages=load_sample("checkout"))
    memory["after compressing"] = server.memory()
    server.end()
    return marks, memory


def _http(options: list[str], url: str) -> tuple[Marks, dict[str, tuple[float, float]]]:
    """Over HTTP nothing is answered before all is loaded; the port is told on stderr when it is open."""
    server = Server(options, subprocess.PIPE)
    marks: Marks = {}
    memory: dict[str, tuple[float, float]] = {}
    assert server.process.stderr is not None
    said = server.process.stderr.readline().decode()
    marks["listening"] = server.ms
    port = int(said.split("http://")[1].split("/")[0].rpartition(":")[2])
    threading.Thread(target=server.process.stderr.read, daemon=True).start()

    def ask(method: str, **params: Any) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": MODERN}})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        connection.request("POST", "/mcp", body, headers)
        text = connection.getresponse().read().decode()
        connection.close()
        lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("data:", "{"))]
        return _result(json.loads(next(line for line in lines if '"id"' in line)))

    ask("tools/list")
    marks["tools/list"] = server.ms
    memory["idle"] = server.memory()
    began = server.ms
    ask("tools/call", name="browser_navigate", arguments={"url": url})
    marks["first page, later"] = server.ms - began
    memory["after browsing"] = server.memory()
    server.process.terminate()
    server.end()
    return marks, memory


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = answer.get("result", {})
    if "error" in answer or result.get("isError"):
        raise RuntimeError(json.dumps(answer)[:400])
    return result


def children(pid: int) -> list[int]:
    """The processes that a process started and that live."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def _is_browser(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "chrom" in Path(f"/proc/{pid}/comm").read_text()
    return True


def _smaps(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{kind}:"))


@contextlib.contextmanager
def _page() -> Iterator[tuple[str, Callable[[], float]]]:
    """A page on loopback; its address, and when it was asked for last (``perf_counter``)."""
    at: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "favicon" not in self.path:
                at.append(time.perf_counter())
            body = b"<!doctype html><title>Page</title><h1>Simple</h1><button>Count</button><p>Some text.</p>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # a browser that ends
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", lambda: at[-1]
    finally:
        server.shutdown()
        server.server_close()


def _medians(runs: list[Marks]) -> Marks:
    return {name: round(statistics.median(marks[name] for marks in runs), 1) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--executable", help="the browser to start")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    given = parser.parse_args()
    found = measure(given.runs, given.executable)
    for transport in ("stdio", "http"):
        print(f"{transport}, ms")
        for name, ms in found[transport].items():
            print(f"  {name:36}{ms:8.0f}")
    print("server memory, MB                          RSS     PSS")
    for name, (rss, pss) in found["memory"].items():
        print(f"  {name:36}{rss:8.1f}{pss:8.1f}")
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
