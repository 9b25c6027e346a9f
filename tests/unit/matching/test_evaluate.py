"""Matching a batch against constant tables equals trying every row on every event."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Slot
from spark_jobs.engine.match.evaluate import match, matches
from spark_jobs.engine.match.matched_pairs import NO_NUMBER
from tests.unit.matching.matching import Events, apart, compare, destination, entry, found, holds, snapshot
from tests.unit.matching.matching_kinds import KINDS

_SHAPES = [
    ("=",), ("<",), ("<=",), (">",), (">=",), ("<>",),
    (">=", "<="), (">", "<"), (">=", "<"), (">", "<="), (">", ">"),
]  # fmt: skip


def _optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(values, values, values, st.none())


@st.composite
def _case(draw: st.DrawFn) -> tuple[list[tuple[str, str, str]], tuple[str, ...], list[tuple], dict]:
    """Draw conjuncts as (column, op, type), slot types, rows and event columns."""
    conjuncts: list[tuple[str, str, str]] = []
    types: list[str] = []
    values: list[st.SearchStrategy[object]] = []
    columns = {}
    count = draw(st.integers(1, 6))
    for column in ("a", "b")[: draw(st.integers(1, 2))]:
        kind = draw(st.sampled_from(sorted(KINDS)))
        of_events, of_rows = KINDS[kind]
        columns[column] = (kind[0], draw(st.lists(_optional(of_events), min_size=count, max_size=count)))
        for op in draw(st.sampled_from(_SHAPES)):
            conjuncts.append((column, op, kind[0]))
            types.append(kind[1])
            values.append(_optional(of_rows))
    rows = draw(st.lists(st.tuples(*values), min_size=1, max_size=12))
    return conjuncts, tuple(types), rows, columns


def _expected(conjuncts: list, rows: list[tuple], columns: dict) -> list[tuple[int, str]]:
    count = len(next(iter(columns.values()))[1])
    return sorted(
        (event, destination(name))
        for event in range(count)
        for name, row in enumerate(rows)
        if all(holds(op, columns[column][1][event], row[slot]) for slot, (column, op, _) in enumerate(conjuncts))
    )


@settings(max_examples=400, deadline=None)
@given(_case())
def test_comparisons_equal_brute_force(case: tuple) -> None:
    """Every combination of comparisons, types, NULLs, NaN and extremes finds exactly the same as trying all rows."""
    conjuncts, types, rows, columns = case
    plan = [compare(column, op, kind, slot) for slot, (column, op, kind) in enumerate(conjuncts)]
    entries = [entry(name, types, row) for name, row in enumerate(rows)]
    tables, events = snapshot(plan, entries), Events(columns)
    expected = _expected(conjuncts, rows, columns)
    assert expected == found(match(tables, events))
    assert expected == found(match(apart(tables), events))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.booleans(), st.data())
def test_sets_equal_brute_force(kind: tuple[str, str], negated: bool, data: st.DataObject) -> None:
    """IN meets an event once whichever element it equals; NOT IN is never TRUE beside a NULL."""
    of_events, of_rows = KINDS[kind]
    events = data.draw(st.lists(_optional(of_events), min_size=1, max_size=5))
    sets = data.draw(st.lists(st.lists(_optional(of_rows), min_size=1, max_size=4).map(tuple), min_size=1, max_size=6))
    conjunct = compare("a", "in", kind[0], 0)
    plan = [Call("not", (conjunct,), "BOOLEAN") if negated else conjunct]
    entries = [entry(name, (f"SET<{kind[1]}>",), (items,)) for name, items in enumerate(sets)]
    expected = sorted(
        (event, destination(name))
        for event, value in enumerate(events)
        for name, items in enumerate(sets)
        if (
            value is not None and None not in items and not holds("in", value, items)
            if negated
            else holds("in", value, items)
        )
    )
    tables, batch = snapshot(plan, entries), Events({"a": (kind[0], events)})
    assert expected == found(match(tables, batch))
    assert expected == found(match(apart(tables), batch))


def test_in_of_ten_thousand_elements() -> None:
    """A list of 10,000 elements is looked up like any other, each row once."""
    entries = [entry(n, ("SET<BIGINT>",), (tuple(range(n, n + 10_000)),)) for n in range(3)]
    events = Events({"a": ("BIGINT", [-1, 0, 1, 9_999, 10_001, 10_002, None])})
    result = found(match(snapshot([compare("a", "in", "BIGINT", 0)], entries), events))
    expected = [
        (e, n) for e, v in enumerate((-1, 0, 1, 9_999, 10_001, 10_002)) for n in range(3) if n <= v < n + 10_000
    ]
    assert sorted((event, destination(n)) for event, n in expected) == result


def test_equality_with_two_bounds() -> None:
    """Intervals of different codes do not run into each other."""
    plan = [compare("s", "=", "STRING", 0), compare("p", ">", "INT", 1), compare("p", "<=", "INT", 2)]
    types = ("STRING", "BIGINT", "BIGINT")
    rows = [("a", 1, 3), ("a", 2, 2), ("b", 1, 3), ("b", -(2**63), 2**63 - 1), (None, 1, 3), ("a", None, 3)]
    events = Events({"s": ("STRING", ["a", "b", "b", "c", None]), "p": ("INT", [3, 1, 2, 2, 2])})
    tables = snapshot(plan, [entry(n, types, row) for n, row in enumerate(rows)])
    expected = sorted([(0, destination(0)), (1, destination(3)), (2, destination(2)), (2, destination(3))])
    assert expected == found(match(tables, events))
    assert expected == found(match(apart(tables), events))


def test_windows_are_on_the_record_time() -> None:
    """A row counts from its START on, and no more at its EXPIRE."""
    entries = [
        entry(0, ("BIGINT",), (1,), window=(10, None)),
        entry(1, ("BIGINT",), (1,), window=(None, 20)),
        entry(2, ("BIGINT",), (1,)),
    ]
    events = Events({"a": ("INT", [1, 1, 1])}, times=[9, 10, 20])
    tables = snapshot([compare("a", "=", "INT", 0)], entries)
    seen = [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 2)]
    expected = sorted((event, destination(n)) for event, n in seen)
    assert expected == found(match(tables, events))
    assert expected == found(match(apart(tables), events))


def test_no_predicate_is_every_event() -> None:
    """A group without WHERE matches every event."""
    result = match(snapshot([], [entry(0, (), ())]), Events({"a": ("INT", [1, None])}))
    assert [(0, destination(0)), (1, destination(0))] == found(result)


def test_columns_of_a_match() -> None:
    """A match carries its entry's number, partition, mode and SELECT list."""
    entries = [
        entry(7, ("BIGINT",), (1,), mode="dedicated", select="s_x"),
        entry(8, ("BIGINT",), (1,), mode="pending", select="s_y"),
    ]
    result = match(snapshot([compare("a", "=", "INT", 0)], entries), Events({"a": ("INT", [1])}))
    by_number = {int(n): i for i, n in enumerate(result.number)}
    assert {7, 8} == set(by_number)
    assert [1, 3] == [int(result.mode[by_number[n]]) for n in (7, 8)]
    assert ["s_x", "s_y"] == [result.selects[result.select[by_number[n]]].select_id for n in (7, 8)]
    assert [3, 3] == result.partition.tolist()
    assert ["g_1", "g_1"] == [result.groups[i] for i in result.group]


