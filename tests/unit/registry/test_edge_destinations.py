"""Destinations of edges: each CQ has its own, and its entries say where the edges begin."""

from __future__ import annotations

from itertools import combinations, product

import msgspec
import pytest

from gateway.commands.answers import trigger_result
from gateway.kafka import OutgoingRecord
from gateway.model.inventory import Inventory
from gateway.model.membership import Membership
from gateway.model.records import CatalogCq, Cq, Destination, EdgeSpec, feed_of, joined_with
from gateway.model.table_entries import rows_of, table_entries
from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from gateway.model.unit import CqKey, Unit
from gateway.model.unit_outcome import segments
from gateway.state.catalog_records import cq_gone, cq_record, with_destinations
from grouping.access.explain import explain
from grouping.compiler.compiler import compile_select
from grouping.compiler.prepared import Preparer
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.group import DestinationIds
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import DigestClause
from grouping.model.trigger import ChangeBased
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import CqText
from grouping.store.constant_table import unpacked_since
from tests.fuzz.surfaces import outcome
from tests.quotes import TRADES, catalog

_SINCE = (7, 0, 2**40)


def _destination(trigger: TriggerSpec = CHANGE_BASED, edges: EdgeSpec | None = None) -> Destination:
    name = DestinationId("d_" + "0f" * 12)
    ids = StreamId("s_1"), GroupId("g_1"), SelectId("s1")
    return Destination(name, *ids, '["BIGINT",1]', "shared", 0, trigger, edges=edges)


def _unit() -> Unit:
    unit = Unit(Inventory())
    unit.sources.add_stream(Stream(StreamId("s_1"), "s", (), "t", "json", {"0": 0}, ""))
    return unit


def test_ids_differ_by_edge_cq_and_beginning() -> None:
    """Equal queries of two CQs, of two subscribers, or begun twice have no destination and no store in common."""
    specs = [
        EdgeSpec.of("enter", "alice", "Hot", 5),
        EdgeSpec.of("exit", "alice", "hot", 5),
        EdgeSpec.of("enter", "alice", "warm", 5),
        EdgeSpec.of("enter", "bob", "hot", 5),
        EdgeSpec.of("enter", "alice", "hot", 6),
    ]
    assert specs[0] == EdgeSpec.of("enter", "alice", "hot", 5)
    ids = [
        DestinationIds(GroupId("g_1"), SelectId("s1"), ChangeBased(), None, DigestClause(), None, edges=spec.id_text)
        for spec in specs
    ]
    assert all(one.of("[]") != other.of("[]") for one, other in combinations(ids, 2))
    stores = [feed_of(_destination(TriggerSpec(60_000), spec)) for spec in (*specs, None)]
    assert len({store.destination_id for store in stores}) == len(stores)
    assert [store.edges for store in stores] == [*specs, None]


def test_where_edges_begin_is_no_part_of_an_id() -> None:
    """The ends of the topic are asked for after the destination is known; digests of other ticks read one store."""
    spec = EdgeSpec.of("both", "alice", "hot", 5)
    later = msgspec.structs.replace(spec, since=_SINCE)
    assert spec.id_text == later.id_text
    hourly, daily = (feed_of(_destination(TriggerSpec(every), later)) for every in (3_600_000, 86_400_000))
    assert hourly == daily
    assert hourly.edges == later


def test_entries_have_the_edge_and_its_beginning() -> None:
    """Each row of the constant table says which edges count, and from which offsets on."""
    membership = Membership(_destination(edges=EdgeSpec("exit", "0f", _SINCE)), 3, {"5,9": 1, "20,": 1})
    entries = list(rows_of(membership.destination, table_entries(membership, None)))
    assert [("exit", _SINCE, 5, 9), ("exit", _SINCE, 20, None)] == [
        (entry.block.edge, entry.since, entry.start_ms, entry.expire_ms) for entry in entries
    ]
    plain = Membership(_destination(), 3, {",": 1})
    [entry] = rows_of(plain.destination, table_entries(plain, None))
    assert ("", ()) == (entry.block.edge, entry.since)


