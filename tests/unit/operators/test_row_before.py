"""The row before each row: the same under any cutting of the input, after undone steps, and from stored states."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InternalError
from grouping.model.expression import Column
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.rows_before import RowsBefore
from tests.unit.matching.event_batches import SETTINGS, batch, stream
from tests.unit.operators.cutting import driven, pieces

STREAM = stream("s STRING", "d DOUBLE", "n INT", "t TIMESTAMP", "x DECIMAL(9,2)", "b BOOLEAN", "a ARRAY<INT>")
READS = tuple(sorted((Column(column.name, str(column.type)) for column in STREAM.columns), key=lambda one: one.stored))
Row = dict[str, Any]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": st.sampled_from(["a", "b", "", None]),
            "d": st.sampled_from([0.0, -0.0, 1.5, None]),
            "n": st.sampled_from([0, 1, 7, None]),
            "t": st.sampled_from(["2026-11-21T10:00:00Z", None]),
            "x": st.sampled_from(["1.50", "0", None]),
            "b": st.sampled_from([True, False, None]),
            "a": st.sampled_from([[1], [1, 2], [], None]),
        }
    ),
    max_size=12,
)
KEYS = st.sampled_from([("s",), ("d",), ("n", "s"), ("x",), ("b", "d", "t")])
CUTS = st.lists(st.integers(0, 12), max_size=4)


def decoded(rows: list[Row], first: int) -> Events:
    """Return rows as the events of partition 3, from an offset on."""
    events, letters = decode(batch([json.dumps(row).encode() for row in rows], first=first), STREAM, SETTINGS)
    assert letters is None
    return events


def operator(by: tuple[str, ...]) -> RowBeforeOperator:
    """Return the operator for a key, which reads all columns."""
    return RowBeforeOperator(tuple(column for column in READS if column.stored in by), READS)


def shown(begin: int, before: RowsBefore) -> list[tuple[Any, ...]]:
    """Return pairs by value: the later row's place, the earlier row's offset, and the earlier row's columns."""
    columns = [map(repr, before.column(column.reference).to_pylist()) for column in READS]
    return list(zip((before.of + begin).tolist(), before.own_offsets.tolist(), *columns, strict=True))


