"""A web site for tests: pages from texts, on loopback, under two host names that are two sites to the browser.

``site.url("/path")`` is on 127.0.0.1, ``site.other("/path")`` on localhost: an iframe from one in the other lives in a
process of its own. In texts ``{site}`` and ``{other}`` stand for the two origins.
"""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

HANG_S = 30.0


class Site:
    """``pages``: path -> text, or what computes ``(status, headers, body)`` from the request."""

    def __init__(self) -> None:
        self.pages: dict[str, str | bytes | Callable[[BaseHTTPRequestHandler], tuple[int, dict[str, str], bytes]]] = {}
        self.requests: list[str] = []
        self.closing = threading.Event()
        """Set at the end, so that handlers that hang on purpose stop."""

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def other(self, path: str = "/") -> str:
        return f"http://localhost:{self.port}{path}"

    def page(self, path: str, text: str) -> str:
        """Serve a text as HTML; gives its URL."""
        self.pages[path] = text
        return self.url(path)

    def hang(self, path: str) -> str:
        """An address that never answers."""

        def never(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
            self.closing.wait(HANG_S)
            return 503, {}, b""

        self.pages[path] = never
        return self.url(path)

    def __enter__(self) -> Self:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                site.requests.append(self.path)
                page = site.pages.get(path)
                status, headers, body = 404, {}, b"not found"
                if callable(page):
                    status, headers, body = page(self)
                elif page is not None:
                    text = page if isinstance(page, bytes) else site._filled(page).encode()
                    status, body = 200, text
                self.send_response(status)
                for name, value in ({"Content-Type": "text/html; charset=utf-8"} | headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    return  # the browser went away, as some tests want

            do_POST = do_GET

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _filled(self, text: str) -> str:
        return text.replace("{site}", self.url("")).replace("{other}", self.other(""))
