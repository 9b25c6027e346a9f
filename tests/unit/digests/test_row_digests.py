"""Digests of a table's rows, beside a fold of one record at a time; and the ticks at which they are made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.membership import Membership
from gateway.model.records import Destination, EdgeSpec, TimedNote, feed_of
from gateway.model.table_entries import table_entries
from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from gateway.registry.table_changes import check_row_ticks
from gateway.timers import schedule
from gateway.timers.digest_orders import table_cut
from gateway.timers.pending_index import store_key
from grouping.compiler.compiler import compile_select
from grouping.digests.cursor import Cursor
from grouping.digests.digest import DigestTimes, column_type, parts_of
from grouping.digests.orders import DigestOrder, MadeDigest, Order
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.model.group import canonical_constants
from grouping.model.ids import DestinationId, StreamId
from grouping.model.query import PackedDigest
from grouping.model.trigger import ChangeBased, CronBased
from grouping.plan.group import CompiledQuery
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from grouping.store.work_units import SLOW, unit_of
from spark_jobs.engine.constants.constant_cache import ConstantTables
from spark_jobs.engine.expressions.expression import compile_expression
from spark_jobs.engine.expressions.functions import FUNCTIONS
from spark_jobs.engine.expressions.types import Operand
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.unit_selection import UnitSelection
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.pipeline import TABLE_ROWS, end_records, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget, check_cpu
from spark_jobs.engine.stages.row_digests import CutQueries, RowMatches, left_out, row_digests
from spark_jobs.engine.stages.table_rows import TableRows
from spark_jobs.engine.stages.task import Task
from tests.stack.changes.table_oracle import Row, TableRecord
from tests.unit.matching.event_batches import batch
from tests.unit.states.test_table_changes import RECORDS, STREAM, TABLE

_SETTINGS = Settings(prefix="cq.")
_TICK = 60_000
_ALL: PackedDigest = ("all", (), 0, False)


class _Query(NamedTuple):
    """A query with its digest clause, and the same in Python."""

    select: str
    digest: PackedDigest
    shown: Callable[[list[Row]], list[Any]]
    """Returns the digest's rows from the rows of the table, in their order."""
    matches: Callable[[Row], bool]


def _above(bound: float) -> Callable[[Row], bool]:
    return lambda row: row["p"] is not None and row["p"] > bound


def _k(rows: list[Row]) -> list[Any]:
    return [{"k": row["k"]} for row in rows]


def _counts(rows: list[Row]) -> list[Any]:
    named = sorted({row["s"] for row in rows}, key=lambda name: (name is None, name))
    return [{"s": name, "n": sum(row["s"] == name for row in rows)} for name in named]


_QUERIES = (
    _Query("SELECT k FROM profiles WHERE p > 1", _ALL, _k, _above(1)),
    _Query("SELECT k FROM profiles WHERE p > 0.2", _ALL, _k, _above(0.2)),
    _Query("SELECT k FROM profiles WHERE p > 1", ("count", (), 0, True), lambda rows: [], _above(1)),
    _Query("SELECT * FROM profiles", _ALL, lambda rows: rows, lambda row: True),
    _Query(
        "SELECT p FROM profiles WHERE p > 0.2",
        ("top", ("p",), 2, False),
        lambda rows: [{"p": row["p"]} for row in sorted(rows, key=lambda row: -row["p"])[:2]],
        _above(0.2),
    ),
    _Query("SELECT s, count(*) AS n FROM profiles GROUP BY s", _ALL, _counts, lambda row: True),
    _Query(
        "SELECT s, count(*) AS n FROM profiles WHERE p > 0.2 GROUP BY s HAVING count(*) > 1",
        _ALL,
        lambda rows: [each for each in _counts(rows) if each["n"] > 1],
        _above(0.2),
    ),
    _Query("SELECT count(*) AS n FROM profiles", ("all", (), 0, True), lambda rows: [{"n": len(rows)}], lambda _: True),
)


@cache
def _compiled(select: str) -> CompiledQuery:
    return compile_select(select, Catalog(tables=[TABLE]))


