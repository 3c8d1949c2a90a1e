"""Spans: off by default; on, they reach a collector, with what calls were and without what they said."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anyio
import pytest
from fakes.fake_browser import FakeBrowser
from fakes.raw_client import GUARD_S, Raw
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from watchkeeper.server import own_version
from watchkeeper.server.errors import ToolError
from watchkeeper.server.observability import telemetry
from watchkeeper.server.settings import Settings

pytestmark = pytest.mark.anyio
SECRET = "abcdefghijklmnop1234"


class Collector:
    """OTLP over HTTP, as far as it is spoken here."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.raw: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.raw.append(body)
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def spans(self) -> dict[str, dict[str, str]]:
        """Name -> attributes."""
        return {
            span.name: {each.key: each.value.string_value for each in span.attributes}
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(GUARD_S)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


async def calls(browser: FakeBrowser, *arguments: str, **environment: str) -> tuple[int, bytes]:
    """A server that does three calls and ends."""
    raw = Raw("--cdp-url", browser.url, "--browser.bridge", "never", *arguments, **environment)
    await raw.open()
    address = f"http://a.test/?token={SECRET}"
    raw.call(1, "browser_navigate", url=address, task_id="shop")
    raw.call(2, f"browser_nothing api_key={SECRET}")
    raw.call(3, "browser_snapshot", task_id="other", find=SECRET)
    answered: set[object] = set()
    while not answered >= {1, 2, 3}:
        answered.add((await raw.read()).get("id"))
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.process.stdin = None
    status, _, said = await raw.ended()
    return status, said


async def test_spans_tell_of_calls_and_not_what_they_said(browser: FakeBrowser, collector: Collector) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_RESOURCE_ATTRIBUTES": "deployment=test"}
    status, said = await calls(browser, "--server.telemetry", "otlp", **endpoint)
    assert (status, said) == (0, b"")
    spans = collector.spans()
    opened = spans["tools/call browser_navigate"]
    assert len(opened.pop("watchkeeper.call")) == 8 and opened.pop("jsonrpc.request.id") == "1"
    assert opened == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "browser_navigate",
        "watchkeeper.task": "shop",
        "watchkeeper.outcome": "ok",
    }
    failed = spans["tools/call browser_snapshot"]
    assert (failed["watchkeeper.outcome"], failed["error.type"]) == ("no_task", "tool_error")
    assert not any(SECRET.encode() in body or b"a.test" in body for body in collector.raw)
    [resource] = {request.resource_spans[0].resource.SerializeToString() for request in collector.requests}
    assert b"watchkeeper" in resource and own_version().encode() in resource and b"deployment" in resource


async def test_nothing_is_exported_by_default(browser: FakeBrowser, collector: Collector) -> None:
    assert (await calls(browser, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url))[0] == 0
    assert collector.requests == []


async def test_a_collector_that_is_not_there_holds_nobody_up(browser: FakeBrowser) -> None:
    nowhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with anyio.fail_after(GUARD_S):
        status, said = await calls(browser, "--server.telemetry", "otlp", "--log-level", "info", **nowhere)
    assert status == 0 and b"browser_navigate ok" in said and b"    raise" not in said


def test_missing_packages_are_said_with_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = Settings.model_validate({"server": {"telemetry": "otlp"}})
    with pytest.raises(ToolError) as raised:
        telemetry.start(settings, str)
    assert raised.value.code == "missing_package" and "watchkeeper[telemetry]" in raised.value.hint


def test_attributes_and_texts_that_may_not_leave_do_not() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Status, StatusCode

    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(telemetry.cleaned(kept, lambda text: text.replace("hunter2", "*"))))
    with provider.get_tracer("test").start_as_current_span(f"tools/call {'x' * 900} hunter2") as span:
        span.set_attributes(
            {"url": "http://a.test", "gen_ai.tool.name": f"api_key={SECRET} hunter2", "watchkeeper.call": "c"}
        )
        span.record_exception(ValueError("hunter2"))
        span.set_status(Status(StatusCode.ERROR, "hunter2"))
    [seen] = kept.get_finished_spans()
    assert seen.attributes == {"gen_ai.tool.name": "api_key=[redacted:value] *", "watchkeeper.call": "c"}
    assert (seen.events, seen.status.status_code, seen.status.description) == ((), StatusCode.ERROR, None)
    assert len(seen.name) == telemetry.TEXT_CAP
    provider.shutdown()
