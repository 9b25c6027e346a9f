"""Event times of a column: late, missing and future events under any cutting, and each counted once."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.column import EventTime
from grouping.model.expression import Column
from grouping.plan.silence import SilentKeys
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.framed_states import missed_events
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.silence.latest_rows import LatestRows
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from tests.unit.matching.event_batches import stream
from tests.unit.operators.cutting import pieces
from tests.unit.operators.timed_rows import timed_events

DELAY, FUTURE, INTERVAL = 3, 50, 10
STREAM = msgspec.structs.replace(
    stream("k STRING", "t TIMESTAMP"), timestamps="seconds", declared_time=EventTime("t", DELAY * 1000)
)
K = Column("k", "STRING")
CLOCK = EventClock.of(STREAM, Settings(prefix="cq.", evaluator={"future_seconds": FUTURE}))
OPERATOR = SilenceOperator(SilentKeys.of([K], INTERVAL * 1000, ()), "j_1", (K,), CLOCK)
Row = dict[str, Any]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from("abc"),
            "t": st.one_of(st.none(), st.integers(-2, 120)),
            "at": st.integers(0, 80),
        }
    ),
    max_size=30,
)
CUTS = st.lists(st.integers(0, 30), max_size=4)


def expected(rows: list[Row]) -> tuple[list[tuple[int, int, int]], list[str]]:
    """Return the silences and the fates of all rows, by a fold over single rows.

    Returns:
        For each silence its time, its row, and the row that made the key silent; and by row why it does not count.
    """
    watermark, latest, silent, fates = -(10**9), dict[str, tuple[int, int]](), [], []
    for offset, row in enumerate(rows):
        time = row["t"]
        future = time is not None and time > row["at"] + FUTURE
        timed = time is not None and time >= 0 and not future
        fates.append("future" if future else "late" if not timed or time < watermark else "")
        if timed:
            watermark = max(watermark, time - DELAY)
        ended = [(at + INTERVAL, cause, key) for key, (at, cause) in latest.items() if at + INTERVAL <= watermark]
        for due, cause, key in sorted(ended):
            silent.append((due, cause, offset))
            del latest[key]
        if not fates[-1] and time >= latest.get(row["k"], (time, 0))[0]:
            latest[row["k"]] = time, offset
    return silent, fates


@settings(max_examples=200, deadline=None)
@given(ROWS, CUTS)
def test_any_cutting_makes_the_same_silences_and_counts(rows: list[Row], cuts: list[int]) -> None:
    """Steps of any size, after an undone attempt, tell and count what a fold over single rows does."""
    silences, fates = expected(rows)
    state = LatestRows()
    state.begin()
    for attempt in ((), cuts):
        state.undo()
        silent, begin = [], 0
        for piece in pieces(rows, attempt):
            _, [made] = OPERATOR.step(state, timed_events(STREAM, piece, begin))
            silent += zip((made.time_ms // 1000).tolist(), made.causes.tolist(), made.offsets.tolist(), strict=True)
            begin += len(piece)
        assert silent == silences
        assert missed_events([state]) == (fates.count("late"), fates.count("future"))
    state.position = len(rows)
    state.begin()
    assert missed_events([state]) == (0, 0), "a task counts its own events"


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(0, 30))
def test_a_fold_of_the_log_has_the_same_clock(rows: list[Row], cut: int) -> None:
    """A worker that reads the log has the state of a worker that evaluated the events, and counts nothing again."""
    stepped, folded = LatestRows(), LatestRows()
    _, _ = OPERATOR.step(stepped, timed_events(STREAM, rows, 0))
    for begin, piece in ((0, rows[:cut]), (min(cut, len(rows)), rows[cut:])):
        OPERATOR.fold(folded, timed_events(STREAM, piece, begin))
    assert (folded.watermark, folded.rows, folded.earliest) == (stepped.watermark, stepped.rows, stepped.earliest)
    assert missed_events([folded]) == (0, 0)


def test_an_event_counts_once_for_all_computations() -> None:
    """Two computations that leave the same events out count them once; states without a clock have none."""
    rows = [{"k": "a", "t": 60, "at": 60}, {"k": "a", "t": 10, "at": 61}, {"k": "b", "t": 999, "at": 62}]
    whole, younger = LatestRows(), LatestRows()
    _, _ = OPERATOR.step(whole, timed_events(STREAM, rows, 0))
    _, _ = OPERATOR.step(younger, timed_events(STREAM, rows[1:], 1))
    assert missed_events([younger]) == (0, 1), "nothing is late at the beginning"
    assert missed_events([whole, younger, LogState()]) == (1, 1)


def test_elements_of_a_record_count_each() -> None:
    """Late elements of the same record are events of their own."""
    state = LatestRows()
    state.miss(np.array([7, 7]), np.array([0, 1]), np.array([False, True]))
    state.miss(np.array([7]), np.array([1]), np.array([True]))
    assert missed_events([state]) == (1, 1)


def test_a_stream_without_watermark_goes_by_record_time() -> None:
    """The delay of the settings counts for streams that declare none, and no record is ahead of its own time."""
    plain = stream("k STRING")
    clock = EventClock.of(plain, Settings(prefix="cq.", evaluator={"watermark_delay_seconds": 7}))
    timed = clock.timed(LatestRows(), timed_events(plain, [{"k": "a", "at": 100}, {"k": "a", "at": 92}], 0), noted=True)
    assert timed.times.tolist() == [100_000, 92_000]
    assert timed.after.tolist() == [93_000, 93_000]
    assert timed.left_out.tolist() == [False, True]