def _destination(number: int, queries: Sequence[_Query] = _QUERIES) -> Destination:
    query = _compiled(queries[number].select)
    plan = query.plan
    return Destination(
        DestinationId(f"d_{number:024x}"),
        plan.stream_id,
        plan.group_id,
        query.select.select_id,
        canonical_constants(query.row),
        "shared",
        0,
        TriggerSpec(_TICK),
        queries[number].digest,
        slots=None if plan.kept is None else plan.kept.slots,
    )


def _order(ends: dict[str, int], queries: Sequence[_Query] = _QUERIES) -> Order:
    """Return the order of a digest for each query."""
    destinations = [_destination(number, queries) for number in range(len(queries))]
    compiled = [_compiled(each.select) for each in queries]
    digests = tuple(
        DigestOrder(
            each.destination_id, 0, "cq.results", 0, each.digest, str(column_type(each.clause, query.select)), _TICK, 0,
            Cursor(), (), store_key(feed_of(each).destination_id), None, 0,
            (each.group_id, each.select_id, each.constants),
        )
        for each, query in zip(destinations, compiled, strict=True)
    )  # fmt: skip
    cut = table_cut(STREAM, ends, destinations, _once(compiled, "plan"), _once(compiled, "select"))
    order = Order(STREAM.stream_id, "profiles", {}, _TICK, digests, cut)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(order), type=Order)


def _once(queries: Sequence[CompiledQuery], part: str) -> list[bytes]:
    return list({msgspec.json.encode(getattr(query, part)): None for query in queries})


def _guard(budget: CpuBudget, quarantine: Callable[[Sequence[str]], None] = lambda _: None) -> UnitGuard:
    letters = NotEvaluatedLetters(STREAM, _SETTINGS)
    return UnitGuard(UnitSelection(quarantine=quarantine), letters, set(), budget)


def _made(order: Order, parts: Sequence[TableRows], guard: UnitGuard | None = None, **reasons: str) -> list[MadeDigest]:
    """Return the digests of an order; the aggregates are made under a guard."""
    assert order.table is not None
    constants, matches = ConstantTables(STREAM.stream_id).at(TableVersion(1, 1), CutQueries(order.table)), RowMatches()
    for rows in parts:
        every, events = _guard(CpuBudget(math.inf)), rows.events()
        task = Task.of(STREAM, _SETTINGS, TableVersion(0, 0), every, constants, {})
        for output in (*evaluate(task, events, TABLE_ROWS), *end_records(task)):
            assert set(output["topic"].to_pylist()) == {_SETTINGS.topics.pending}
            for body in output["value"].to_pylist():
                matches.add(body)
    matches.reasons, made = reasons, list[MadeDigest]()

    def write(each: MadeDigest) -> Iterator[Any]:
        made.append(each)
        yield from ()

    guard = guard or _guard(CpuBudget(math.inf))
    with guard.batch(0):
        assert [*row_digests(order, matches, write, guard.run)] == []
    return made


def _folded(records: Sequence[TableRecord]) -> list[Row]:
    """Return the rows in the order of the records that set them."""
    rows: dict[str, Row] = {}
    for record_key, value in records:
        row = None if value is None else json.loads(value)
        key = record_key if row is None else row.get("k")
        if key is not None:
            rows.pop(key, None)
        if key is not None and row is not None:
            rows[key] = row
    return list(rows.values())


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(RECORDS, min_size=1, max_size=2), size=st.integers(1, 7))
def test_a_digest_has_the_rows_as_of_the_cut(parts: list[list[TableRecord]], size: int) -> None:
    """Whatever the batches, the digests of all clauses are those of a fold; a key in two partitions is two rows."""
    partitions, expected = [], list[Row]()
    for partition, records in enumerate(parts):
        rows = TableRows(STREAM, partition)
        for first in range(0, len(records), size):
            some = records[first : first + size]
            keys = [key and key.encode() for key, _ in some]
            source = batch([value for _, value in some], keys, [partition] * len(some), first)
            for events, _ in decode_stream(source, STREAM, _SETTINGS):
                rows.fold(events)
        partitions.append(rows)
        expected += _folded(records)
    made = _made(_order({str(number): len(records) for number, records in enumerate(parts)}), partitions)
    assert [each.order.destination_id for each in made] != [] and len(made) == len(_QUERIES)
    by_id = {each.order.destination_id: each for each in made}
    for number, query in enumerate(_QUERIES):
        digest, outcome = by_id[_destination(number).destination_id][1:3]
        wanted = [row for row in expected if query.matches(row)]
        if not query.shown(wanted) and not query.digest[3]:
            assert (digest, outcome.cursor) == (None, None), query
            continue
        assert digest is not None and outcome.cursor is not None and outcome.cursor.tick_ms == _TICK
        [part] = parts_of(digest.rows, digest.matches, DigestTimes(_TICK, 0, _TICK))
        body = json.loads(part)
        assert (body["count"], body["rows"]) == (len(wanted), query.shown(wanted)), query


