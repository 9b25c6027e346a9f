"""How far a stream is by event time, as DESCRIBE STREAM tells: the lowest partition, and the clock of idle ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.registry.operator_states import time_figures
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.store.notes import Output, PartitionWatermark

_STREAM = Stream(StreamId("s_1"), "s", (), "t", "json", {"0": 0}, "")
_KNOWN = {0: PartitionWatermark(100_000, 5_000), 1: PartitionWatermark(90_000, 60_000)}


@pytest.mark.parametrize(
    ("known", "kept", "idle", "watermark"),
    [
        ({}, True, True, None),
        (_KNOWN, False, True, None),
        (_KNOWN, True, False, "1970-01-01T00:01:30.000Z"),
        (_KNOWN, True, True, "1970-01-01T00:01:40.000Z"),
        ({0: PartitionWatermark(-(10**15), 0)}, True, False, "0001-01-01T00:00:00.000Z"),
        ({0: PartitionWatermark(10**15, 0)}, True, True, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_watermark(known: dict[int, PartitionWatermark], kept: bool, idle: bool, watermark: str | None) -> None:
    """The watermark stands while events wait, and goes on from the end of the idle time where none do."""
    figures = time_figures(_notes(known), _STREAM, 70_000, kept=kept, idle=idle)
    found = figures.described()
    assert (found["watermark"], found["late"], found["future"]) == (watermark, 3, 1)
    shown = found.get("watermarks", {})
    assert isinstance(shown, dict)
    assert len(shown) == (len(known) if kept else 0)


def test_a_watermark_ahead_of_the_clock_has_a_warning() -> None:
    """The warning names the partition that is ahead; a producer's clock may be ahead by less than a minute."""
    figures = time_figures(_notes(_KNOWN), _STREAM, -25_000, kept=True, idle=True)
    assert "partition 0 is 2 minutes ahead of the clock" in (figures.warning(-25_000) or "")
    assert figures.warning(50_000) is None
    assert time_figures(_notes({}), _STREAM, 0, kept=True, idle=True).warning(0) is None


def _notes(known: dict[int, PartitionWatermark]) -> Any:
    return SimpleNamespace(event_time=lambda _: (Output(late=3, future=1), known))
