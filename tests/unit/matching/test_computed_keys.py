"""Look-ups by a computed value of an event, or by an array's elements: the same matches as by comparing every pair."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.access.access_path import access_paths, choose_index
from grouping.model.expression import Call, Column, Expression, Slot, Value
from grouping.model.sql_type import BIGINT
from spark_jobs.engine.index.element_lookup import ElementLookup
from spark_jobs.engine.match.evaluate import match
from spark_jobs.engine.rows.event_column import EventColumns
from tests.unit.matching.matching import Events, apart, compare, destination, entry, found, looked_up_by, snapshot

_TEXTS = st.one_of(st.sampled_from(["a", "A", "b", "é", "É", ""]), st.none())
_TAGS = st.one_of(st.none(), st.lists(_TEXTS, max_size=4))
_ROWS = st.lists(st.tuples(_TEXTS, st.integers(0, 2)), min_size=1, max_size=8)
_EVENTS = st.lists(st.tuples(_TAGS, _TEXTS, st.integers(0, 2)), min_size=1, max_size=6)
_LOWER = Call("=", (Call("lower", (Column("s", "STRING"),), "STRING"), Slot(0)), "BOOLEAN")
_FIELD = Call("=", (Call("field", (Column("p", "STRUCT<s: STRING>"), Value("s", "STRING")), "STRING"), Slot(0)),
              "BOOLEAN")  # fmt: skip
_TAGGED = Call("array_contains", (Column("tags", "ARRAY<STRING>"), Slot(0)), "BOOLEAN")

Event = tuple[list[str | None] | None, str | None, int]


def _true(first: Call, event: Event, constant: str | None) -> bool:
    tags, text, _ = event
    if constant is None:
        return False
    if first is _TAGGED:
        return tags is not None and constant in tags
    return text is not None and (text.lower() if first is _LOWER else text) == constant


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([_LOWER, _FIELD, _TAGGED]), st.sampled_from(["none", "and", "or"]), _ROWS, _EVENTS)
@example(_TAGGED, "or", [("a", 0), ("a", 1)], [(["a", "a", None], "a", 1), ([], None, 0)])
def test_every_path_equals_brute_force(
    first: Call, beside: str, rows: list[tuple[str | None, int]], events: list[Event]
) -> None:
    """Alone, beside another condition, and as a branch of an OR."""
    number = compare("n", "=", "INT", 1)
    plan: list[Expression] = {
        "none": [first],
        "and": [first, compare("n", ">=", "INT", 1)],
        "or": [Call("or", (first, number), "BOOLEAN")],
    }[beside]
    types = ("STRING", "BIGINT")[: 1 if beside == "none" else 2]
    columns: dict[str, tuple[str, list[object]]] = {
        "tags": ("ARRAY<STRING>", [tags for tags, _, _ in events]),
        "s": ("STRING", [text for _, text, _ in events]),
        "p": ("STRUCT<s: STRING>", [{"s": text} for _, text, _ in events]),
        "n": ("INT", [number for _, _, number in events]),
    }
    tables = snapshot(plan, [entry(i, types, row[: len(types)]) for i, row in enumerate(rows)])

    def wanted(event: Event, row: tuple[str | None, int]) -> bool:
        true = _true(first, event, row[0])
        return {"none": true, "and": true and event[2] >= row[1], "or": true or event[2] == row[1]}[beside]

    expected = sorted(
        (i, destination(j)) for i, event in enumerate(events) for j, row in enumerate(rows) if wanted(event, row)
    )
    assert expected == found(match(tables, Events(columns)))
    for path in access_paths(plan):
        assert path.kind != "scan"
        assert expected == found(match(apart(looked_up_by(tables, path)), Events(columns))), path


def test_an_array_meets_the_rows_of_its_elements_alone() -> None:
    """Among a hundred thousand constants, an event is compared only with the elements of its array, each once."""
    count = 100_000
    contains = Call("array_contains", (Column("ids", "ARRAY<BIGINT>"), Slot(0)), "BOOLEAN")
    lookup = ElementLookup(contains, [BIGINT], [pa.array(range(count))])
    events = EventColumns(Events({"ids": ("ARRAY<BIGINT>", [[7, 99_999, 7], [], None, [-1, None], [0]])}))
    counts = np.zeros(5, np.int64)
    assert lookup.find(events, np.arange(5)).add_counts(counts) == 3
    assert [2, 0, 0, 0, 1] == counts.tolist()


def test_what_holds_constants_is_no_key() -> None:
    """``substring(s, 1, 3) = …`` has constants of its own in every row, and a key is the same for all."""
    part = Call("substring", (Column("s", "STRING"), Slot(0), Slot(1)), "STRING")
    assert "scan" == choose_index([Call("=", (part, Slot(2)), "BOOLEAN")]).kind
    assert "hash" == choose_index([_LOWER]).kind
    assert "elements" == choose_index([_TAGGED]).kind
