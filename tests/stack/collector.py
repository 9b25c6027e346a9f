"""A collector of OpenTelemetry that keeps received spans: OTLP over HTTP, with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector", "CollectedSpan", "collector"]


class CollectedSpan(NamedTuple):
    """A span as a collector gets it."""

    service: str
    trace: str
    """32 hexadecimal digits."""
    span: str
    parent: str
    """The id of the parent span; "" for a span without a parent."""
    name: str
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]


class Collector:
    """The spans that all roles have sent to the collector."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        """The endpoint given to the roles."""
        self._lock = threading.Lock()
        self._spans: list[CollectedSpan] = []

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        with self._lock:
            self._spans += _spans(ExportTraceServiceRequest.FromString(body))

    def of_trace(self, trace: str) -> list[CollectedSpan]:
        """Return the spans of a trace so far."""
        with self._lock:
            return [span for span in self._spans if span.trace == trace]


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a collector on loopback within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class's name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                made.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def _spans(request: ExportTraceServiceRequest) -> Iterator[CollectedSpan]:
    for resource in request.resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield CollectedSpan(
                    service,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.name,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    _values(span.attributes),
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
