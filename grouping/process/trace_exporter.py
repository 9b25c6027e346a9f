"""Sends traces to an OpenTelemetry collector over OTLP. The roles import OpenTelemetry only in this module."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from grouping.process.traces import Parent, Span
from grouping.settings.settings import Settings

__all__ = ["Traces"]

_EVERY_MS = 1_000
"""The time between two requests to the collector, in milliseconds."""
_HALF = (1 << 64) - 1


class Traces:
    """Sends finished spans in the background. Callers do not wait for the collector; spans may be lost at a crash."""

    def __init__(self, processor: SpanProcessor, role: str, prefix: str, share: float) -> None:
        """Begin.

        Args:
            processor: The processor of spans.
            role: The role of this process.
            prefix: The prefix of the gateway.
            share: The share, from 0 to 1, of the traces without a sender's context that are reported.
        """
        self._ids = _GivenIds()
        resource = Resource.create(
            {"service.name": f"cq-{role}", "service.namespace": prefix.rstrip("."), "process.pid": os.getpid()}
        )
        provider = TracerProvider(ALWAYS_ON, resource, id_generator=self._ids)
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("cq")
        self._share = share

    @staticmethod
    def to_collector(settings: Settings, role: str) -> Traces:
        """Return a `Traces` for this process that sends to the collector of the settings."""
        own = settings.traces
        return _to_collector(own.endpoint, own.headers.get_secret_value(), own.share, settings.prefix, role)

    @property
    def share(self) -> float:
        """The share of traces without a sender's context that are reported."""
        return self._share

    def chosen(self, trace: int, parent: Parent | None = None) -> bool:
        """Tell whether a trace is reported. The sender's context decides; without a context, the trace's id decides."""
        return parent.sampled if parent is not None else (trace & _HALF) < self._share * (_HALF + 1)

    def tell(self, trace: int, whole: Span, parts: Sequence[Span], parent: Parent | None = None) -> None:
        """Report a span and its parts.

        Args:
            trace: The id of the trace. If the span has a parent, the span belongs to the parent's trace instead.
            whole: The span.
            parts: The spans within this span.
            parent: The sender's span in which the command was sent, if there is one.
        """
        context = otel.set_span_in_context(otel.INVALID_SPAN)
        if parent is not None:
            flags = otel.TraceFlags(otel.TraceFlags.SAMPLED)
            sender = otel.SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags)
            context = otel.set_span_in_context(otel.NonRecordingSpan(sender))
        self._ids.trace = trace
        span = self._begun(whole, context, otel.SpanKind.CONSUMER)
        within = otel.set_span_in_context(span)
        for part in parts:
            self._begun(part, within, otel.SpanKind.INTERNAL).end(part.ended_ns)
        span.end(whole.ended_ns)

    def _begun(self, span: Span, context: Context, kind: otel.SpanKind) -> otel.Span:
        return self._tracer.start_span(span.name, context, kind, span.attributes, start_time=span.began_ns)


class _GivenIds(RandomIdGenerator):
    """Gives the id of the reported trace."""

    trace = 0

    def generate_trace_id(self) -> int:
        return self.trace


@cache
def _to_collector(endpoint: str, headers: str, share: float, prefix: str, role: str) -> Traces:
    named = dict(pair.split("=", 1) for pair in headers.split(",") if "=" in pair)
    exporter = OTLPSpanExporter(endpoint.rstrip("/") + "/v1/traces", headers=named)
    return Traces(BatchSpanProcessor(exporter, schedule_delay_millis=_EVERY_MS), role, prefix, share)
