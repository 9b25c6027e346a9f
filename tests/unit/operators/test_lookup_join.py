"""The join of events with tables makes the same rows, however the events are cut into steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.plan.lookup_join import table_columns
from spark_jobs.engine.operators.lookup_join.join import LookupJoinOperator
from tests.join_oracle import Row
from tests.unit.joins.join_queries import EVENTS, OWNER_ROWS, OWNERS, PROFILE_ROWS, PROFILES, batch_of, view_of
from tests.unit.operators.cutting import driven, pieces

_QUERIES = [
    "SELECT q.n FROM quotes q JOIN profiles p ON q.symbol = p.symbol",
    "SELECT q.n FROM quotes q LEFT JOIN owners o ON q.symbol = o.symbol AND o.n < q.n",
    "SELECT q.n FROM quotes q JOIN profiles p ON q.symbol = p.symbol LEFT JOIN owners o ON o.symbol = q.symbol"
    " AND o.owner = 'p'",
]


@pytest.mark.parametrize("select", _QUERIES, ids=range(len(_QUERIES)))
@settings(max_examples=30, deadline=None)
@given(EVENTS, PROFILE_ROWS, OWNER_ROWS, st.lists(st.integers(0, 8), max_size=3), st.booleans())
def test_any_cutting_makes_the_same_rows(
    select: str, events: list[Row], profiles: Row, owners: Row, cuts: list[int], stored: bool
) -> None:
    """Events of one step, or of several: the rows, and the numbers behind their events' ids, are the same."""
    named = [{"symbol": symbol, **row} for symbol, row in profiles.items()]
    owned = [{"owner": owner, "symbol": symbol, **row} for (owner, symbol), row in owners.items()]
    _, computation = batch_of(select, [])
    views = {"t_1": view_of(PROFILES, named), "t_2": view_of(OWNERS, owned)}
    join = LookupJoinOperator(computation, views)
    columns = [
        column.reference
        for node in computation.nodes
        for column in table_columns(views[node.table_id].table, node.prefix)
    ]

    def rows(steps: list[list[Row]]) -> list[tuple[Any, ...]]:
        """Return joined rows by value: their events' places and numbers, and the columns of tables."""
        found, begin = [], 0
        made = driven(join, [(batch_of(select, step)[0], None) for step in steps], stored=stored)
        for step, slices in zip(steps, made, strict=True):
            for _, joined in slices:
                assert joined is not None, "an event makes few rows"
                numbers = [None] * joined.count if joined.number is None else joined.number.tolist()
                tables = [joined.column(name).to_pylist() for name in columns]
                found += zip((joined.event + begin).tolist(), numbers, *tables, strict=True)
            begin += len(step)
        return found

    assert rows([events]) == rows(pieces(events, cuts))
