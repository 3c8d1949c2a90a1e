"""The pages that all servers get, from loopback, on two host names that are two sites to a browser.

Pages report to the server what happens in them (``/report``): a truth that does not depend on what a tool says.
"""

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HANG_S = 120.0
REPORT = "const report = (what) => { fetch('/report?' + encodeURIComponent(what), {keepalive: true}) };"
_FIELDS = "".join(f'<label>Field {n} <input name="f{n}"></label>' for n in range(40))


def links(count: int) -> str:
    return "<ul>" + "".join(f"<li><a href='/item/{n}'>Link number {n}</a></li>" for n in range(count)) + "</ul>"


def table(cells: int) -> str:
    rows = ("".join(f"<td>{r * 10 + c}</td>" for c in range(10)) for r in range(cells // 10))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def iframes(count: int) -> str:
    return "<iframe srcdoc='<button>Inner</button>'></iframe>" * count


SNAPSHOTS: dict[str, str] = {
    "simple": "<h1>Simple</h1><button onclick='this.title = +this.title + 1'>Count</button><p>Some text.</p>",
    "form, 40 fields": f"<form>{_FIELDS}<select>{'<option>a<option>b' * 10}</select></form>",
    "2,000 links": links(2_000),
    "20,000 cells": table(20_000),
    "40 iframes": iframes(40),
    "iframe of another site": "<h1>Around</h1><iframe src='{other}/inner'></iframe>",
}
PAGES: dict[str, str] = {
    "/": SNAPSHOTS["simple"],
    "/second": "<h1>Second page</h1>",
    "/inner": "<button>Within</button><script>window.kept = 4242</script>",
    "/around": "<h1>Around</h1><iframe id='inner' src='{other}/inner'></iframe>",
    "/ask": f"<script>{REPORT} function ask() {{ const got = confirm('QUESTION-6120'); report('went ' + got);"
    " document.title = 'went' }</script><button onclick='ask()'>Ask</button>",
    "/alert": f"<script>{REPORT} setTimeout(() => {{ alert('ALERT-7319'); report('closed'); }}, 700)"
    "</script><h1>Alert</h1>",
    "/prompt": f"<script>{REPORT} report('got ' + prompt('PROMPT-5501', 'default'))</script><h1>Prompt</h1>",
}


class Pages:
    """A server of ``PAGES``, of ``SNAPSHOTS`` by number (``/s/0``), and of what is added. A context manager."""

    def __init__(self) -> None:
        self.texts = PAGES | {f"/s/{n}": text for n, text in enumerate(SNAPSHOTS.values())}
        self._reports: list[tuple[float, str]] = []
        self._told = threading.Condition()
        self._closing = threading.Event()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def page(self, path: str, text: str) -> str:
        self.texts[path] = text
        return self.url(path)

    def forget(self) -> None:
        with self._told:
            self._reports.clear()

    def reported(self, wanted: Callable[[str], bool], within: float) -> tuple[float, str] | None:
        """The first report that is wanted, and when it came (``time.perf_counter``); None if none comes in time."""
        until = time.perf_counter() + within
        with self._told:
            while True:
                for when, what in self._reports:
                    if wanted(what):
                        return when, what
                left = until - time.perf_counter()
                if left <= 0:
                    return None
                self._told.wait(left)

    def _report(self, what: str) -> None:
        with self._told:
            self._reports.append((time.perf_counter(), what))
            self._told.notify_all()

    def __enter__(self) -> "Pages":
        pages = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/report":
                    pages._report(next(iter(parse_qs(parts.query, keep_blank_values=True)), ""))
                if parts.path == "/hang":
                    pages._closing.wait(HANG_S)
                text = pages.texts.get(parts.path)
                body = b""
                if text is not None:
                    other = f"http://localhost:{pages.port}"
                    body = f"<!doctype html><title>Page</title>{text}".replace("{other}", other).encode()
                try:
                    self.send_response(404 if text is None and parts.path != "/report" else 200)
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return  # the browser went away

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