@pytest.mark.parametrize(
    ("plan", "types", "rows"),
    [
        ([compare("a", ">", "INT", 0)], ("BIGINT",), [(1,), (2,)]),
        ([compare("a", ">", "INT", 0), compare("a", "<", "INT", 1)], ("BIGINT", "BIGINT"), [(1, 9), (2, 9)]),
        (
            [Call("<", (Slot(0), Call("+", (Column("a", "INT"), Slot(1)), "")), "BOOLEAN")],
            ("INT", "INT"),
            [(1, 0), (2, 0)],
        ),
    ],
)
def test_virtual_is_once_per_event(plan: list, types: tuple[str, ...], rows: list) -> None:
    """An event wanted by any virtual row of a group is a single match, counted for none of them."""
    entries = [entry(n, types, row, mode="virtual") for n, row in enumerate(rows)]
    result = match(snapshot(plan, entries), Events({"a": ("INT", [1, 2, 5, None])}))
    assert [1, 2] == sorted(result.event.tolist())
    assert {NO_NUMBER} == set(result.number.tolist())


def test_slices_of_bounded_size_hold_all_matches_in_order() -> None:
    """Many matches come in several slices, of ever later events."""
    entries = [entry(n, ("BIGINT",), (n,)) for n in range(50)]
    events = Events({"a": ("BIGINT", list(range(40)))})
    parts = list(matches(snapshot([compare("a", ">=", "BIGINT", 0)], entries), events, limit=100))
    assert len(parts) > 5
    assert all(part.event.size <= 100 for part in parts)
    events_seen = np.concatenate([np.unique(part.event) for part in parts])
    assert list(range(40)) == events_seen.tolist()
    assert sum(range(1, 41)) == sum(part.event.size for part in parts)
