"""Traces of commands and of sampled events, as a collector of OpenTelemetry gets them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from gateway.sdk import CommandRejection, connect
from grouping.process.traces import trace_id
from spark_jobs.runtime.worker.event_traces import sampled
from tests.kafka_client import wait_until
from tests.stack.collector import CollectedSpan, Collector
from tests.stack.lab import Lab
from tests.stack.server import TRACED_SHARE, Stack

_EVENTS = 1_000
_PARTS = 4
"""Parts of the span of a command, and of an event."""


def _spans(
    traces: Collector, name: str, trace: str, count: int
) -> tuple[list[CollectedSpan], dict[str, CollectedSpan]]:
    """Wait for `count` spans of a name and the four parts of each; return these, and the last one's parts in order."""

    def whole() -> list[CollectedSpan]:
        found = [span for span in traces.of_trace(trace) if span.name == name]
        return sorted(found, key=lambda span: span.began_ns)

    def parts_of(one: CollectedSpan) -> list[CollectedSpan]:
        return [span for span in traces.of_trace(trace) if span.parent == one.span]

    def complete() -> bool:
        time.sleep(0.05)
        return len(whole()) == count and all(len(parts_of(each)) >= _PARTS for each in whole())

    wait_until(complete, f"{count} spans {name}, with their parts")
    parts = parts_of(whole()[-1])
    return whole(), {span.name: span for span in sorted(parts, key=lambda span: (span.began_ns, span.ended_ns))}


def _end_to_end(whole: CollectedSpan, parts: dict[str, CollectedSpan]) -> bool:
    ends = [whole.began_ns, *(part.ended_ns for part in parts.values())]
    begins = [*(part.began_ns for part in parts.values()), whole.ended_ns]
    return ends == begins


def test_a_command_belongs_to_its_senders_trace(stack: Stack, lab: Lab, traces: Collector) -> None:
    """The SDK passes on the span that its caller is in; the gateway's span has four parts without a gap."""
    source = lab.stream("symbol STRING")
    caller = TracerProvider().get_tracer("caller").start_span("caller")
    context = caller.get_span_context()
    with connect(stack.bootstrap, lab.subscriber("traced"), prefix=stack.prefix) as client:
        with trace.use_span(caller):
            client.execute(f"CREATE CQ a AS SELECT symbol FROM {source.name}")
            with pytest.raises(CommandRejection) as refused:
                client.execute("CREATE CQ a AS SELECT nothing FROM nowhere")
        client.execute("DROP CQ a")
    spans, parts = _spans(traces, "command", f"{context.trace_id:032x}", 2)
    assert {span.parent for span in spans} == {f"{context.span_id:016x}"}
    assert [(span.service, span.attributes["cq.code"]) for span in spans] == [
        ("cq-gateway", "ok"),
        ("cq-gateway", refused.value.code),
    ]
    assert spans[0].attributes["cq.statement"] == "CreateCq"
    assert spans[0].attributes["cq.subscriber"] == lab.subscriber("traced")
    assert list(parts) == ["wait", "carry out", "store", "reply"]
    assert _end_to_end(spans[-1], parts)


def test_a_sampled_event_is_found_by_its_id(lab: Lab, traces: Collector) -> None:
    """The trace's id follows from `ce_id`; the trace names the groups met, and an unsampled event has none."""
    source = lab.stream("symbol STRING, qty INT")
    selects = [f"SELECT qty FROM {source.name} WHERE symbol = '{symbol}'" for symbol in ("a", "b")]
    first, _ = (lab.create(f"c{number}", select) for number, select in enumerate(selects))
    other = lab.create("above", f"SELECT symbol FROM {source.name} WHERE qty >= 0")
    places = source.publish_values(*(b'{"symbol": "a", "qty": %d}' % number for number in range(_EVENTS)))
    offsets = np.array([place.offset for place in places])
    rows = sampled(np.zeros(_EVENTS, np.int32), offsets, TRACED_SHARE).tolist()
    assert rows, "of a thousand events some are sampled"
    for row in rows:
        event_id = f"{source.name}/0/{offsets[row]}"
        [event], parts = _spans(traces, "event", f"{trace_id(event_id):032x}", 1)
        assert event.service == "cq-evaluator"
        assert event.attributes["cq.event_id"] == event_id
        assert event.attributes["cq.stream"] == source.name
        assert event.attributes["messaging.kafka.offset"] == offsets[row]
        assert event.attributes["cq.matches"] == 2
        assert set(event.attributes["cq.groups"]) == {first["group"], other["group"]}
        assert list(parts) == ["wait", "decode", "match", "split"]
        assert _end_to_end(event, parts)
    left = next(row for row in range(_EVENTS) if row not in rows)
    assert not traces.of_trace(f"{trace_id(f'{source.name}/0/{offsets[left]}'):032x}")
