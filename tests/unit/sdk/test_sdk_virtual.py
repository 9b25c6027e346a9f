"""Virtual destinations: a reader applies the filter, and gets exactly the results that the gateway would have sent."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.sdk.errors import FilterUnavailable
from gateway.sdk.records.cursor import place_of
from gateway.sdk.records.feed import Feed
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.records.virtual import VirtualFilters
from gateway.sdk.results import ContinuousQuery, Destination, Match, Pause
from grouping.compiler.compiler import compile_select
from grouping.compiler.reader_sql import check_virtual, filter_sql
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.group import ConstantRow
from grouping.model.sql_type import DOUBLE, SqlType
from grouping.plan.group import CompiledQuery, GroupPlan, SelectItem, SelectList
from grouping.store.constant_table import MODES
from spark_jobs.engine.constants.constant_cache import ConstantTable, Snapshot
from spark_jobs.engine.constants.constant_part import ConstantPart
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.match.evaluate import match
from tests.unit.matching.matching import Events, compare, entry, holds, snapshot
from tests.unit.matching.matching_kinds import KINDS

COLUMNS = {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT", "flag": "BOOLEAN", "d": "DECIMAL(30,10)"}


def place(where: str | None, select: str | None = "symbol", columns: Mapping[str, str] = COLUMNS) -> Destination:
    """A virtual destination of the group g_1."""
    described = [{"name": name, "type": kind} for name, kind in columns.items()]
    return Destination(
        id="d_1", mode="virtual", topic="t", key="g_1", offset=[0, 0], filter=where, select=select, columns=described
    )


def apply(destination: Destination, events: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
    """Apply filter and SELECT list of a virtual destination to events."""
    chosen = VirtualFilters().of(destination)
    assert chosen is not None
    return chosen([json.dumps(event).encode() for event in events])


@pytest.mark.parametrize(
    ("where", "event", "seen"),
    [
        ("price < 10", {"price": 9.5}, True),
        ("price < 10", {"price": 10}, False),
        ("price < 10", {"price": None}, False),
        ("NOT (price < 10)", {"price": None}, False),
        ("price IS NULL", {"price": None}, True),
        ("price = 3.0000000000000004e-1", {"price": 0.1 + 0.2}, True),
        ("volume > 9007199254740992", {"volume": 9007199254740993}, True),
        ("volume > 9223372036854775806.5", {"volume": 2**63 - 1}, True),
        ("d = 12345678901234567890.1234567891", {"d": "12345678901234567890.1234567891"}, True),
        ("d = 12345678901234567890.1234567892", {"d": "12345678901234567890.1234567891"}, False),
        ("d > 9", {"d": "10.0000000000"}, True),
        ("symbol = 'O''Neil'", {"symbol": "O'Neil"}, True),
        ("symbol = 'A' OR flag", {"symbol": None, "flag": True}, True),
    ],
)
def test_filter_keeps_three_valued_logic_and_exact_numbers(where: str, event: dict[str, Any], seen: bool) -> None:
    """An event is a match only where the filter is TRUE; big integers and decimals are not rounded."""
    everything = {name: event.get(name) for name in COLUMNS}
    assert [seen] == [row is not None for row in apply(place(where), [everything])]


def _json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, date | Decimal) else value


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from("= <> < <= > >= in".split()), st.data())
def test_filters_equal_what_the_evaluator_finds(kind: tuple[str, str], op: str, data: st.DataObject) -> None:
    """The filter of every type and comparison finds in stored records exactly the matches of the predicate."""
    of_events, of_rows = KINDS[kind]
    if kind[0] == "DOUBLE":
        of_events = of_events.filter(lambda value: value is not None and abs(value) < float("inf"))
        of_rows = of_rows.filter(lambda value: value == value)  # noqa: PLR0124  a literal is never NaN
    events = data.draw(st.lists(st.one_of(of_events, st.none()), min_size=1, max_size=6))
    constant = data.draw(st.lists(of_rows, min_size=2, max_size=4).map(tuple) if op == "in" else of_rows)
    row = ConstantRow((SqlType.of(f"SET<{kind[1]}>" if op == "in" else kind[1]),), (constant,))
    where = filter_sql(GroupPlan("g_1", "s", "", (compare("a", op, kind[0], 0),)), row)
    found = apply(place(where, "a", {"a": kind[0]}), [{"a": _json(value)} for value in events])
    assert [holds(op, value, constant) for value in events] == [row is not None for row in found]


_LOGIC = (
    "price <=> 5",
    "symbol IS DISTINCT FROM 'A' AND price > 3",
    "CASE WHEN price > 5 THEN symbol = 'A' WHEN volume = 3 THEN NULL ELSE flag END",
    "CASE volume WHEN 3 THEN 'A' END = symbol",
    "CASE WHEN flag THEN price ELSE 3 END > 2.5 OR NOT (volume <=> NULL)",
    "coalesce(price, 0) >= 0",
    "nullif(volume, 3) <> 5",
    "if(flag, symbol, 'A') LIKE 'A%'",
    "nvl(symbol, 'B') IN ('A', 'B') AND coalesce(flag, TRUE)",
    "(price > 3 AND flag) IS TRUE",
    "(flag OR price > 3) IS NOT TRUE",
    "equal_null(flag, price > 3 OR volume = 5)",
    "(price > 3 AND flag) IS NULL OR NOT (flag OR volume = 3)",
    "coalesce(price > 3 AND flag, volume = 3)",
)
_EVENT = st.fixed_dictionaries(
    {
        "symbol": st.sampled_from(["A", "B", None]),
        "price": st.sampled_from([0.0, 3.0, 5.0, 7.5, None]),
        "volume": st.sampled_from([3, 5, None]),
        "flag": st.sampled_from([True, False, None]),
        "d": st.none(),
    }
)


def _compiled(where: str) -> CompiledQuery:
    columns = tuple(StreamColumn(name, kind) for name, kind in COLUMNS.items())
    stream = Stream("s_1", "quotes", columns, "quotes", "json", {"0": 0}, "2026-11-21T00:00:00Z")
    return compile_select(f"SELECT symbol FROM quotes WHERE {where}", Catalog([stream]))


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(_LOGIC), st.lists(_EVENT, min_size=1, max_size=8))
@example(_LOGIC[3], [{"symbol": "B", "price": 0.0, "volume": 5, "flag": True, "d": None}])
def test_a_choice_and_equality_with_null_are_those_of_the_evaluator(where: str, events: list[dict[str, Any]]) -> None:
    """Purely logical SQL is published VIRTUAL, and means the same in the reader's engine as here."""
    query = _compiled(where)
    check_virtual(query)
    found = [row is not None for row in apply(place(filter_sql(query.plan, query.row)), events)]
    batch = Events({name: (kind, [event[name] for event in events]) for name, kind in COLUMNS.items()})
    tables = snapshot(query.plan.conjuncts, [entry(0, query.row.type_texts, query.row.values)])
    matched = set(match(tables, batch).event.tolist())
    assert found == [number in matched for number in range(len(events))]


