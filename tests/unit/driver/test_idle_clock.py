"""The clock of idle partitions: marks where a result is due, at no other time, and across starts of the evaluator."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from grouping.model.catalog import Stream
from grouping.model.column import EventTime
from grouping.settings.settings import Settings
from spark_jobs.runtime.states.clock_marks import ClockMarks, PlacedMark
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.streams.files import LocalFiles
from spark_jobs.runtime.streams.idle_clock import IdleClock
from tests.unit.matching.event_batches import stream

STREAM = stream("a INT")
PLACE = (STREAM.topic, 0)
REACHED = {STREAM.topic: {0: 12}}
NOTHING = StateClock(None, None)


class _Use:
    """All streams have event-time queries."""

    def has_clock(self, _stream: Stream) -> bool:
        return True


class _Lane:
    """A clock, and what its query has committed."""

    def __init__(self, folder: Path, now: list[int], source: Stream = STREAM) -> None:
        self.settings = Settings(prefix="cq.", data=folder, evaluator={"idle_seconds": 10})
        self.clock = IdleClock(self.settings, LocalFiles(), lambda: now[0])
        self.clock.begin([source], _Use())  # type: ignore[arg-type]

    def marks(self) -> list[PlacedMark]:
        """Return the marks as a worker reads them."""
        return ClockMarks(self.settings).of(STREAM.source_id, 0)


@pytest.fixture
def now() -> list[int]:
    """Epoch milliseconds."""
    return [1_000_000]


def test_a_mark_is_written_where_a_result_is_due(tmp_path: Path, now: list[int]) -> None:
    """The clock goes on from where the watermark stood, the idle time behind, and waits for the next result."""
    lane = _Lane(tmp_path, now)
    lane.clock.load(REACHED, lambda _: True)
    assert lane.clock.due(REACHED, "q/1") == {PLACE: NOTHING}, "no task has told the time of the partition"
    lane.clock.carried_out([], [PLACE], [(PLACE, 500_000, 520_000)])
    for seconds in (1, 10, 29):
        now[0] = 1_000_000 + seconds * 1000
        assert lane.clock.due(REACHED, "q/2") == {}
    now[0] = 1_030_500
    assert lane.clock.due(REACHED, "q/2") == {PLACE: StateClock(None, 520_500)}
    assert lane.marks() == [PlacedMark(12, 520_500, "q/2")]
    lane.clock.carried_out([], [PLACE], [(PLACE, 520_500, 525_000)])
    assert lane.clock.due(REACHED, "q/3") == {}
    assert lane.clock.at(PLACE, 12) == StateClock(520_500, None)
    now[0] = 1_035_000
    assert lane.clock.due(REACHED, "q/3") == {PLACE: StateClock(520_500, 525_000)}
    assert lane.marks() == [PlacedMark(12, 525_000, "q/3")]
    lane.clock.carried_out([], [PLACE], [(PLACE, 525_000, None)])
    now[0] += 10**9
    assert lane.clock.due(REACHED, "q/4") == {}, "nothing waits"


def test_events_end_the_quiet_time(tmp_path: Path, now: list[int]) -> None:
    """After events the clock waits for the idle time anew, and goes on from the watermark that they made."""
    lane = _Lane(tmp_path, now)
    lane.clock.carried_out([PLACE], [], [(PLACE, 500_000, 500_001)])
    now[0] += 9_000
    lane.clock.carried_out([PLACE], [PLACE], [(PLACE, 600_000, 600_001)])
    now[0] += 9_000
    assert lane.clock.due({STREAM.topic: {0: 13}}, "q/2") == {}
    now[0] += 1_500
    assert lane.clock.due({STREAM.topic: {0: 13}}, "q/2") == {PLACE: StateClock(None, 600_500)}
    assert lane.clock.at(PLACE, 14) == NOTHING, "a mark lies at its position alone"


def test_a_stream_has_its_own_idle_time(tmp_path: Path, now: list[int]) -> None:
    """The option `idle` of a stream counts in place of the setting."""
    lane = _Lane(tmp_path, now, msgspec.structs.replace(STREAM, declared_time=EventTime(idle_ms=2_000)))
    lane.clock.carried_out([PLACE], [], [(PLACE, 500_000, 500_001)])
    now[0] += 2_000
    assert lane.clock.due(REACHED, "q/1") == {}
    now[0] += 500
    assert lane.clock.due(REACHED, "q/1") == {PLACE: StateClock(None, 500_500)}


def test_a_changed_idle_time_counts_from_the_next_mark(tmp_path: Path, now: list[int]) -> None:
    """The query runs on; earlier marks stay, so a replay has the same results."""
    lane = _Lane(tmp_path, now)
    lane.clock.carried_out([PLACE], [], [(PLACE, 500_000, 500_001)])
    now[0] += 3_000
    assert lane.clock.due(REACHED, "q/1") == {}
    shorter = msgspec.structs.replace(STREAM, declared_time=EventTime(idle_ms=2_000))
    lane.clock.redefine(shorter)
    assert lane.clock.due(REACHED, "q/1") == {PLACE: StateClock(None, 501_000)}
    lane.clock.carried_out([], [PLACE], [(PLACE, 501_000, 502_000)])
    lane.clock.redefine(msgspec.structs.replace(STREAM, declared_time=EventTime(idle_ms=9_000)))
    now[0] += 7_500
    assert lane.clock.due(REACHED, "q/2") == {} and lane.marks() == [PlacedMark(12, 501_000, "q/1")]
    now[0] += 500
    assert lane.clock.due(REACHED, "q/2") == {PLACE: StateClock(501_000, 502_000)}


@pytest.mark.parametrize("committed", [True, False])
def test_an_evaluator_that_starts_makes_the_results_of_an_open_mark(
    tmp_path: Path, now: list[int], committed: bool
) -> None:
    """A mark the micro-batch of which was not committed is carried out again, any other mark is not."""
    lane = _Lane(tmp_path, now)
    lane.clock.carried_out([PLACE], [], [(PLACE, 500_000, 500_001)])
    now[0] += 11_000
    assert lane.clock.due(REACHED, "q/7") == {PLACE: StateClock(None, 501_000)}
    started = _Lane(tmp_path, now)
    started.clock.load(REACHED, lambda batch: committed and batch == "q/7")
    wanted = StateClock(501_000, None) if committed else StateClock(None, 501_000)
    assert started.clock.at(PLACE, 12) == wanted
    assert started.clock.open_marks(REACHED) == ({} if committed else {PLACE: wanted}), "repeated with its micro-batch"
    assert started.clock.due(REACHED, "q/8") == {PLACE: wanted}
    started.clock.carried_out([], [PLACE], [(PLACE, 501_000, None)])
    assert started.clock.at(PLACE, 12) == StateClock(501_000, None)