def test_a_row_of_any_time_is_in_the_digest() -> None:
    """Rows have the times of their records, which publishers set; the cut alone decides."""
    rows = TableRows(STREAM, 0)
    source = batch([b'{"k": "a", "p": 9.0}'], [None], [0], 0)
    times = pa.array([10**15], source["timestamp"].type)
    late = source.set_column(source.schema.get_field_index("timestamp"), "timestamp", times)
    for events, _ in decode_stream(late, STREAM, _SETTINGS):
        rows.fold(events)
    digest = _made(_order({"0": 1}), [rows])[0].digest
    assert digest is not None and [json.loads(row.body) for row in digest.rows] == [{"k": "a"}]


def _rows_of(*bodies: dict[str, Any]) -> TableRows:
    rows = TableRows(STREAM, 0)
    source = batch([json.dumps(each).encode() for each in bodies], [None] * len(bodies), [0] * len(bodies), 0)
    for events, _ in decode_stream(source, STREAM, _SETTINGS):
        rows.fold(events)
    return rows


def test_a_dead_letter_names_the_fault() -> None:
    """A row that no record holds is `result-too-large`; digests over a table that cannot be read are not evaluated."""
    widened = _Query(
        "SELECT s, s AS t, s AS u, s AS v, s AS w, s AS x, count(*) AS n FROM profiles GROUP BY s",
        _ALL,
        _counts,
        lambda row: True,
    )
    order = _order({"0": 2}, [widened])
    [shortened] = _made(order, [_rows_of({"k": "a", "s": "x" * 200_000}, {"k": "b", "s": "y"})])
    assert shortened.fault is not None and shortened.fault.code == "result-too-large"
    assert shortened.digest is not None and [json.loads(row.body)["s"] for row in shortened.digest.rows] == ["y"]
    [unread] = left_out(order, "The table's topic cannot be read.")
    assert unread.fault is not None and unread.fault.code == "not-evaluated"
    assert unread.outcome.cursor is not None and unread.outcome.cursor.tick_ms == _TICK, "it is not tried again"


@pytest.mark.parametrize(
    "costly",
    [
        "SELECT s, count(*) AS n FROM profiles GROUP BY s HAVING soundex(max(k)) <> 'x'",
        "SELECT s, soundex(max(k)) AS n FROM profiles GROUP BY s",
    ],
    ids=["HAVING", "SELECT"],
)
def test_a_costly_query_is_left_out_alone(monkeypatch: pytest.MonkeyPatch, costly: str) -> None:
    """HAVING and the SELECT list have the CPU time of a work unit; the digests of other queries come."""
    now, quarantined = [0.0], list[str]()

    def planted(columns: list[pl.Series]) -> pl.Series:
        now[0] += 5.0
        check_cpu()
        return columns[0]

    def soundex(args: list[Operand], _: object) -> Operand:
        return Operand(pl.map_batches([args[0].expr], planted, return_dtype=pl.String), args[0].type)

    queries = [_Query(costly, _ALL, _counts, lambda row: True), _QUERIES[5], _QUERIES[0]]
    query, order, rows = _compiled(costly), _order({"0": 2}, queries), _rows_of({"k": "a", "p": 2.0}, {"k": "b"})
    unit = unit_of(query.plan.group_id, query.select.select_id)
    compile_expression.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(FUNCTIONS, "soundex", soundex)
        stopped = _made(order, [rows], _guard(CpuBudget(1.0, clock=lambda: now[0]), quarantined.extend))
    compile_expression.cache_clear()
    assert quarantined == [unit]
    for made in (stopped, _made(order, [rows], **{unit: SLOW})):
        by_id = {each.order.destination_id: each for each in made}
        left, counted, single = [by_id[_destination(number, queries).destination_id] for number in range(3)]
        assert left.digest is None and left.fault is not None and left.fault.code == "not-evaluated"
        assert SLOW in left.fault.detail and left.outcome.cursor is not None
        assert counted.fault is None and counted.digest is not None and counted.digest.matches == 2
        assert single.fault is None and single.digest is not None and len(single.digest.rows) == 1


