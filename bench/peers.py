"""Watchkeeper beside other MCP browser servers, in one run on one machine.

    python bench/peers.py                                  # Watchkeeper alone
    python bench/peers.py --peer playwright="npx @playwright/mcp --headless --isolated"
    python bench/peers.py --peer devtools="npx chrome-devtools-mcp --headless --isolated"

As root every peer needs its own option to run Chromium without the sandbox.

Every server gets the same pages from loopback and speaks raw JSON-RPC over stdio. Times are medians in milliseconds;
compare within one run only. Tokens are counted with cl100k. Writes bench/out/peers.md, which is not committed.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

from watchkeeper.context import tokenizer_for

OUT = Path(__file__).parent / "out" / "peers.md"
ANSWER_S = 60.0
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """How a server's tools are called, and where the ref of a labelled button stands in its snapshot."""

    navigate: Callable[[str], Call]
    snapshot: Call
    click: Callable[[str], Call]
    evaluate: Callable[[str], Call]
    ref: str


KINDS = {
    "watchkeeper": Kind(
        lambda url: ("browser_navigate", {"url": url}),
        ("browser_snapshot", {"max_tokens": 200_000}),
        lambda ref: ("browser_click", {"ref": ref}),
        lambda script: ("browser_evaluate", {"expression": script}),
        r'(\S+) button "Count"',
    ),
    "playwright": Kind(
        lambda url: ("browser_navigate", {"url": url}),
        ("browser_snapshot", {}),
        lambda ref: ("browser_click", {"element": "button", "target": ref}),
        lambda script: ("browser_evaluate", {"function": f"() => {script}"}),
        r'button "Count"[^\n]*\[ref=(\w+)\]',
    ),
    "devtools": Kind(
        lambda url: ("navigate_page", {"pageId": 1, "type": "url", "url": url}),
        ("take_snapshot", {"pageId": 1}),
        lambda ref: ("click", {"pageId": 1, "uid": ref}),
        lambda script: ("evaluate_script", {"pageId": 1, "function": f"() => {script}"}),
        r'uid=(\w+) button "Count"',
    ),
}


def links(count: int) -> str:
    return "".join(f'<li><a href="/item/{n}">Link number {n}</a></li>' for n in range(count))


def table(cells: int) -> str:
    rows = ("".join(f"<td>{r * 10 + c}</td>" for c in range(10)) for r in range(cells // 10))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


FIELDS = "".join(f'<label>Field {n} <input name="f{n}"></label>' for n in range(40))
PAGES = {
    "simple": '<h1>Simple</h1><button onclick="this.title = +this.title + 1">Count</button><p>Some text.</p>',
    "form": f"<form>{FIELDS}<select>{'<option>a<option>b' * 10}</select></form>",
    "2,000 links": f"<ul>{links(2_000)}</ul>",
    "20,000 cells": table(20_000),
    "40 iframes": "<iframe srcdoc='<button>Inner</button>'></iframe>" * 40,
    "other site": '<iframe src="{other}/0"></iframe>',
}


class Pages:
    """The pages by number, on two host names."""

    def __enter__(self) -> "Pages":
        texts = list(PAGES.values())

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number = self.path.strip("/").partition("?")[0]
                known = number.isdigit() and int(number) < len(texts)
                text = texts[int(number)] if known else ""
                port = self.server.server_address[1]
                body = f"<!doctype html><title>Page</title>{text}".replace(
                    "{other}", f"http://localhost:{port}"
                ).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Server:
    """A server process and the client that talks to it; every wait is bounded."""

    def __init__(self, command: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # some leave files where they start
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
        )
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Seconds, and the result. Ends the process where there is no answer in time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        guard = threading.Timer(ANSWER_S, self._process.kill)
        guard.start()
        began = time.perf_counter()
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        try:
            while True:
                text = self._process.stdout.readline()
                if not text:
                    raise TimeoutError(f"no answer to {method}")
                answer = json.loads(text)
                if answer.get("id") == self._number and "method" not in answer:
                    return time.perf_counter() - began, answer.get("result") or {"error": answer.get("error")}
        finally:
            guard.cancel()

    def start(self) -> float:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", about)
        assert self._process.stdin is not None
        self._process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self._process.stdin.flush()
        return time.perf_counter() - self.began

    def call(self, call: Call) -> tuple[float, str]:
        took, result = self.ask("tools/call", {"name": call[0], "arguments": call[1]})
        parts = result.get("content") or []
        return took, "\n".join(part.get("text", "") for part in parts)

    def memory(self) -> float:
        """Megabytes of the server's own processes; browsers are not counted."""
        main = psutil.Process(self._process.pid)
        own = [p for p in (main, *main.children(recursive=True)) if "chrom" not in p.name().lower()]
        return sum(p.memory_info().rss for p in own) / 1e6

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()
        self._folder.cleanup()


def measure(command: str, kind: Kind, base: str, runs: int) -> dict[str, str]:
    """Every figure of one server."""
    count = tokenizer_for("gpt-4").count
    found: dict[str, str] = {}
    starts, lists, firsts, idle = [], [], [], []
    for _ in range(max(3, runs // 2)):
        server = Server(command)
        starts.append(server.start())
        _, tools = server.ask("tools/list", {})
        lists.append(time.perf_counter() - server.began)
        took, _ = server.call(kind.navigate(f"{base}/0"))
        firsts.append(time.perf_counter() - server.began)
        idle.append(server.memory())
        server.end()
    found["spawn to initialize"] = _ms(starts)
    found["spawn to tools/list"] = _ms(lists)
    found["spawn to first page"] = _ms(firsts)
    found["server memory, MB"] = f"{statistics.median(idle):.0f}"
    schema = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools.get("tools", [])]
    found["tools; their tokens"] = f"{len(schema)}; {count(json.dumps(schema, separators=(',', ':'))):,}"
    server = Server(command)
    server.start()
    server.call(kind.navigate(f"{base}/0"))
    found["navigate"] = _ms([server.call(kind.navigate(f"{base}/0?{n}"))[0] for n in range(runs)])
    for number, name in enumerate(PAGES):
        server.call(kind.navigate(f"{base}/{number}"))
        server.call(kind.snapshot)
        times, text = [], ""
        for _ in range(runs):
            took, text = server.call(kind.snapshot)
            times.append(took)
        found[f"snapshot: {name}"] = f"{_ms(times)}; {count(text):,}"
    server.call(kind.navigate(f"{base}/0"))
    labelled = re.search(kind.ref, server.call(kind.snapshot)[1])
    if labelled:
        found["click"] = _ms([server.call(kind.click(labelled.group(1)))[0] for _ in range(runs * 2)])
    found["evaluate"] = _ms([server.call(kind.evaluate("1 + 1"))[0] for _ in range(runs * 2)])
    server.end()
    return found


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peer", action="append", default=[], metavar="KIND=COMMAND", help=f"one of {', '.join(KINDS)}"
    )
    parser.add_argument("--ours", default=f"{shlex.quote(sys.executable)} -m watchkeeper.server --headless true")
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    servers = {"watchkeeper": given.ours} | dict(peer.split("=", 1) for peer in given.peer)
    unknown = set(servers) - set(KINDS)
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}")
    with Pages() as pages:
        columns = {name: measure(command, KINDS[name], pages.base, given.runs) for name, command in servers.items()}
    rows = list(dict.fromkeys(row for column in columns.values() for row in column))
    lines = [f"| ms (snapshots: ms; tokens) | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(column.get(row, '–') for column in columns.values())} |" for row in rows]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
