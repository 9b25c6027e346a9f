"""The spans of a command: the wait until it is read, its unit of work, the wait until its reply is on Kafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gateway.commands.requests import Request
from grouping.process.traces import TRACEPARENT, Parent, Span, trace_id
from grouping.settings.settings import Settings

if TYPE_CHECKING:
    from grouping.process.trace_exporter import Traces

__all__ = ["CommandOutcome", "CommandTraces", "UnitTimes"]


class CommandOutcome(NamedTuple):
    """A command that was carried out, or refused."""

    request: Request
    title: str
    """The title of the command's statement; "" for a text that is not a statement."""
    code: str
    """The code of the reply."""


class UnitTimes(NamedTuple):
    """When a unit of work began, was carried out, and was in Redis; nanoseconds since 1970."""

    began: int
    ran: int
    stored: int


class CommandTraces:
    """Reports the commands of a unit of work as spans, after their replies are on Kafka."""

    def __init__(self, traces: Traces) -> None:
        """Begin with the exporter of the spans, `traces`."""
        self._traces = traces

    @classmethod
    def of(cls, settings: Settings) -> CommandTraces | None:
        """Return the traces; None if the settings have no endpoint for traces."""
        if not settings.traces.endpoint:
            return None
        from grouping.process.trace_exporter import (
            Traces,  # the tracing packages are optional, and their import takes a fifth of a second
        )

        return cls(Traces.to_collector(settings, "gateway"))

    def tell(self, answered: Sequence[CommandOutcome], times: UnitTimes) -> None:
        """Report the sampled commands, right after their replies were written."""
        written = time.time_ns()
        for request, title, code in answered:
            trace = trace_id(f"{request.subscriber}/{request.command_id or request.record.position}")
            parent = Parent.of(dict(request.record.headers).get(TRACEPARENT))
            if self._traces.chosen(trace, parent):
                # The record's time is from another clock, which may be ahead of the gateway's.
                sent = min(request.record.time_ms * 1_000_000, times.began)
                parts = (
                    Span("wait", sent, times.began),
                    Span("carry out", times.began, times.ran, {"cq.unit.commands": len(answered)}),
                    Span("store", times.ran, times.stored),
                    Span("reply", times.stored, written),
                )
                self._traces.tell(
                    trace, Span("command", sent, written, _attributes(request, title, code)), parts, parent
                )


def _attributes(request: Request, title: str, code: str) -> dict[str, str | int]:
    """Return the attributes of a command. The text is left out, because only the subscriber may read it."""
    record = request.record
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": record.topic,
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
        "cq.command_id": request.command_id or "",
        "cq.subscriber": request.subscriber,
        "cq.statement": title.title().replace(" ", ""),
        "cq.code": code,
    }
