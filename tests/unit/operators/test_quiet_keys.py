"""The last row of a quiet key is forgotten: at the same event, whatever a worker has lost or done twice."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.model.expression import Column
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.rows.events import Events
from tests.unit.matching.event_batches import SETTINGS, batch, stream
from tests.unit.operators.cutting import pieces

_STREAM = stream("k STRING", "n INT")
_KEPT = 10
_BEGIN = 28_000_000
_OPERATOR = RowBeforeOperator((Column("k", "STRING"),), (Column("n", "INT"),), _KEPT)
_AGREEING = 8
Timed = tuple[str, int]
"""A key, and a record time in minutes."""


def _agreed(minute: int) -> list[Timed]:
    """Return rows of another key, as many as move the clock."""
    return [("z", minute)] * _AGREEING


_MINUTES = st.one_of(st.integers(0, 40), st.integers(0, 3))
_ROWS = st.lists(
    st.one_of(st.tuples(st.sampled_from("abc"), _MINUTES).map(lambda row: [row]), _MINUTES.map(_agreed)),
    min_size=1,
    max_size=14,
).map(lambda parts: [row for part in parts for row in part])
_CUTS = st.lists(st.integers(0, 60), max_size=5)


def _decoded(rows: list[Timed], first: int) -> Events:
    records = batch([json.dumps({"k": key, "n": minute}).encode() for key, minute in rows], first=first)
    place = records.schema.get_field_index("timestamp")
    times = pa.array([(_BEGIN + minute) * 60_000_000 + 59_000_000 for _, minute in rows], pa.int64())
    events, letters = decode(
        records.set_column(place, "timestamp", times.cast(records.schema.field(place).type)), _STREAM, SETTINGS
    )
    assert letters is None
    return events


def _expected(rows: list[Timed]) -> list[tuple[int, int]]:
    """Fold one event at a time: by pair the later row and the row before."""
    clock, last, found = None, dict[str, tuple[int, int | None]](), []
    for place, (key, _) in enumerate(rows):
        if place >= _AGREEING - 1:
            clock = max(clock or 0, min(at for _, at in rows[place - _AGREEING + 1 : place + 1]))
        if key in last and (last[key][1] is None or clock is None or clock - last[key][1] <= _KEPT):
            found.append((place, last[key][0]))
        last[key] = place, clock
    return found


@settings(max_examples=200, deadline=None)
@example(
    [*_agreed(0), *[("a", 0)] * 5, ("b", 0), *_agreed(11), ("c", 11), ("a", 0)],
    [22, 22],
    ["", "", "folded", "", "", "", ""],
)
@given(rows=_ROWS, cuts=_CUTS, fates=st.lists(st.sampled_from(["", "stored", "again", "folded"]), min_size=7))
def test_quiet_keys_begin_anew(rows: list[Timed], cuts: list[int], fates: list[str]) -> None:
    """Cut, stored, undone and folded again, a state forgets the keys that a fold of single events forgets."""
    state, begin, found = LastRows(), 0, list[tuple[int, int]]()
    for piece, fate in zip(pieces(rows, cuts), fates, strict=False):
        if fate == "stored":
            state = LastRows.restored(state.stored())
        if fate == "folded":
            _OPERATOR.fold(state, _decoded(rows[begin // 2 : begin], begin // 2)) if begin else None
        state.begin()
        if piece and fate == "again":
            _OPERATOR.step(state, _decoded(piece, begin))
            state.undo()
            state.begin()
        if piece:
            _, [made] = _OPERATOR.step(state, _decoded(piece, begin))
            found += zip((made.of + begin).tolist(), made.own_offsets.tolist(), strict=True)
        begin += len(piece)
        state.position = begin
    assert _expected(rows)[: len(found)] == found
    assert len(found) == len([pair for pair in _expected(rows) if pair[0] < begin])


def test_forgotten_rows_leave_the_memory() -> None:
    """When most keys are forgotten their rows go, in memory and in stored states; the other keys stay as they are."""
    state = LastRows()
    _OPERATOR.step(state, _decoded([*_agreed(0), *((f"{number}", 0) for number in range(100))], 0))
    state.position = 108
    state.begin()
    assert 101 == state.count
    _OPERATOR.step(state, _decoded([("7", 9), *_agreed(30), ("new", 30), ("7", 31)], 108))
    assert 3 == LastRows.restored(state.stored()).count
    state.position = 119
    state.begin()
    assert 3 == state.count
    _, [made] = _OPERATOR.step(state, _decoded([("new", 31), ("8", 31), ("7", 31)], 119))
    assert [(0, 117), (2, 118)] == list(zip(made.of.tolist(), made.own_offsets.tolist(), strict=True))
    assert [30, 31] == made.column("n").to_pylist()


def test_a_record_with_a_wrong_clock_forgets_no_key() -> None:
    """A single record far ahead of its neighbours does not move the clock."""
    rows = [*_agreed(0), ("a", 0), ("b", 5_000_000), ("a", 1), ("b", 1)]
    _, [made] = _OPERATOR.step(LastRows(), _decoded(rows, 0))
    assert [(10, 8), (11, 9)] == list(zip(made.of.tolist(), made.own_offsets.tolist(), strict=True))[-2:]
