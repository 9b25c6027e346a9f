"""Joins with tables changing while events flow, and batches carried out again."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.table import Table
from spark_jobs.engine.operators.lookup_join.replica import Replica, TablePin
from tests.join_oracle import QUERIES, Row, alone
from tests.unit.joins.join_queries import EVENTS, NUMBERS, OWNERS, PROFILES, rows_of
from tests.unit.replica.table_records import SETTINGS, MemoryLog

_Key = tuple[str, ...]
_Change = tuple[_Key, Row | None]
"""The key of a row, and the new values of its other columns; None removes the row."""
_INDUSTRIES = st.sampled_from(["a", "x", "y", None])
_PROFILE: st.SearchStrategy[_Change] = st.tuples(
    st.tuples(st.sampled_from("abcxy")), st.none() | st.fixed_dictionaries({"industry": _INDUSTRIES, "staff": NUMBERS})
)
_OWNER: st.SearchStrategy[_Change] = st.tuples(
    st.tuples(st.sampled_from("pqr"), st.sampled_from("abc")), st.none() | st.fixed_dictionaries({"n": NUMBERS})
)
_STEPS = st.lists(st.tuples(st.lists(_PROFILE, max_size=4), st.lists(_OWNER, max_size=4), EVENTS), max_size=5)
"""Changes of the tables, and the events of the micro-batch that comes after them."""


class _ChangingTable:
    """A table in a log of two partitions, and its rows as a dictionary."""

    def __init__(self, table: Table, seed: int) -> None:
        self._table = table
        self._log = MemoryLog([{}, {}], random.Random(seed))
        self._rows: dict[_Key, Row] = {}
        self.replica = Replica(table, self._log, SETTINGS)

    def change(self, key: _Key, values: Row | None, *, twice: bool) -> None:
        """Set or remove a row; a producer may send the record twice."""
        named: dict[str, Any] = dict(zip(self._table.key, key, strict=True))
        self._rows.pop(key, None)
        if values is not None:
            self._rows[key] = named | values
            record = None, json.dumps(self._rows[key]).encode()
        else:
            name = key[0] if len(key) == 1 else json.dumps(named)
            record = name.encode(), None
        for _ in range(2 if twice else 1):
            self._log.append(sum(map(ord, "".join(key))) % 2, record)

    def now(self) -> tuple[TablePin, list[Row]]:
        """Return a pin at this moment, and the rows."""
        ends = {number: max(records, default=-1) + 1 for number, records in enumerate(self._log.partitions)}
        return ends, list(self._rows.values())


@pytest.mark.parametrize("select", QUERIES)
@settings(max_examples=6)
@given(_STEPS, st.integers(0, 2**16))
def test_each_batch_meets_the_rows_of_its_pin(select: str, steps: list[Any], seed: int) -> None:
    """Rows are set, set again, removed, and told twice: each batch and replay is as DuckDB has it."""
    rng = random.Random(seed)
    profiles, owners = _ChangingTable(PROFILES, seed), _ChangingTable(OWNERS, seed + 1)
    batches = []
    for changed_profiles, changed_owners, events in steps:
        for table, changes in ((profiles, changed_profiles), (owners, changed_owners)):
            for key, values in changes:
                table.change(key, values, twice=rng.random() < 0.3)
        (profiles_pin, profiles_now), (owners_pin, owners_now) = profiles.now(), owners.now()
        wanted = sorted(alone(select, events, profiles_now, owners_now), key=repr)
        batches.append((profiles_pin, owners_pin, events, wanted))
        if rng.random() < 0.7:  # else another worker has this batch, and this one catches up later
            views = {"t_1": profiles.replica.at(profiles_pin), "t_2": owners.replica.at(owners_pin)}
            assert sorted(rows_of(select, events, views)[1], key=repr) == wanted
    for profiles_pin, owners_pin, events, wanted in rng.sample(batches, len(batches)):
        views = {"t_1": profiles.replica.at(profiles_pin), "t_2": owners.replica.at(owners_pin)}
        assert sorted(rows_of(select, events, views)[1], key=repr) == wanted
