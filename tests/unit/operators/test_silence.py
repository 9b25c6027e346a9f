"""Silent keys: the same under any cutting, after undone steps, with marks of the clock, and from stored states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InternalError
from grouping.model.expression import Call, Column, Value
from grouping.plan.silence import SilentKeys
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.silence.latest_rows import LatestRows
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from spark_jobs.engine.rows.silent_rows import LatestMatches, SilentRows
from tests.unit.matching.event_batches import stream
from tests.unit.operators.cutting import pieces
from tests.unit.operators.timed_rows import timed_events

STREAM = stream("k STRING", "n INT", "b BOOLEAN")
K, N, B = (Column(column.name, str(column.type)) for column in STREAM.columns)
TIME = Column("_time", "TIMESTAMP")
TRUE = Call("=", (B, Value(True, "BOOLEAN")), "BOOLEAN")
INTERVAL, DELAY = 10, 2
Row = dict[str, Any]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", "c", None]),
            "n": st.integers(0, 9),
            "b": st.sampled_from([True, True, False, None]),
            "at": st.integers(0, 60),
        }
    ),
    max_size=30,
)
CUTS = st.lists(st.integers(0, 30), max_size=4)
MARKS = st.dictionaries(st.integers(0, 30), st.integers(0, 80), max_size=3)
"""By offset, the watermark in seconds that the clock sets before the event."""


class SilenceResult(NamedTuple):
    """A silence."""

    due: int
    """Seconds."""
    cause: int
    """The offset."""
    row: tuple[Any, ...]


def operator(*, where: bool) -> SilenceOperator:
    """Return the operator by key; WHERE is ``b = TRUE``, if any."""
    silence = SilentKeys.of([K], INTERVAL * 1000, (TRUE,) if where else ())
    return SilenceOperator(silence, "j_1", (TIME, K, N), EventClock(DELAY * 1000))


def shown(rows: SilentRows) -> list[SilenceResult]:
    """Return silences in their order."""
    assert rows.count == 0 or (np.diff(rows.positions) > 0).all()
    columns = [rows.column(name).to_pylist() for name in ("k", "n")]
    assert [int(at.timestamp()) + INTERVAL for at in rows.column("_time").to_pylist()] == (
        rows.time_ms // 1000
    ).tolist()
    places = zip((rows.time_ms // 1000).tolist(), rows.causes.tolist(), zip(*columns, strict=True), strict=True)
    return [SilenceResult(*each) for each in places]


def of_mark(found: LatestMatches) -> list[SilenceResult]:
    """Return the silences that a mark of the clock makes."""
    return shown(SilentRows(STREAM, "j_1", 3, found))


def expected(rows: Sequence[Row], marks: dict[int, int], *, where: bool) -> list[SilenceResult]:
    """Return the silences by a fold over single events; marks stand before the events with their offsets."""
    watermark, latest, silent = -(10**9), dict[Any, tuple[int, int]](), []

    def fall_silent() -> None:
        ended = [(at + INTERVAL, offset, key) for key, (at, offset) in latest.items() if at + INTERVAL <= watermark]
        for due, offset, key in sorted(ended, key=lambda each: each[:2]):
            silent.append(SilenceResult(due, offset, (key, rows[offset]["n"])))
            del latest[key]

    for offset, row in enumerate(rows):
        if offset in marks:
            watermark = max(watermark, marks[offset])
            fall_silent()
        is_late = row["at"] < watermark
        watermark = max(watermark, row["at"] - DELAY)
        fall_silent()
        counts = not is_late and not (where and row["b"] is not True)
        if counts and row["at"] >= latest.get(row["k"], (row["at"], 0))[0]:
            latest[row["k"]] = row["at"], offset
    return silent


def run(
    one: SilenceOperator,
    state: LatestRows,
    rows: Sequence[Row],
    cuts: Iterable[int],
    marks: dict[int, int],
    first: int = 0,
    *,
    stored: bool = False,
) -> tuple[LatestRows, list[SilenceResult]]:
    """Take rows in by steps; marks make steps of their own."""
    found, begin = list[SilenceResult](), first
    for piece in pieces(list(rows), [*cuts, *(offset - first for offset in marks if offset >= first)]):
        if begin in marks:
            state.position = begin
            found += of_mark(one.advance(state, marks[begin] * 1000))
        state, [made] = one.step(state, timed_events(STREAM, piece, begin))
        found += shown(made)
        begin += len(piece)
        if stored:
            state = one.restore(one.snapshot(state))
    return state, found


@settings(max_examples=150, deadline=None)
@given(ROWS, CUTS, MARKS, st.booleans(), st.booleans())
def test_any_cutting_makes_the_same_silences(
    rows: list[Row], cuts: list[int], marks: dict[int, int], where: bool, stored: bool
) -> None:
    """Steps of any size tell what a fold over single events tells, with the state stored between steps or not."""
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(rows)}
    _, found = run(operator(where=where), LatestRows(), rows, cuts, marks, stored=stored)
    assert found == expected(rows, marks, where=where)


@settings(max_examples=100, deadline=None)
@given(ROWS, ROWS, CUTS, MARKS, st.booleans())
def test_an_undone_task_leaves_no_trace(
    before: list[Row], rows: list[Row], cuts: list[int], marks: dict[int, int], where: bool
) -> None:
    """A task that is carried out again tells the same, and so does one after a fold of all that came before."""
    one, state = operator(where=where), LatestRows()
    every = [*before, *rows]
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(every)}
    wanted = expected(every, marks, where=where)
    state, earlier = run(one, state, before, (), {at: mark for at, mark in marks.items() if at < len(before)})
    state.position = len(before)
    state.begin()
    for again in ((), cuts):
        _, found = run(one, state, rows, again, marks, len(before))
        assert earlier + found == wanted
        state.undo()
    folded = LatestRows()
    known = sorted(at for at in marks if at < len(before))
    folded.marks = np.array(known, np.int64), np.array([marks[at] * 1000 for at in known], np.int64)
    for begin in range(0, len(before), 7):
        one.fold(folded, timed_events(STREAM, before[begin : begin + 7], begin))
        folded.position = min(begin + 7, len(before))
    assert (folded.watermark, folded.rows, folded.late) == (state.watermark, state.rows, state.late)
    _, found = run(one, folded, rows, cuts, marks, len(before))
    assert earlier + found == wanted


def test_a_position_depends_on_the_row_and_the_interval() -> None:
    """A silence has the position of its time and row, whatever the state knew before."""
    one, row = operator(where=False), {"k": "a", "n": 1, "b": True, "at": 5}
    later = {"k": "b", "n": 1, "b": True, "at": 50}
    _, [made] = one.step(LatestRows(), timed_events(STREAM, [row, later], 7))
    _, [again] = one.step(LatestRows(), timed_events(STREAM, [row, row, later], 6))
    assert made.positions.tolist() == again.positions.tolist() == [(15_000 << 21) + 7]
    assert made.offsets.tolist() == [8]


def test_changes_bring_another_state_to_the_end_of_a_task() -> None:
    """A state with the changes of a task is the state of the worker that carried the task out."""
    one, state = operator(where=False), LatestRows()
    rows = [{"k": key, "n": 1, "b": True, "at": at} for key, at in (("a", 1), ("b", 2), ("c", 12), ("b", 14))]
    _, [made] = one.step(state, timed_events(STREAM, rows[:2], 0))
    state.position = 2
    other = LatestRows.restored(state.stored())
    state.begin()
    _, [made] = one.step(state, timed_events(STREAM, rows[2:], 2))
    state.position = 4
    assert shown(made) == [SilenceResult(11, 0, ("a", 1)), SilenceResult(12, 1, ("b", 1))]
    assert other.put_changes(state.changes())
    assert (other.rows, other.watermark, other.position) == (2, 12_000, 4) == (state.rows, state.watermark, 4)


def test_silent_keys_leave_the_state() -> None:
    """Keys without a row are forgotten, and their memory goes."""
    one, state = operator(where=False), LatestRows()
    for first in range(0, 40_000, 4_000):
        rows = [{"k": f"k{first + place}", "n": 1, "b": True, "at": first} for place in range(4_000)]
        _, _ = one.step(state, timed_events(STREAM, rows, first))
        state.position = first + 4_000
        state.begin()
    assert state.rows == 4_000
    assert state.count <= 8_000


def test_a_fold_of_a_long_log_forgets_silent_keys() -> None:
    """The memory of keys without rows goes between the batches of a fold, too."""
    one, state = operator(where=False), LatestRows()
    for first in range(0, 40_000, 4_000):
        rows = [{"k": f"k{first + place}", "n": 1, "b": True, "at": first} for place in range(4_000)]
        one.fold(state, timed_events(STREAM, rows, first))
    assert state.count <= 8_000


def test_a_torn_state_is_not_used() -> None:
    """A state after a change that failed midway makes no rows."""
    state = LatestRows()
    state.torn = True
    with pytest.raises(InternalError):
        operator(where=False).step(state, timed_events(STREAM, [], 0))


def test_other_bytes_are_no_state() -> None:
    """A snapshot of another version or a torn one is refused."""
    stored = LatestRows().stored()
    for broken in (b"silence 2\n" + stored[10:], stored[:-1], b""):
        with pytest.raises(ValueError, match="no whole snapshot"):
            LatestRows.restored(broken)
