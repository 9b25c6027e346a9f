"""Destinations of queries over frames: equal CQs share a destination, and its entries say where frames begin."""

from __future__ import annotations

import pytest

from gateway.commands.answers import trigger_result
from gateway.model.membership import Membership
from gateway.model.records import Cq, Destination, EdgeSpec, feed_of
from gateway.model.table_entries import rows_of, table_entries
from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from grouping.compiler.compiler import compile_draft, compile_select
from grouping.compiler.reader_sql import check_virtual
from grouping.model.errors import InputError
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.statements.cq_text import CqText
from grouping.store.constant_table import FRAMES, Segment, unpacked_since
from tests.quotes import ASSETS, catalog

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


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"SELECT price FROM trades QUALIFY price > {_LAG}", "has window functions"),
        ("SELECT price FROM trades WHERE price > 5 EMIT ON ENTER BY symbol", "EMIT needs the event before"),
        ("SELECT t.price FROM trades t JOIN assets a ON a.symbol = t.symbol", "joins tables"),
    ],
)
def test_virtual_is_refused_for_its_true_cause(text: str, cause: str) -> None:
    """Readers of a virtual destination get single events, without the events before and without tables."""
    with pytest.raises(InputError, match="cannot be published VIRTUAL") as refused:
        check_virtual(compile_select(text, catalog(ASSETS)))
    assert cause in refused.value.detail
    assert "Publish SHARED or DEDICATED." == refused.value.hint


_GROWN = "repeat(repeat(repeat(name, 1000), 1000), 1000)"
_MAX = "max({}) OVER (PARTITION BY symbol ORDER BY _offset ROWS 2 PRECEDING)"


@pytest.mark.parametrize(
    ("argument", "other"),
    [
        ("CASE WHEN volume > 1 THEN 2147483647 ELSE 0 END", "CASE WHEN volume > 1 THEN '2147483647' ELSE 0 END"),
        ("CASE WHEN volume > 1 THEN DATE '2026-01-01' END", "CASE WHEN volume > 1 THEN '2026-01-01' END"),
    ],
)
def test_types_of_literals_within_frames_make_another_group(argument: str, other: str) -> None:
    """The signatures are one text, in which a literal has no type."""
    texts = [f"SELECT price FROM trades QUALIFY {_MAX.format(each)} IS NOT NULL" for each in (argument, other)]
    assert 1 == len({compile_draft(text, catalog()).signature for text in texts})
    assert 2 == len({compile_select(text, catalog()).plan.group_id for text in texts})


@pytest.mark.parametrize(
    "value",
    [
        _MAX.format("volume"),
        _MAX.format("volume").replace("max", "sum").replace("(volume)", "(volume + 1)"),
        _LAG.replace("price", "name"),
        _LAG.replace("price", "abs(price)"),
    ],
)
def test_a_value_that_may_fail_or_be_slow_has_a_computation_of_its_own(value: str) -> None:
    """A fault in the value stops the queries that have the value; cheap values of columns are shared by all."""
    cheap = compile_select(f"SELECT price FROM trades QUALIFY {_LAG} > 1", catalog())
    also_cheap = compile_select(
        "SELECT count(*) OVER (PARTITION BY symbol ORDER BY _offset ROWS 2 PRECEDING) AS n FROM trades", catalog()
    )
    apart = compile_select(f"SELECT price FROM trades QUALIFY {value} IS NOT NULL", catalog())
    assert cheap.plan.computation_id == also_cheap.plan.computation_id != apart.plan.computation_id
    assert (
        apart.plan.computation_id == compile_select(f"SELECT {value} AS v FROM trades", catalog()).plan.computation_id
    )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {_LAG.replace('price', _GROWN)} AS x FROM trades",
        f"SELECT {_MAX.format(_GROWN)} AS x FROM trades",
        f"SELECT {_LAG} AS x FROM trades WHERE price > length({_GROWN})",
    ],
)
def test_texts_that_grow_are_refused_within_frames(text: str) -> None:
    """As in a query without window functions."""
    with pytest.raises(InputError, match="can make a value"):
        compile_select(text, catalog())
