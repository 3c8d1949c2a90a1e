"""The pages of the demo, served on loopback.

``127.0.0.1`` and ``localhost`` are two sites for a browser, so a frame from one in a page of the other gets a process
of its own.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FRONT = """<!doctype html><title>Harbour office</title>
<h1>Harbour office</h1>
<p id="answer" aria-live="polite">No question was asked yet.</p>
<button>Cast off</button>
<iframe name="log" title="Log book" src="/log"></iframe>
<iframe name="weather" title="Weather" src="http://{other}/weather"></iframe>
<script>
  window.secret = 'only the office knows';
  function ask(kind, ...question) {{
    const got = window[kind](...question);
    document.getElementById('answer').textContent = kind + '() gave ' + JSON.stringify(got);
  }}
</script>
"""
LOG = """<!doctype html><title>Log book</title><h2>Log book</h2><p>Last entry: all hands well.</p>
<script>window.secret = 'the log says 1,204 miles';</script>
"""
WEATHER = """<!doctype html><title>Weather</title><h2>Weather</h2><p id="answer">Wind: north, 4.</p>
<script>
  window.secret = 'a storm from the west';
  function ask(kind, ...question) {
    document.getElementById('answer').textContent = kind + '() gave ' + JSON.stringify(window[kind](...question));
  }
</script>
"""


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        # The port that the browser used, which is ours.
        port = self.headers["Host"].rpartition(":")[2]
        pages = {"/": FRONT.format(other=f"localhost:{port}"), "/log": LOG, "/weather": WEATHER}
        page = pages.get(self.path)
        body = (page or "There is nothing here.").encode()
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def serve_pages() -> Iterator[str]:
    """Serve while the context is open; gives the address of the front page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="demo-pages", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