@pytest.mark.parametrize("where", ["coalesce(volume, 2.5) > 5", "CASE WHEN flag THEN d ELSE volume END > 2"])
def test_a_choice_of_several_types_is_refused(where: str) -> None:
    """Engines choose different types for a choice between values of two types."""
    with pytest.raises(InputError, match="cannot be published VIRTUAL") as caught:
        check_virtual(_compiled(where))
    assert "choose different common types" in (caught.value.detail or "")


@pytest.mark.parametrize(
    "where", ["volume < 1e39", "volume > 1e-39", "volume IN (1, 1e39)", "volume BETWEEN 1e20 AND 5e38"]
)
def test_a_constant_of_too_many_digits_is_refused(where: str) -> None:
    """No engine has an exact number of more than 38 digits."""
    with pytest.raises(InputError, match="cannot be published VIRTUAL") as caught:
        check_virtual(_compiled(where))
    assert "38 digits" in (caught.value.detail or "")
    check_virtual(_compiled(where.replace("39", "5").replace("38", "25")))


def test_rows_hold_what_the_records_hold() -> None:
    """The row is the SELECT list's, in its order, with its names; values are the record's, constants apart."""
    destination = place("TRUE", 'd AS amount, symbol AS "Symbol", 1 AS one')
    [row] = apply(destination, [{"symbol": "é\x00", "d": "1.5000000000", "price": None, "volume": None, "flag": None}])
    assert row is not None
    assert [("amount", "1.5000000000"), ("Symbol", "é\x00"), ("one", 1)] == list(row.items())


def test_a_column_may_have_any_name() -> None:
    """The names by which the reader or DuckDB finds a row are free for columns."""
    columns = {"symbol": "STRING", "rowid": "BIGINT", "Place0": "BIGINT"}
    events = [{"symbol": "a", "rowid": 1, "Place0": 1}, {"symbol": "b", "rowid": 0, "Place0": 7}]
    assert apply(place("\"symbol\" = 'a'", "symbol", columns), events) == [{"symbol": "a"}, None]


