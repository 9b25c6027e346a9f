"""The context of a subscriber's own trace, so that a command belongs to it (W3C Trace Context)."""

from __future__ import annotations

import sys

__all__ = ["trace_headers"]


def trace_headers() -> dict[str, bytes]:
    """Return headers naming the caller's OpenTelemetry span; none without a span.

    A caller within a span has imported OpenTelemetry, so the SDK itself never imports it.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry import propagate

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {name: value.encode() for name, value in carrier.items()}
