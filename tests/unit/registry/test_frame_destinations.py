"""Destinations of queries over frames: equal CQs share a destination, and its entries say where frames begin."""

from __future__ import annotations

from gateway.commands.answers import trigger_result
from gateway.model.membership import Membership
from gateway.model.records import CHANGE_BASED, Cq, Destination, EdgeSpec, TriggerSpec, feed_of
from gateway.model.table_entries import rows_of, table_entries
from grouping.compiler.compiler import compile_select
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.statements.cq_text import CqText
from grouping.store.constant_table import FRAMES, Segment, unpacked_since
from tests.quotes import catalog

_SINCE = (7, 0, 2**40)
_LAG = "lag(price) OVER (PARTITION BY symbol ORDER BY _offset)"


def _destination(trigger: TriggerSpec = CHANGE_BASED, edges: EdgeSpec | None = None) -> Destination:
    ids = StreamId("s_1"), GroupId("g_1"), SelectId("s1")
    return Destination(DestinationId("d_" + "0f" * 12), *ids, '["BIGINT",1]', "shared", 0, trigger, edges=edges)


def test_the_begin_of_frames_is_no_part_of_an_id() -> None:
    """Equal CQs have one destination, and one store of matches, whenever each of them was created."""
    plain, framed = _destination(TriggerSpec(60_000)), _destination(TriggerSpec(60_000), EdgeSpec("", "", _SINCE))
    assert EdgeSpec("", "", _SINCE).id_text == ""
    assert feed_of(plain).destination_id == feed_of(framed).destination_id


def test_entries_say_where_frames_begin() -> None:
    """The rows of the constant table have the begin through a segment's bytes, and no edge."""
    membership = Membership(_destination(edges=EdgeSpec("", "", _SINCE)), 3, {",": 1})
    entries = list(rows_of(membership.destination, table_entries(membership, None)))
    assert [(FRAMES, _SINCE)] == [(entry.block.edge, entry.since) for entry in entries]
    [(block, table)] = Segment.decode(Segment.of((), entries).encode())[0].added.items()
    assert (FRAMES, _SINCE) == (block.edge, unpacked_since(table["since"][0].as_py()))


def test_a_reply_tells_no_edge() -> None:
    """`trigger` is that of any CQ."""
    query = compile_select(f"SELECT price, {_LAG} AS was FROM trades", catalog())
    destination = _destination(edges=EdgeSpec(query.edge, ""))
    cq = Cq("rising", CqText.cut("x"), destination.destination_id, 0, 0)
    assert {"kind": "change"} == trigger_result(destination, cq, 0, query.plan.before)


def test_constants_above_frames_share_a_group() -> None:
    """Queries that differ in constants of QUALIFY, or of equalities in WHERE, are one group over one computation."""
    text = f"SELECT price FROM trades WHERE name = 'a' AND volume > 5 QUALIFY price > {_LAG} * 1.5"
    first = compile_select(text, catalog())
    same = compile_select(text.replace("1.5", "3").replace("'a'", "'b'"), catalog())
    other = compile_select(text.replace("volume > 5", "volume > 6"), catalog())
    assert first.plan == same.plan
    assert first.plan.computation_id != other.plan.computation_id
    assert first.plan.signature == other.plan.signature
    assert first.plan.group_id != other.plan.group_id
