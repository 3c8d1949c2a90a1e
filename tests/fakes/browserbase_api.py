"""The two calls of Browserbase's API that we make, on loopback.

    with BrowserbaseApi(key="k", connect_url=server.url) as api:
        ...BrowserbaseEndpoint(api_url=api.url)...
        api.requests; api.created; api.released

``POST /v1/sessions`` creates a session, ``POST /v1/sessions/ID {"status": "REQUEST_RELEASE"}`` releases it, both with
the key in ``X-BB-API-Key``, as https://docs.browserbase.com/reference/api has it.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class BrowserbaseApi:
    key: str
    connect_url: str | Callable[[str], str]
    """Where sessions are reached; may be computed from the session's id."""
    refuse: tuple[int, dict[str, Any]] | None = None
    """Answer everything with this."""
    may_answer: threading.Event = field(default_factory=threading.Event)
    """Cleared: requests are taken, and answered once it is set."""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def __enter__(self) -> Self:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = api._answer(self.path, self.headers["X-BB-API-Key"], body)
                api.may_answer.wait(10)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def running(self) -> set[str]:
        return set(self.created) - set(self.released)

    def _answer(self, path: str, key: str | None, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append((path, body))
        if self.refuse is not None:
            return self.refuse
        if key != self.key:
            return 401, {"statusCode": 401, "error": "Unauthorized", "message": "Invalid API key"}
        if path == "/v1/sessions":
            session_id = f"session-{len(self.created) + 1}"
            self.created.append(session_id)
            url = self.connect_url if isinstance(self.connect_url, str) else self.connect_url(session_id)
            return 201, {"id": session_id, "status": "RUNNING", "connectUrl": url}
        session_id = path.removeprefix("/v1/sessions/")
        if session_id not in self.created or body.get("status") != "REQUEST_RELEASE":
            return 404, {"statusCode": 404, "error": "Not Found", "message": "no such session"}
        self.released.append(session_id)
        return 200, {"id": session_id, "status": "COMPLETED"}
