"""Queries with FOR: which of them share a group and a computation, and how they are explained."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grouping.access.explain import explain
from grouping.compiler.compiler import compile_select
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.plan.lasting import Height
from tests.quotes import ASSETS, TRADES, catalog

_TEXT = (
    "SELECT price FROM trades WHERE symbol = 'a' AND price > 5 AND name = 'b' EMIT ON ENTER BY symbol FOR '5 minutes'"
)


def test_constants_of_the_comparison_and_of_the_key_share_a_group() -> None:
    """The constants of one comparison and of conditions over the key are lifted; all else is the computation's."""
    first = compile_select(_TEXT, catalog())
    same = compile_select(
        _TEXT.replace("5 AND", "7.5 AND").replace("'a'", "'c'").replace("5 minutes", "PT300S"), catalog()
    )
    assert first.plan == same.plan
    assert first.row.values == ("a", 5.0)
    for edges in ("EXIT", "ENTER OR EXIT"):
        assert compile_select(_TEXT.replace("ENTER", edges), catalog()).plan == first.plan
    computations = {first.plan.computation_id}
    for old, new in (
        ("5 minutes", "6 minutes"),
        ("'b'", "'c'"),
        (">", "<"),
        ("price > 5", "volume > 5"),
        ("BY symbol", "BY symbol, name"),
    ):
        other = compile_select(_TEXT.replace(old, new), catalog())
        assert other.plan.group_id != first.plan.group_id
        computations.add(other.plan.computation_id)
    assert len(computations) == 6


def test_a_comparison_that_no_index_orders_is_part_of_the_computation() -> None:
    """Decimals, texts and expressions have no place among the whole numbers of rises."""
    for condition in ("amount > 5", "name > 'b'", "price + 1 > 5", "price > 5 OR volume > 5"):
        query = compile_select(
            f"SELECT price FROM trades WHERE {condition} EMIT ON ENTER BY symbol FOR '1 hour'", catalog()
        )
        lasting = query.plan.lasting
        assert lasting is not None
        assert (lasting.height, len(lasting.where), query.row.values) == (None, 1, ())
    below = compile_select("SELECT price FROM trades WHERE 5 >= price EMIT ON ENTER BY symbol FOR '1 hour'", catalog())
    assert below.plan.lasting is not None
    assert below.plan.lasting.height == Height(Column("price", "DOUBLE"), above=False)


def test_stays_are_explained() -> None:
    """EXPLAIN shows the key and the interval, and the condition that is part of the computation."""
    lines = explain(compile_select(_TEXT, catalog()), TRADES)
    [computation] = lines["plan"]["tree"]["inputs"]
    assert (computation["lasting_by"], computation["lasting_milliseconds"]) == (["symbol"], 300_000)
    assert computation["constants"] == [{"in": "name = 'b'", "decided_by": "stays"}]
    assert (
        "for each symbol, the rows with which it enters and stays in for 0:05:00, and leaves after that"
        in lines["text"]
    )


def test_stays_over_joins_are_explained() -> None:
    """EXPLAIN shows the joined table below the stays; queries over other constants share the computation."""
    text = (
        "SELECT symbol FROM trades JOIN assets a USING (symbol, i) WHERE a.price > 5 EMIT ON ENTER BY symbol FOR 'PT1H'"
    )
    query, other = (compile_select(each, catalog(ASSETS)) for each in (text, text.replace("5", "7")))
    assert query.plan == other.plan
    [computation] = explain(query, TRADES)["plan"]["tree"]["inputs"]
    assert computation["lasting_by"] == ["symbol"]
    assert [(each["node"], each.get("table")) for each in computation["inputs"]] == [
        ("stream", None),
        ("table", "assets"),
    ]


@pytest.mark.parametrize("form", ["debezium-json", "maxwell-json", "canal-json"])
def test_records_that_may_lack_values_are_refused(form: str) -> None:
    """The state of stays has no whole rows, from which values could be taken."""
    table = replace(ASSETS, format=form)
    compile_select("SELECT symbol FROM assets WHERE price > 5 EMIT ON ENTER", catalog(table))
    with pytest.raises(InputError, match=f"FOR over a table of {form}"):
        compile_select("SELECT symbol FROM assets WHERE price > 5 EMIT ON ENTER FOR '1 hour'", catalog(table))
