"""Values of frames: the same under any cutting of the input, after undone steps, and from stored states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InternalError
from grouping.model.expression import Call, Column, Value
from grouping.plan.frame_value import LAG, FrameValue
from grouping.plan.frames import Frames
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.frames.operator import FrameOperator
from spark_jobs.engine.operators.partition_clock import PartitionClock
from spark_jobs.engine.rows.cpu_budget import CpuBudget, CpuExceeded, charged
from tests.unit.matching.event_batches import stream
from tests.unit.operators.cutting import driven, pieces
from tests.unit.operators.timed_rows import timed_events

STREAM = stream("s STRING", "d DOUBLE", "n INT", "b BOOLEAN")
S, D, N, B = (Column(column.name, str(column.type)) for column in STREAM.columns)
TRUE = Call("=", (B, Value(True, "BOOLEAN")), "BOOLEAN")
Row = dict[str, Any]

VALUES = (
    FrameValue(LAG, (D,), "DOUBLE", rows=1),
    FrameValue(LAG, (S,), "STRING", rows=3),
    FrameValue("count", (), "BIGINT", rows=2),
    FrameValue("sum", (N,), "BIGINT", rows=3),
    FrameValue("avg", (D,), "DOUBLE", rows=1),
    FrameValue("first", (S,), "STRING", rows=2),
    FrameValue("count", (), "BIGINT", milliseconds=60_000),
    FrameValue("count", (D,), "BIGINT", condition=TRUE, milliseconds=60_000),
    FrameValue("sum", (N,), "BIGINT", milliseconds=120_000),
    FrameValue("min", (D,), "DOUBLE", milliseconds=60_000),
    FrameValue("max", (S,), "STRING", milliseconds=120_000),
    FrameValue("count", (S,), "BIGINT", distinct=True, milliseconds=120_000),
    FrameValue("last", (N,), "INT", milliseconds=60_000),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "s": st.sampled_from(["a", "b", None]),
            "d": st.sampled_from([0.0, -0.0, 0.1, 1.5, 2.0, None]),
            "n": st.sampled_from([1, 7, None]),
            "b": st.sampled_from([True, False, None]),
            "at": st.integers(0, 300),
        }
    ),
    max_size=30,
)
CUTS = st.lists(st.integers(0, 30), max_size=4)
KEYS = st.sampled_from([(S,), (D,), (B, S)])


def operator(by: tuple[Column, ...], where: bool, values: Sequence[FrameValue] = VALUES) -> FrameOperator:
    """Return the operator for a key; WHERE is ``b = TRUE``, if any."""
    return FrameOperator(Frames.of(by, (TRUE,) if where else ()), tuple(values))


def shown(made: ExtendedRows, first: int) -> list[tuple[Any, ...]]:
    """Return rows with their values: the place, then the values."""
    if not made.count:
        return []
    columns = [list(map(repr, made.column(value.column.reference).to_pylist())) for value in VALUES]
    return list(zip((made.event + first).tolist(), *columns, strict=True))


def expected(rows: list[Row], by: tuple[Column, ...], where: bool) -> list[tuple[Any, ...]]:
    """Return the values by a fold over single rows."""
    clock, kept, found = PartitionClock(), list[tuple[int, Row, int]](), []
    for place, row in enumerate(rows):
        if where and row["b"] is not True:
            continue
        time = row["at"] * 1000
        clock, _ = clock.after(np.array([place]), np.array([time]))
        kept.append((place, row, time))
        own = [each for each in kept if all(each[1][column.stored] == row[column.stored] for column in by)]
        found.append((place, *(repr(_value(value, own, time, clock.time)) for value in VALUES)))
    return found


def _value(value: FrameValue, own: list[tuple[int, Row, int]], time: int, clock: int) -> Any:
    if value.function == LAG:
        assert value.rows is not None
        return own[-1 - value.rows][1][value.args[0].stored] if len(own) > value.rows else None
    if value.milliseconds is None:
        assert value.rows is not None
        frame = own[-1 - value.rows :]
    else:
        least = max(time, clock - max(value.milliseconds, 60_000)) - value.milliseconds
        frame = [each for each in own[:-1] if least <= each[2] <= time] + own[-1:]
        frame.sort(key=lambda each: each[2])
    rows = [row for _, row, _ in frame if value.condition is None or row["b"] is True]
    if not value.args:
        return len(rows)
    values = [row[value.args[0].stored] for row in rows]
    if value.function in ("first", "last"):
        return values[0 if value.function == "first" else -1]
    values = [each for each in values if each is not None]
    match value.function:
        case "count":
            return len(set(values)) if value.distinct else len(values)
        case "sum":
            return sum(values) if values else None
        case "avg":
            return sum(values) / len(values) if values else None
        case "min":
            return min(values, default=None)
    return max(values, default=None)


def same(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> bool:
    """Tell whether values are equal; a zero may have either sign."""
    return [tuple(str(each).replace("-0.0", "0.0") for each in row) for row in found] == [
        tuple(str(each).replace("-0.0", "0.0") for each in row) for row in wanted
    ]


@settings(max_examples=60, deadline=None)
@given(ROWS, KEYS, CUTS, st.booleans(), st.booleans())
def test_any_cutting_makes_the_same_values(
    rows: list[Row], by: tuple[Column, ...], cuts: list[int], where: bool, stored: bool
) -> None:
    """Steps of any size give the values of a fold over single rows, with the state stored between steps or not."""
    begin, steps = 0, []
    for piece in pieces(rows, cuts):
        steps.append((begin, timed_events(STREAM, piece, begin)))
        begin += len(piece)
    made = driven(operator(by, where), [(step, None) for _, step in steps], stored=stored)
    found = [
        row for (first, _), framed in zip(steps, made, strict=True) for each in framed for row in shown(each, first)
    ]
    assert same(found, expected(rows, by, where))


@settings(max_examples=50, deadline=None)
@given(ROWS, ROWS, CUTS, st.booleans(), st.integers(0, 30))
def test_an_undone_task_leaves_no_trace(
    before: list[Row], rows: list[Row], cuts: list[int], where: bool, again: int
) -> None:
    """A repeated task with other cuts gives equal values, and so does a task after a second fold of a part."""
    one, state = operator((S,), where), FrameRows()
    state.reach = one.reach
    for first in range(0, len(before), 5):
        one.fold(state, timed_events(STREAM, before[first : first + 5], first))
        state.position = min(first + 5, len(before))
        state.begin()  # merges rows, and forgets rows out of reach

    def run(steps: list[list[Row]]) -> list[tuple[Any, ...]]:
        state.begin()
        begin, found = len(before), []
        for piece in steps:
            _, [made] = one.step(state, timed_events(STREAM, piece, begin))
            found += shown(made, begin)
            begin += len(piece)
        state.undo()
        return found

    wanted = [row for row in expected(before + rows, (S,), where) if row[0] >= len(before)]
    assert same(run([rows]), wanted)
    assert same(run(pieces(rows, cuts)), wanted)
    if before:
        fresh, position = FrameRows(), min(again, len(before))
        one.fold(fresh, timed_events(STREAM, before, 0))
        fresh.position = len(before)
        fresh.rewind(position)
        one.fold(fresh, timed_events(STREAM, before, 0))
        _, [made] = one.step(fresh, timed_events(STREAM, rows, len(before)))
        assert same(shown(made, len(before)), wanted)


def test_rows_before_the_begin_of_a_value_do_not_count() -> None:
    """Frames leave out rows from before the begin of a value's entries, even where the state has these rows."""
    back, count = VALUES[0], VALUES[2]
    one, state = operator((S,), False, (back, count)), FrameRows()
    state.visible = {count.column.stored: 2}
    _, [made] = one.step(state, timed_events(STREAM, [{"s": "a", "d": float(place), "at": 0} for place in range(4)], 0))
    assert made.column(back.column.reference).to_pylist() == [None, 0.0, 1.0, 2.0]
    assert made.column(count.column.reference).to_pylist() == [1, 1, 1, 2]


