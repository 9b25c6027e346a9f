"""The context of the subscriber's own trace (W3C Trace Context), so that a command becomes a part of this trace."""

from __future__ import annotations

import sys

__all__ = ["trace_headers"]


def trace_headers() -> dict[str, bytes]:
    """Return headers that name the caller's OpenTelemetry span; none without a span.

    A caller with a span has already imported OpenTelemetry. For other callers, the SDK does not import the library.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {name: value.encode() for name, value in carrier.items()}