@pytest.mark.parametrize("trigger", [CHANGE_BASED, TriggerSpec(60_000)])
def test_edges_that_begin_later_replace_their_entries(trigger: TriggerSpec) -> None:
    """The next version of the table has the same destination, or its store, with the later beginning."""
    unit = _unit()
    destination = _destination(trigger, EdgeSpec("enter", "0f", (5,)))
    for joined in joined_with(destination):
        unit.memberships[joined.destination_id] = Membership(joined, 0, {",": 1})
    moved = unit.move_edges(destination.destination_id, _SINCE)
    assert moved is not None
    assert moved.edges == EdgeSpec("enter", "0f", _SINCE)
    feed, segment = feed_of(moved).destination_id, segments(unit)[StreamId("s_1")]
    assert [bytes.fromhex(feed[2:])] == segment.removed.to_pylist()
    [(block, table)] = segment.added.items()
    assert ("enter", _SINCE) == (block.edge, unpacked_since(table["since"][0].as_py()))
    again = Unit(unit.inventory)
    again.memberships = unit.memberships
    assert again.move_edges(destination.destination_id, _SINCE) is None
    assert not segments(again)


def test_the_record_of_the_catalog_has_the_later_beginning() -> None:
    """Other records of the unit stay as they are."""
    old = _destination(edges=EdgeSpec("enter", "0f", (5,)))
    new = msgspec.structs.replace(old, edges=EdgeSpec("enter", "0f", _SINCE))
    cq = Cq("hot", CqText.cut("x"), old.destination_id, 0, 0)
    key, value = cq_record(CqKey.of("alice", "hot"), cq, old)
    records = [
        OutgoingRecord("catalog", key, value),
        OutgoingRecord("replies", key, value),
        OutgoingRecord("catalog", *cq_gone(CqKey.of("alice", "cold"))),
    ]
    first, *rest = with_destinations(records, "catalog", {old.destination_id: new})
    assert rest == records[1:]
    assert msgspec.json.decode(first.value or b"", type=CatalogCq).destination == new
    assert records == list(with_destinations(records, "catalog", {}))


@pytest.mark.parametrize(("clause", "emit"), [("ENTER", "enter"), ("EXIT", "exit"), ("ENTER OR EXIT", "enter or exit")])
def test_a_reply_tells_the_edges_and_their_key(clause: str, emit: str) -> None:
    """`trigger.emit` and `trigger.by` are the clause, with the names as they are declared."""
    query = compile_select(f"SELECT price FROM trades EMIT ON {clause} BY NAME, symbol", catalog())
    destination = _destination(edges=EdgeSpec(query.edge, "0f"))
    cq = Cq("hot", CqText.cut("x"), destination.destination_id, 0, 0)
    result = trigger_result(destination, cq, 0, query.plan.before)
    assert {"kind": "change", "emit": emit, "by": ["name", "symbol"]} == result
    assert {"kind": "change"} == trigger_result(_destination(), cq, 0)


def test_texts_of_one_template_have_their_edges() -> None:
    """The fast path of CREATE CQ gives the same query as the full compilation."""
    preparer = Preparer(catalog())
    for threshold in range(4):
        text = f"CREATE CQ q{threshold} AS SELECT price FROM trades WHERE price > {threshold} EMIT ON EXIT BY symbol"
        command, query = preparer.create(CqText.cut(text))
        select = f"SELECT price FROM trades WHERE price > {threshold} EMIT ON EXIT BY symbol"
        assert compile_select(select, catalog()) == query
        assert ("exit", f"q{threshold}") == (query.edge, command.name)