def _membership(windows: dict[str, int], *, clause: PackedDigest = _ALL, edges: EdgeSpec | None = None) -> Membership:
    destination = msgspec.structs.replace(_destination(0), digest=clause, edges=edges)
    return Membership(destination, 0, windows, 0, TimedNote(born_ms=1, from_ms=1))


def test_each_tick_has_a_digest_and_expire_is_the_last_tick() -> None:
    """Rows need no event to be due, and there is a last digest at EXPIRE, also after ticks without a gateway."""
    endless, ending = _membership({",": 1}), _membership({f",{150_000}": 1})
    assert [schedule.following_tick(endless, tick, None, tick) for tick in (60_000, 120_000)] == [120_000, 180_000]
    assert [schedule.following_tick(ending, tick, None, tick) for tick in (60_000, 120_000, 150_000)] == [
        120_000,
        150_000,
        None,
    ]
    assert schedule.tick_to_fire(ending, 120_000, schedule.MissedTicks(70_000, 400_000)) == 150_000
    behind = schedule.missed_by(endless, 120_000, None, 310_000)
    assert schedule.tick_to_fire(endless, 120_000, behind) == 300_000, "the evaluator was away"
    assert schedule.digest_from(endless, 300_000, behind, 60_000) == 60_000
    assert schedule.is_tick(ending, 150_000) and not schedule.is_tick(endless, 150_000)
    on_a_tick = _membership({",120000": 1})
    assert schedule.tick_after(on_a_tick, 60_000) == 120_000 and schedule.tick_after(on_a_tick, 120_000) is None
    hourly = msgspec.structs.replace(ending.destination, trigger=TriggerSpec(3_600_000, 170_000))
    before_anchor = msgspec.structs.replace(
        ending, destination=hourly, timed=TimedNote(born_ms=140_000, from_ms=140_000)
    )
    assert schedule.following_tick(before_anchor, None, None, 140_000) == 150_000, (
        "EVERY counts from shortly after the reply"
    )
    edges = _membership({",150000": 1}, edges=EdgeSpec("enter", "0f"))
    assert schedule.following_tick(edges, 60_000, None, 60_000) is None
    assert schedule.tick_after(edges, 120_000) is None


def test_digests_of_rows_have_no_entry_in_the_constant_table() -> None:
    """Micro-batches meet no constants for them: changes of the table are no matches."""
    membership = _membership({",": 1})
    assert membership.destination.of_rows and feed_of(membership.destination).of_rows
    assert table_entries(membership, None).windows == []
    assert table_entries(_membership({",": 1}, edges=EdgeSpec("enter", "0f")), None).windows


def test_rows_need_ticks_and_have_no_past() -> None:
    """Without EVERY there is no moment of which the rows could be; OVER LAST would need the rows of earlier moments."""
    changes = STREAM.stream_id
    check_row_ticks(changes, "", TriggerSpec(_TICK).trigger)
    check_row_ticks(changes, "", CronBased("0 8 * * *", "UTC"))
    check_row_ticks(changes, "changes", ChangeBased())
    check_row_ticks(StreamId("s_1"), "", CHANGE_BASED.trigger)
    for trigger, detail in (
        (ChangeBased(), "without a stream"),
        (TriggerSpec(_TICK, over_ms=3 * _TICK).trigger, "OVER"),
    ):
        with pytest.raises(InputError, match=detail) as refused:
            check_row_ticks(changes, "", trigger)
        assert refused.value.code == "unsupported-query"
