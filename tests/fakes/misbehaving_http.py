"""A local HTTP server that answers as told: well, wrongly, slowly, by halves, or not at all."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """One answer. `cut` sends only so many bytes of the body, then drops the connection; `drip` sends one at a time."""

    body: bytes = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    never: bool = False
    drop: bool = False
    cut: int | None = None
    drip: bool = False


class MisbehavingServer:
    """Use as a context manager. `replies` are given in turn, the last for ever; `requests` is what came in."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.arrived = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "MisbehavingServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)

    def _take(self, request: dict[str, object], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.arrived.set()
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                request = json.loads(self.rfile.read(length))
                reply = outer._take(request, {k.lower(): v for k, v in self.headers.items()})
                self.close_connection = True
                if reply.never:
                    outer._closing.wait(60)
                    return
                if reply.drop:
                    return
                try:
                    self.send_response(reply.status)
                    for key, value in {"content-type": "application/json", **reply.headers}.items():
                        self.send_header(key, value)
                    self.send_header("content-length", str(len(reply.body)))
                    self.end_headers()
                    body = reply.body if reply.cut is None else reply.body[: reply.cut]
                    if reply.drip:
                        self._drip(body)
                    else:
                        self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the client has gone

            def _drip(self, body: bytes) -> None:
                for at in range(len(body)):
                    if outer._closing.wait(0.02):
                        return
                    self.wfile.write(body[at : at + 1])
                    self.wfile.flush()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for a condition, bounded."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
