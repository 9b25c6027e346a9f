"""How far a stream is by event time, as DESCRIBE STREAM tells: the lowest partition, and the clock of idle ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gateway.registry.operator_states import TimeFigures, time_figures
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.store.notes import Output, PartitionWatermark

_STREAM = Stream(StreamId("s_1"), "s", (), "t", "json", {"0": 0}, "")
_KNOWN = {0: PartitionWatermark(100_000, 5_000), 1: PartitionWatermark(90_000, 60_000)}


@pytest.mark.parametrize(
    ("known", "progress", "watermark"),
    [
        ({}, {"behind": 0}, None),
        (_KNOWN, {}, "1970-01-01T00:01:30.000Z"),
        (_KNOWN, {"behind": 1}, "1970-01-01T00:01:30.000Z"),
        (_KNOWN, {"behind": 0, "reason": "no evaluator"}, "1970-01-01T00:01:30.000Z"),
        (_KNOWN, {"behind": 0}, "1970-01-01T00:01:40.000Z"),
        ({0: PartitionWatermark(-(10**15), 0)}, {}, "0001-01-01T00:00:00.000Z"),
        ({0: PartitionWatermark(10**15, 0)}, {}, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_watermark(known: dict[int, PartitionWatermark], progress: dict[str, object], watermark: str | None) -> None:
    """The watermark stands while events wait, and goes on from the end of the idle time where none do."""
    found = _figures(known, progress, 70_000).described()
    assert (found["watermark"], found["late"], found["future"]) == (watermark, 3, 1)
    shown = found.get("watermarks", {})
    assert isinstance(shown, dict)
    assert len(shown) == len(known)


def test_a_watermark_ahead_of_the_clock_has_a_warning() -> None:
    """The warning names the partition that is ahead; a producer's clock may be ahead by less than a minute."""
    figures = _figures(_KNOWN, {}, 0)
    assert "partition 0 is 2 minutes ahead of the clock" in (figures.warning(-25_000) or "")
    assert figures.warning(50_000) is None
    assert _figures({}, {}, 0).warning(0) is None


def _figures(known: dict[int, PartitionWatermark], progress: dict[str, object], now_ms: int) -> TimeFigures:
    notes = SimpleNamespace(event_times=lambda ids: dict.fromkeys(ids, (Output(late=3, future=1), known)))
    return time_figures(notes, [_STREAM], lambda _: progress, now_ms)[_STREAM.stream_id]  # type: ignore[arg-type]
