"""Clocks of producers that go wrong: which events count, and what DESCRIBE STREAM tells (docs/nothing-comes.md)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.registry.operator_states import TimeFigures
from grouping.model.column import EventTime
from grouping.model.expression import Column
from grouping.plan.silence import SilentKeys
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.framed_states import missed_events
from spark_jobs.engine.operators.silence.latest_rows import LatestRows
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from tests.unit.matching.event_batches import stream
from tests.unit.operators.timed_rows import timed_events

_MINUTE = 60
_NOW = 100_000
"""Seconds."""
_STREAM = msgspec.structs.replace(
    stream("k STRING", "t TIMESTAMP"), timestamps="seconds", declared_time=EventTime("t", 5_000)
)
_K = Column("k", "STRING")
_OPERATOR = SilenceOperator(
    SilentKeys.of([_K], 10 * _MINUTE * 1000, ()), "j_1", (_K,), EventClock.of(_STREAM, Settings(prefix="cq."))
)


class _Partition:
    """A source partition, and the records that it gets."""

    def __init__(self) -> None:
        self.state = LatestRows()
        self.silent: list[str] = []

    def get(self, key: str, minutes: Sequence[float], ahead: float = 0) -> None:
        """Get records of a key at minutes after `_NOW`, with event times that are ahead by some minutes."""
        for minute in minutes:
            at = _NOW + minute * _MINUTE
            row = {"k": key, "t": at + ahead * _MINUTE, "at": at}
            _, [rows] = _OPERATOR.step(self.state, timed_events(_STREAM, [row], self.state.position))
            self.state.position += 1
            self.silent += rows.column("k").to_pylist()

    def move(self, minute: float) -> None:
        """Move the watermark on by the clock."""
        found = _OPERATOR.advance(self.state, round((_NOW + minute * _MINUTE) * 1000))
        self.silent += found.column("k").to_pylist()

    def figures(self) -> TimeFigures:
        """Return the figures of DESCRIBE STREAM."""
        return TimeFigures({0: self.state.watermark}, *missed_events([self.state]))

    def warning(self, minute: float) -> str | None:
        """Return the warning of DESCRIBE STREAM."""
        return self.figures().warning(round((_NOW + minute * _MINUTE) * 1000))


def test_a_producer_an_hour_behind_beside_others() -> None:
    """All of its events are late, the watermark is about the present, and its silence is not told."""
    partition = _Partition()
    partition.get("right", [0])
    partition.get("behind", range(1, 9), ahead=-60)
    partition.get("right", [12, 30])
    assert (partition.silent, partition.figures().late) == (["right", "right"], 8)
    assert partition.state.watermark == (_NOW + 30 * _MINUTE - 5) * 1000


def test_a_producer_an_hour_behind_alone() -> None:
    """Its events count; the watermark is far behind, and silences are told by its times."""
    partition = _Partition()
    partition.get("behind", [0, 12], ahead=-60)
    assert (partition.silent, partition.figures().late) == (["behind"], 0)
    assert partition.state.watermark == (_NOW - 48 * _MINUTE - 5) * 1000


def test_times_ahead_by_less_than_an_hour() -> None:
    """The watermark is ahead and has a warning; right events are late until the clock has caught up."""
    partition = _Partition()
    partition.get("ahead", [0], ahead=30)
    partition.get("right", [1, 20, 29])
    assert partition.figures().late == 3
    assert "29 minutes ahead of the clock" in (partition.warning(0) or "")
    partition.get("right", [30, 31])
    assert partition.figures().late == 3, "the clock has caught up"
    assert partition.warning(31) is None


def test_times_ahead_by_more_than_an_hour() -> None:
    """Such events are future: they move nothing, and right events count."""
    partition = _Partition()
    partition.get("right", [0])
    partition.get("ahead", [1, 2], ahead=61)
    partition.get("right", [3])
    assert (partition.figures().late, partition.figures().future, partition.warning(3)) == (0, 2, None)
    assert partition.state.watermark == (_NOW + 3 * _MINUTE - 5) * 1000


def test_late_events_after_a_quiet_time() -> None:
    """The clock has moved the watermark on: buffered events with old times are late, present ones are not."""
    partition = _Partition()
    partition.get("a", [0])
    partition.move(20)
    assert partition.silent == ["a"]
    partition.get("a", [25, 26], ahead=-15)
    assert partition.figures().late == 2
    assert partition.state.watermark == (_NOW + 20 * _MINUTE) * 1000, "late events move nothing"
    partition.get("a", [27])
    assert (partition.figures().late, partition.silent) == (2, ["a"])
    assert partition.state.watermark == (_NOW + 27 * _MINUTE - 5) * 1000