def test_a_state_forgets_rows_out_of_reach() -> None:
    """Rows out of reach of all frames go: rows before the longest ROWS frame, and rows of times long past."""
    by_rows = operator((S,), False, (VALUES[0],))
    by_time = operator((S,), False, (VALUES[6],))
    for one, most in ((by_rows, 40), (by_time, 200)):
        state = FrameRows()
        state.reach = one.reach
        for first in range(0, 2_000, 10):
            one.fold(
                state,
                timed_events(
                    STREAM, [{"s": "ab"[place % 2], "d": 0.5, "at": first + place} for place in range(10)], first
                ),
            )
            state.begin()
        assert state.rows <= most
    assert by_time.size(state) > 0


def test_keys_without_rows_are_forgotten() -> None:
    """When most keys have no row in any frame by time, their numbers go, and the values of other keys stay."""
    one, state = operator((S,), False, (VALUES[6],)), FrameRows()
    state.reach = one.reach
    times = [*range(400), *[1_000] * 200]
    rows = [{"s": f"{place}" if place < 400 else "ab"[place % 2], "at": at} for place, at in enumerate(times)]
    for first in range(0, 600, 10):
        one.fold(state, timed_events(STREAM, rows[first : first + 10], first))
        state.position = first + 10
        state.begin()
    assert state.count <= 4
    again = FrameRows.restored(state.stored())
    for kept in (state, again):
        _, [made] = one.step(kept, timed_events(STREAM, [{"s": each, "at": 1_001} for each in "ab7"], 600))
        assert [101, 101, 1] == made.column(VALUES[6].column.reference).to_pylist()