@pytest.mark.parametrize("column", ["price", "volume", "at"])
@pytest.mark.parametrize("ops", [(">", "<"), ("<=", ">="), ("<", ">=")], ids=" ".join)
def test_texts_of_one_template_with_until(column: str, ops: tuple[str, str]) -> None:
    """The fast path and the full compilation give the same query, or the same refusal of overlapping constants."""
    times = ("'2026-01-01'", "'2026-01-02T00:00:00Z'", "'2026-01-03T00:00:00.5Z'")
    values = times if column == "at" else ("-1", "5", "5.0", "5.5", "2e1", "NULL", "9223372036854775807")
    preparer, refused, groups = Preparer(catalog()), set(), set()
    for begin, end in product(values, values):
        where = f"{column} {ops[0]} {begin} AND symbol = 'INTC'"
        text = f"SELECT price FROM trades WHERE {where} EMIT ON EXIT BY symbol UNTIL {column} {ops[1]} {end}"
        whole = outcome(Preparer(catalog()), f"CREATE CQ q AS {text}")
        assert whole == outcome(preparer, f"CREATE CQ q AS {text}"), text
        try:
            groups.add(compile_select(text, catalog()).plan.group_id)
        except InputError as error:
            refused.add(error.code)
    assert {"unsupported-query"} == refused
    assert len(groups) == 1


@pytest.mark.parametrize(
    "query", ["volume > 5 {} UNTIL volume < 7", "volume >= 5 {} UNTIL volume <= 5", "volume < 5 {} UNTIL volume > 3"]
)
def test_bounds_that_are_true_together_are_refused(query: str) -> None:
    """An event between the two constants would make a key enter and leave."""
    with pytest.raises(InputError, match="TRUE together with WHERE") as refused:
        compile_select(f"SELECT price FROM trades WHERE {query.format('EMIT ON ENTER BY symbol')}", catalog())
    assert "unsupported-query" == refused.value.code
    assert refused.value.hint


def test_until_is_explained() -> None:
    """EXPLAIN shows the second condition and its constant."""
    query = compile_select(
        "SELECT price FROM trades WHERE price > 9 EMIT ON EXIT BY symbol UNTIL price <= 8", catalog()
    )
    lines = explain(query, TRADES)
    assert "price <= :c1" == lines["plan"]["until"]
    assert {"slot": "c1", "in": "price <= :c1", "decided_by": "until"} in lines["plan"]["tree"]["constants"]
    assert "UNTIL price <= :c1" in lines["text"]


@pytest.mark.parametrize(("lasting", "decided"), [("", "edges"), ("FOR '5 minutes'", "stays")])
def test_conditions_of_a_computation_are_explained(lasting: str, decided: str) -> None:
    """EXPLAIN shows each condition of WHERE and UNTIL that the computation decides, with its constants."""
    query = compile_select(
        f"SELECT price FROM trades WHERE name = 'a' EMIT ON EXIT BY symbol {lasting} UNTIL name = 'b'", catalog()
    )
    plan = explain(query, TRADES)["plan"]
    [computation] = plan["tree"]["inputs"]
    conditions = ["name = 'a'", "name = 'b'"]
    assert [{"in": each, "decided_by": decided} for each in conditions] == computation["constants"]
    assert "name = ?" == plan["until"]


@pytest.mark.parametrize(
    ("trigger", "until"), [(CHANGE_BASED, [(), _SINCE]), (TriggerSpec(60_000), [()])], ids=["matches", "digests"]
)
def test_a_replaced_cq_counts_up_to_where_its_edges_begin(trigger: TriggerSpec, until: list[tuple[int, ...]]) -> None:
    """An event that is not evaluated yet counts for the old form where it lies below the new beginning."""
    unit, key = _unit(), CqKey.of("alice", "hot")
    old, parts = _destination(trigger), (GroupPlan(GroupId("g_1"), StreamId("s_1"), "", ()), SelectList("s1", ()))  # type: ignore[arg-type]
    new = msgspec.structs.replace(
        _destination(edges=EdgeSpec("enter", "0f", _SINCE)), destination_id=DestinationId("d_" + "ab" * 12)
    )
    unit.cqs[key] = None
    unit.memberships |= dict.fromkeys(joined.destination_id for each in (old, new) for joined in joined_with(each))
    unit.put(key, Cq("hot", CqText.cut("x"), old.destination_id, 0, 0), old, *parts)
    unit.begun_edges.add(new.destination_id)
    unit.put(key, Cq("hot", CqText.cut("y"), new.destination_id, 0, 0), new, *parts)
    [segment] = segments(unit).values()
    assert sorted(until) == sorted({block.until for block in segment.added})
    assert unit.left_until.get(key, ()) == until[-1]
