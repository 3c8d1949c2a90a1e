"""Spans for OpenTelemetry: off by default, and never with what pages, arguments or results say.

Rules: the SDK makes a span of every message; here are its way out and what the calls of tools add: their number, task
and outcome. Only attributes named here leave, each through the one redaction filter and capped; texts of errors do not.
The packages are imported when they are wanted. A collector that does not answer delays nothing and is given up in time.

Sources: https://opentelemetry.io/docs/specs/otel/protocol/exporter/,
https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import NAME, own_version
from ..errors import ToolError
from ..settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

LEAVES = frozenset(
    {
        "error.type",
        "gen_ai.operation.name",
        "gen_ai.prompt.name",
        "gen_ai.tool.name",
        "jsonrpc.request.id",
        "mcp.method.name",
        "mcp.protocol.version",
        "rpc.response.status_code",
        "watchkeeper.call",
        "watchkeeper.outcome",
        "watchkeeper.task",
    }
)
"""Attributes that may be exported."""
TEXT_CAP = 200
FLUSH_S = 2.0
_on = False


def annotate(**facts: str) -> None:
    """Put what is known of a call on the span that is open, where spans are made."""
    if not _on:
        return
    from opentelemetry.trace import get_current_span

    get_current_span().set_attributes({f"{NAME}.{name}": fact for name, fact in facts.items() if fact})


def start(settings: Settings, mask: Callable[[str], str]) -> Callable[[], None]:
    """Begin to export, where ``server.telemetry`` says so; gives what ends it, within ``FLUSH_S`` seconds.

    Raises: ToolError where the packages are missing, or the OTEL_* variables make no sense.
    """
    if settings.server.telemetry == "none":
        return lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise ToolError(
            "missing_package",
            "server.telemetry is otlp, and the packages for it are not installed.",
            "Install watchkeeper[telemetry], or leave the setting out.",
        ) from None
    try:
        return export_to(OTLPSpanExporter(), mask)
    except ValueError as error:
        raise ToolError(
            "invalid_setting", f"Telemetry cannot be set up: {error}.", "Check the OTEL_* environment variables."
        ) from None


def export_to(exporter: "SpanExporter", mask: Callable[[str], str]) -> Callable[[], None]:
    """As ``start``, to an exporter of one's own."""
    global _on
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.version": own_version(), **_service()})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(cleaned(exporter, mask)))
    trace.set_tracer_provider(provider)
    _on = True

    def end() -> None:
        # In a thread that holds nobody up: a collector that is gone would be tried again and again.
        ending = threading.Thread(target=provider.shutdown, name="watchkeeper-telemetry", daemon=True)
        ending.start()
        ending.join(FLUSH_S)

    return end


def cleaned(exporter: "SpanExporter", mask: Callable[[str], str]) -> "SpanExporter":
    """The exporter, which gets spans without anything that may not leave."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Cleaned(SpanExporter):
        def export(self, spans: "Sequence[ReadableSpan]") -> SpanExportResult:
            return exporter.export([_clean(span, mask) for span in spans])

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    return Cleaned()


def _clean(span: "ReadableSpan", mask: Callable[[str], str]) -> "ReadableSpan":
    """A copy with the attributes that may leave; without events and links, whose texts come from anywhere."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace.status import Status

    return ReadableSpan(
        name=_text(span.name, mask),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_leaving(span.attributes or {}, mask),
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _leaving(attributes: Mapping[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    return {
        name: _text(value, mask) if isinstance(value, str) else value
        for name, value in attributes.items()
        if name in LEAVES
    }


def _text(value: str, mask: Callable[[str], str]) -> str:
    from watchkeeper.context.redact import redact

    return redact(mask(value))[:TEXT_CAP]


def _service() -> dict[str, str]:
    """Our name, unless the person gave another in the usual variables."""
    given = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return {} if given else {"service.name": NAME}