def expected(rows: list[Row], by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return the pairs of rows one by one, as `shown` does; a key is compared by value."""
    last: dict[Any, int] = {}
    found = []
    columns = [decoded(rows, 0).column(column.reference).to_pylist() for column in READS]
    for place, row in enumerate(rows):
        key = tuple(row[name] for name in by)
        if key in last:
            before = last[key]
            found.append((place, before, *(repr(column[before]) for column in columns)))
        last[key] = place
    return found


def steps_of(rows: list[Row], cuts: list[int]) -> list[Events]:
    """Return rows as the events of several steps."""
    begin, steps = 0, []
    for piece in pieces(rows, cuts):
        steps.append(decoded(piece, begin))
        begin += len(piece)
    return steps


@settings(max_examples=150, deadline=None)
@given(ROWS, KEYS, CUTS, st.booleans())
def test_any_cutting_finds_the_same_rows_before(
    rows: list[Row], by: tuple[str, ...], cuts: list[int], stored: bool
) -> None:
    """Steps of any size find the pairs that single rows find; the state may be stored between steps."""
    steps = steps_of(rows, cuts)
    made = driven(operator(by), [(step, None) for step in steps], stored=stored)
    found = [
        pair
        for step, befores in zip(steps, made, strict=True)
        for before in befores
        for pair in shown(int(step.offsets[0]) if step.count else 0, before)
    ]
    assert found == expected(rows, by)


@settings(max_examples=100, deadline=None)
@given(ROWS, ROWS, KEYS, CUTS)
def test_an_undone_task_leaves_no_trace(
    before: list[Row], rows: list[Row], by: tuple[str, ...], cuts: list[int]
) -> None:
    """A task that is evaluated again, cut otherwise, finds the same rows before."""
    one, state = operator(by), LastRows()
    one.fold(state, decoded(before, 0))
    state.position = len(before)

    def run(steps: list[list[Row]]) -> list[tuple[Any, ...]]:
        state.begin()
        begin, found = len(before), []
        for piece in steps:
            _, [made] = one.step(state, decoded(piece, begin))
            found += shown(begin, made)
            begin += len(piece)
        state.undo()
        return found

    first = run([rows])
    assert first == [pair for pair in expected(before + rows, by) if pair[0] >= len(before)]
    assert run(pieces(rows, cuts)) == first
    assert state.position == len(before)


def test_folding_again_changes_nothing() -> None:
    """A part of the log that is folded a second time leaves the last row of each key as it was."""
    rows = [{"s": name, "n": place} for place, name in enumerate("abcabca")]
    one, state = operator(("s",)), LastRows()
    one.fold(state, decoded(rows, 0))
    one.fold(state, decoded(rows[2:], 2))
    _, [made] = one.step(state, decoded([{"s": name} for name in "abc"], 7))
    assert made.own_offsets.tolist() == [6, 4, 5]
    assert made.column("n").to_pylist() == [6, 4, 5]


def test_a_new_column_is_null_in_older_rows() -> None:
    """A column that an operator begins to read is NULL in rows that came before, and there in later ones."""
    few = RowBeforeOperator((Column("s", "STRING"),), (Column("n", "INT"),))
    state = LastRows()
    few.fold(state, decoded([{"s": "a", "n": 1, "d": 2.0}, {"s": "b", "n": 1, "d": 2.0}], 0))
    more = operator(("s",))
    more.fold(state, decoded([{"s": "b", "n": 3, "d": 4.0}], 2))
    _, [made] = more.step(state, decoded([{"s": "a"}, {"s": "b"}], 3))
    assert made.column("n").to_pylist() == [1, 3]
    assert made.column("d").to_pylist() == [None, 4.0]


def test_keys_are_compared_as_group_by_compares() -> None:
    """NaN is NaN, -0.0 is 0.0, NULL is NULL; the row before keeps its own sign."""
    one = RowBeforeOperator((Column("d", "DOUBLE"),), (Column("d", "DOUBLE"),))
    _, [made] = one.step(LastRows(), decoded([{"d": -0.0}, {"d": 0.0}, {}, {"d": None}], 0))
    assert made.of.tolist() == [1, 3]
    assert math.copysign(1, made.column("d")[0].as_py()) == -1


def test_many_keys_in_many_steps() -> None:
    """Keys that are met over many steps, so that their parts are merged, each find their last row."""
    one, state = operator(("n",)), LastRows()
    last: dict[int, int] = {}
    for step in range(12):
        keys = [(step * 500 + place) % 4_000 for place in range(1_000)]
        _, [made] = one.step(state, decoded([{"n": key} for key in keys], step * 1_000))
        assert made.own_offsets.tolist() == [last[key] for key in keys if key in last]
        last |= {key: step * 1_000 + place for place, key in enumerate(keys)}
    assert state.count == len(last) == 4_000


def test_a_torn_or_foreign_snapshot_is_refused() -> None:
    """Bytes that are cut, changed, or of another version are no state."""
    one, state = operator(("s",)), LastRows()
    one.fold(state, decoded([{"s": "a"}], 0))
    whole = one.snapshot(state)
    assert one.restore(whole).count == 1
    for bad in (b"", whole[:-1], whole[:40], whole.replace(b"row-before 1", b"row-before 9"), whole + b"x"):
        with pytest.raises(ValueError, match="no whole snapshot"):
            one.restore(bad)


def test_a_state_that_failed_midway_is_not_used() -> None:
    """A step over a state whose last change failed raises."""
    state = LastRows()
    state.torn = True
    with pytest.raises(InternalError, match="an earlier step failed midway"):
        operator(("s",)).step(state, decoded([{"s": "a"}], 0))
