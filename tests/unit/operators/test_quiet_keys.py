"""The last row of a quiet key is forgotten: at the same event, whatever a worker has lost or done twice."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.model.expression import Column
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.extremes import ExtremesBuilder, extremes_name
from tests.unit.matching.event_batches import SETTINGS, batch, stream
from tests.unit.operators.cutting import pieces

_STREAM = stream("k STRING", "n INT")
_KEPT = 10
_BEGIN = 28_000_000
_N = Column("n", "INT")
_OPERATOR = RowBeforeOperator((Column("k", "STRING"),), (_N,), _KEPT)
_EXTREMES = extremes_name(_N, above=False)
_WITH_EXTREMES = replace(_OPERATOR, extremes=frozenset([_EXTREMES]))
_RECENT = 8
Timed = tuple[str, int]
"""A key, and a record time in minutes."""


def _agreed(minute: int) -> list[Timed]:
    """Return rows of another key, as many as move the clock."""
    return [("z", minute)] * _RECENT


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
        recent = [-1] * _RECENT + [at for _, at in rows[: place + 1]]
        if (third_least := sorted(recent[-_RECENT:])[2]) >= 0:
            clock = max(clock or 0, third_least)
        if key in last and (last[key][1] is None or clock is None or clock - last[key][1] <= _KEPT):
            found.append((place, last[key][0]))
        last[key] = place, clock
    return found


def _expected_extremes(rows: list[Timed]) -> dict[str, bytes]:
    """Fold one event at a time: by key the extremes of the events since the key began anew."""
    before, builders = dict(_expected(rows)), dict[str, ExtremesBuilder]()
    for place, (key, minute) in enumerate(rows):
        if place not in before:
            builders[key] = ExtremesBuilder(len(rows))
            builders[key].begin(None)
        builders[key].add(place, ~minute, place)
    return {key: builder.packed() for key, builder in builders.items()}


def _extremes(state: LastRows) -> dict[str, bytes]:
    """Return the extremes of the keys that are not forgotten."""
    kept = LastRows.restored(state.stored())
    numbers = np.arange(kept.keys.count)
    keys, _ = kept.keys.columns(numbers)
    return dict(zip(keys.to_pylist(), kept.taken([_EXTREMES], numbers)[_EXTREMES].to_pylist(), strict=True))


@settings(max_examples=200, deadline=None)
@example(
    [*_agreed(0), *[("a", 0)] * 5, ("b", 0), *_agreed(11), ("c", 11), ("a", 0)],
    [22, 22],
    ["", "", "folded", "", "", "", ""],
)
@given(rows=_ROWS, cuts=_CUTS, fates=st.lists(st.sampled_from(["", "stored", "again", "folded"]), min_size=7))
def test_quiet_keys_begin_anew(rows: list[Timed], cuts: list[int], fates: list[str]) -> None:
    """Cut, stored, undone and folded again, a state forgets the keys that a fold of single events forgets.

    The extremes of each key are those of its events since the key began anew.
    """
    state, begin, found = LastRows(), 0, list[tuple[int, int]]()
    for piece, fate in zip(pieces(rows, cuts), fates, strict=False):
        if fate == "stored":
            state = LastRows.restored(state.stored())
        if begin and fate == "folded":
            state.rewind(begin // 2)
            for place in range(begin // 2, begin, 3):
                _WITH_EXTREMES.fold(state, _decoded(rows[place : min(place + 3, begin)], place))
        state.begin()
        if piece and fate == "again":
            _WITH_EXTREMES.step(state, _decoded(piece, begin))
            state.undo()
            state.begin()
        if piece:
            _, [made] = _WITH_EXTREMES.step(state, _decoded(piece, begin))
            found += zip((made.of + begin).tolist(), made.own_offsets.tolist(), strict=True)
        begin += len(piece)
        state.position = begin
    assert _expected(rows)[: len(found)] == found
    assert len(found) == len([pair for pair in _expected(rows) if pair[0] < begin])
    extremes = _extremes(state)
    assert extremes.items() <= _expected_extremes(rows[:begin]).items()
    assert not begin or rows[begin - 1][0] in extremes


def test_extremes_that_are_made_anew_begin_behind_a_gap() -> None:
    """A column of extremes that comes to a state late has no rows of a key from before the key was forgotten."""
    rows = [*_agreed(0), ("a", 0), ("b", 0), *_agreed(9), ("b", 9), *_agreed(18), ("a", 18), ("b", 18)]
    state = LastRows()
    _OPERATOR.step(state, _decoded(rows[:-1], 0))
    state.position = len(rows) - 1
    state.begin()
    state.rewind(0)
    for place, row in enumerate(rows):
        _WITH_EXTREMES.fold(state, _decoded([row], place))
    state.begin()
    found, expected = _extremes(state), _expected_extremes(rows)
    assert found == expected
    assert len(found["a"]) < len(found["b"])


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


def test_records_with_an_old_clock_stop_no_forgetting() -> None:
    """Two of eight records with a time far behind do not hold the clock back."""
    often = [("x", 0), *[("y", 20)] * 3] * 4
    _, [made] = _OPERATOR.step(LastRows(), _decoded([*_agreed(0), ("a", 0), *often, ("a", 20)], 0))
    assert 25 not in made.of.tolist()
