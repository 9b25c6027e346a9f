"""Changes of a table by workers that lose their states and replay batches, beside a fold of one record at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from tests.stack.changes.table_oracle import QUERIES, TableFold, TableQuery, TableRecord
from tests.unit.matching.matching import destination
from tests.unit.states.partition_workers import turns
from tests.unit.states.table_workers import (
    PARTITION,
    RowTopic,
    TableConstants,
    TableWorker,
    by_destination,
    changes_of,
)

_COLUMNS = (("k", "STRING"), ("p", "DOUBLE"), ("s", "STRING"), ("l", "MAP<STRING,INT>"))
TABLE = Table("t_1", "profiles", tuple(StreamColumn(*each) for each in _COLUMNS), ("k",), "source", "json", "")
STREAM = changes_of(TABLE)
Row = dict[str, Any]


def _set(row: Row) -> TableRecord:
    return TableRecord("other", json.dumps(row).encode())


RECORDS = st.lists(
    st.one_of(
        st.builds(
            _set,
            st.fixed_dictionaries(
                {
                    "k": st.sampled_from(["a", "b", "é"]),
                    "p": st.sampled_from([0.5, 1.0, 2.5, None]),
                    "s": st.sampled_from(["a", "b", None]),
                    "l": st.sampled_from([{"x": 1}, {}, None]),
                }
            ),
        ),
        st.sampled_from([TableRecord(key, None) for key in ("a", "b", "é", "never", None)]),
        st.sampled_from([TableRecord("a", b'{"k": null, "p": 2}'), TableRecord("a", b'{"p": 2}')]),
    ),
    min_size=1,
    max_size=18,
)
TURNS = turns(6, 6, 4)


@settings(max_examples=40, deadline=None)
@given(
    records=RECORDS,
    begins=st.lists(st.integers(0, 4), min_size=len(QUERIES), max_size=len(QUERIES)),
    turns=TURNS,
    lost=st.booleans(),
    own_indexes=st.booleans(),
)
def test_changes_are_those_of_a_fold(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[TableRecord],
    begins: list[int],
    turns: list[tuple[int, int, int, str]],
    lost: bool,
    own_indexes: bool,
) -> None:
    """Each batch has the changes and edges of a fold of single records, whoever evaluates it, and however often."""
    topic, folder, clock = RowTopic(records), tmp_path_factory.mktemp("states"), [0.0]
    workers = [TableWorker(STREAM, topic, folder, clock, own_indexes) for _ in range(2)]
    store, fold, live = TableConstants(TABLE), TableFold(), dict[object, TableQuery]()
    at = 0
    for number, (count, turn, piece, fate) in enumerate(turns):
        first, end = at, min(at + count, len(records))
        new = [name for name, begin in enumerate(begins) if begin == number]
        live |= {name: QUERIES[name] for name in new}
        version = store.commit((), [store.entry(name, first) for name in new])
        if fate == "killed":
            workers[turn] = TableWorker(STREAM, topic, folder, clock, own_indexes)
        if lost and fate == "killed":
            for path in (*folder.rglob("*.rows"), *folder.rglob("*.changes")):
                path.write_bytes(path.read_bytes()[:-3])
        if fate == "minute":
            clock[0] += 61
        if fate in ("stopped", "again"):
            workers[turn].run(store, version, first, end, piece, complete=fate == "again")
        if fate == "elsewhere":
            workers[1 - turn].run(store, version, first, end, piece, complete=False)
        made = workers[turn].run(store, version, first, end, piece, complete=True)
        expected = [
            (destination(name), f"profiles/{PARTITION}/{place}", change)
            for place in range(first, end)
            for name, change in fold.changes(records[place], live.items())
        ]
        assert by_destination(made) == by_destination(expected)
        at = end