def test_a_costly_frame_is_stopped() -> None:
    """The rows of frames are charged to the computation, whatever the number of its rows."""
    one, clock = operator((S,), False, (FrameValue("max", (D,), "DOUBLE", rows=9),)), itertools.count()
    budget = CpuBudget(1.5, clock=lambda: float(next(clock)))
    rows = timed_events(STREAM, [{"s": "a", "d": 1.0, "at": 0}], 0)
    with budget.batch(1), pytest.raises(CpuExceeded), charged("j_1", lambda: ["g_1"]):
        one.step(FrameRows(), rows)
    assert {"g_1"} == budget.stopped.suspects


def test_one_time_far_ahead_forgets_nothing() -> None:
    """An event with a time years ahead does not empty the frames of later events."""
    rows = [{"s": "a", "d": 1.0, "at": place} for place in range(20)]
    rows[10]["at"] = 2_000_000_000
    one = operator((S,), False, (VALUES[6],))
    _, [made] = one.step(FrameRows(), timed_events(STREAM, rows, 0))
    assert made.column(VALUES[6].column.reference).to_pylist()[-2:] == [18, 19]


def test_a_torn_state_is_not_used() -> None:
    """A state after a change that failed midway makes no rows."""
    state = FrameRows()
    state.torn = True
    with pytest.raises(InternalError):
        operator((S,), False).step(state, timed_events(STREAM, [{"s": "a", "at": 0}], 0))


def test_long_frames_are_made_some_at_a_time() -> None:
    """A key with very many rows has exact values, for sums as differences and for functions of all rows."""
    rows = [{"s": "a", "d": float(place % 97), "n": place, "at": place // 100} for place in range(6_000)]
    values = (
        FrameValue("sum", (N,), "BIGINT", milliseconds=20_000),
        FrameValue("max", (D,), "DOUBLE", milliseconds=20_000),
        FrameValue("stddev_pop", (D,), "DOUBLE", rows=9),
    )
    _, [made] = operator((S,), False, values).step(FrameRows(), timed_events(STREAM, rows, 0))
    total, most, spread = (made.column(value.column.reference).to_pylist() for value in values)
    for place in (0, 1, 2_500, 5_999):
        frame = [row for row in rows[: place + 1] if row["at"] >= rows[place]["at"] - 20]
        assert total[place] == sum(row["n"] for row in frame)
        assert most[place] == max(row["d"] for row in frame)
        last = [row["d"] for row in rows[max(place - 9, 0) : place + 1]]
        mean = math.fsum(last) / len(last)
        assert spread[place] == pytest.approx(math.sqrt(math.fsum((each - mean) ** 2 for each in last) / len(last)))
