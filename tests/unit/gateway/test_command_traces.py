"""The spans of commands: the sampled ones, their traces, and their attributes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.commands.command_traces import CommandOutcome, CommandTraces, UnitTimes
from gateway.commands.requests import Request
from gateway.kafka import Record
from grouping.process.trace_exporter import Traces
from grouping.process.traces import trace_id

_SECOND = 1_000_000_000
_BEGAN = 1_700_000_000 * _SECOND
_TIMES = UnitTimes(_BEGAN, _BEGAN + 10, _BEGAN + 30)
_TRACE, _SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def _answered(number: int, *, parent: str = "", sent_ms: int = _BEGAN // 1_000_000 - 5) -> CommandOutcome:
    headers = (("traceparent", parent.encode()),) if parent else ()
    record = Record("cq.commands", 1, number, sent_ms, b"alice", b"", headers)
    return CommandOutcome(Request(record, f"c{number}", "alice", "SHOW CQS", "json", None), "SHOW CQS OF", "ok")


def _spans(share: float, *answered: CommandOutcome) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    CommandTraces(Traces(SimpleSpanProcessor(exporter), "gateway", "cq.", share)).tell(answered, _TIMES)
    return exporter


@pytest.mark.parametrize(("flags", "share", "count"), [("01", 0.0, 5), ("00", 1.0, 0), ("03", 0.0, 5)])
def test_a_sender_decides(flags: str, share: float, count: int) -> None:
    """A command with a context is told as its sender has decided, whatever the share is."""
    spans = _spans(share, _answered(1, parent=f"00-{_TRACE}-{_SPAN}-{flags}")).get_finished_spans()
    assert len(spans) == count
    for span in spans:
        assert f"{span.context.trace_id:032x}" == _TRACE
    for whole in [span for span in spans if span.name == "command"]:
        assert f"{whole.parent.span_id:016x}" == _SPAN


@pytest.mark.parametrize("parent", ["", "00-zz-b7ad6b7169203331-01", f"00-{'0' * 32}-{_SPAN}-01", f"ff{_TRACE}"])
def test_a_command_without_a_context_has_a_trace_of_its_own(parent: str) -> None:
    """Its id follows from subscriber and command id; a context that cannot be read is none."""
    spans = _spans(1.0, _answered(1, parent=parent)).get_finished_spans()
    assert {span.context.trace_id for span in spans} == {trace_id("alice/c1")}
    [whole] = [span for span in spans if span.parent is None]
    assert whole.name == "command"
    assert whole.attributes is not None
    assert whole.attributes["cq.statement"] == "ShowCqsOf"
    assert whole.attributes["messaging.kafka.offset"] == 1


def test_the_share_is_kept() -> None:
    """The sampled share of commands without a context is near the setting, and the choice is the same each time."""
    answered = [_answered(number) for number in range(4_000)]
    first, again = ({span.context.trace_id for span in _spans(0.05, *answered).get_finished_spans()} for _ in range(2))
    assert first == again
    assert 140 < len(first) < 260


def test_parts_follow_each_other() -> None:
    """The parts leave no gap, also where the record's time is of a clock that is ahead."""
    for sent_ms in (_BEGAN // 1_000_000 - 5, _BEGAN // 1_000_000 + 5_000):
        spans = {span.name: span for span in _spans(1.0, _answered(1, sent_ms=sent_ms)).get_finished_spans()}
        parts = [spans[name] for name in ("wait", "carry out", "store", "reply")]
        assert all(before.end_time == after.start_time for before, after in pairwise(parts))
        assert all((part.start_time or 0) <= (part.end_time or 0) for part in parts)
        assert (parts[0].start_time, parts[-1].end_time) == (spans["command"].start_time, spans["command"].end_time)