@pytest.mark.parametrize(
    "destination", [place(None), place(""), place("TRUE", None), place("TRUE", columns={}), place("no SQL at all")]
)
def test_without_a_sound_filter_nothing_is_a_match(destination: Destination) -> None:
    """A filter that is missing or that DuckDB refuses is an error, never TRUE."""
    with pytest.raises(FilterUnavailable):
        apply(destination, [dict.fromkeys(COLUMNS)])


def test_each_of_a_thousand_readers_gets_exactly_its_own() -> None:
    """With a million thresholds the group writes an event once; readers at random and at both ends get their own."""
    random.seed(7)
    count = 1_000_000
    thresholds = np.random.default_rng(7).random(count) * 100
    prices = [*(random.random() * 110 for _ in range(300)), float(thresholds.min()), float(thresholds.max()), None]
    table = _virtual_table(thresholds)
    matches = match(table, Events({"price": ("DOUBLE", prices)}))
    assert len(matches.event) == len(np.unique(matches.event)), "one record an event"
    assert {n for n, p in enumerate(prices) if p is not None and p > thresholds.min()} == set(matches.event.tolist())

    chosen = [*random.sample(range(count), 998), int(thresholds.argmin()), int(thresholds.argmax())]
    plan = GroupPlan("g_1", "s", "", (compare("price", ">", "DOUBLE", 0),))
    filters = VirtualFilters()
    readers = []
    for number in chosen:
        where = filter_sql(plan, ConstantRow((DOUBLE,), (float(thresholds[number]),)))
        destination = place(where, "price", {"price": "DOUBLE"})
        query = ContinuousQuery(cq=str(number), group="g_1", signature="", destination=destination)
        readers.append(QueryReader(place_of(query), apply=filters.of(destination)))
    feed = Feed(readers)
    feed.add(_record(offset, event, prices[event]) for offset, event in enumerate(sorted(matches.event.tolist())))
    found: dict[str, list[int]] = {str(number): [] for number in chosen}
    while (result := feed.take()) is not None:
        assert isinstance(result, Match)
        found[result.cq].append(result.offset)
    assert found == {
        str(number): [n for n, price in enumerate(prices) if price is not None and price > thresholds[number]]
        for number in chosen
    }


def _virtual_table(thresholds: np.ndarray) -> Snapshot:
    """The table of `price > :c0` as a worker holds it, made without a million entries in between."""
    plan = GroupPlan("g_1", "s", "", (compare("price", ">", "DOUBLE", 0),))
    shape = TableShape.of(plan, (DOUBLE,), virtual=True)
    zeros = np.zeros(thresholds.size, np.int32)
    ids = np.arange(thresholds.size, dtype=np.uint64)
    rows = ConstantRows(ids, zeros.view(np.uint32), zeros, zeros, zeros, None, None, (pa.array(thresholds),))
    table = ConstantTable(shape, (ConstantPart(shape, rows),))
    select = SelectList("s_1", (SelectItem("price", Column("price", "DOUBLE")),))
    return Snapshot((table,), (select,), np.zeros(1, np.int32), np.array([MODES.index("virtual")], np.int8))


def _record(offset: int, event: int, price: float | None) -> ResultRecord:
    source = {"ce_source": "s", "ce_id": f"s/0/{event}"}
    headers = {"ce_type": "cq.match", **source, "ce_time": "2026-11-21T10:00:00Z"}
    return ResultRecord(
        topic="t", partition=0, offset=offset, key=b"g_1", value=json.dumps({"price": price}).encode(), headers=headers
    )


def test_what_was_written_during_a_pause_is_passed_over() -> None:
    """A virtual CQ's reader keeps its pauses by the time of writing: from PAUSE on, up to RESUME."""
    destination = place("price > 0", "price", {"price": "DOUBLE"})
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    pauses = [Pause(noon + timedelta(minutes=1), noon + timedelta(minutes=2)), Pause(noon + timedelta(minutes=4))]
    query = ContinuousQuery(cq="a", group="g_1", signature="", destination=destination, pauses=pauses)
    feed = Feed([QueryReader(place_of(query), apply=VirtualFilters().of(destination))])
    feed.add(
        msgspec.structs.replace(_record(n, n, 1.0), written_at=noon + timedelta(seconds=30 * n)) for n in range(10)
    )
    seen = []
    while (result := feed.take()) is not None:
        assert isinstance(result, Match)
        seen.append(result.offset)
    assert [0, 1, 4, 5, 6, 7] == seen
