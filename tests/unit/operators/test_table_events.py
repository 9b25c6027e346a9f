"""Changes of a table as events: the values equal the values of a stream over the same records."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.table import Table
from grouping.plan.group import SelectItem, SelectList
from grouping.plan.scan import Scan
from grouping.plan.table_changes import table_changes
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.residual import evaluate_expression
from spark_jobs.engine.operators.lookup_join.table_events import decode_stream
from spark_jobs.engine.results.encode import encode
from spark_jobs.engine.rows.events import Events
from tests.unit.matching.event_batches import SETTINGS, batch, header, stream

_COLUMNS = {
    "k": "STRING",
    "b": "BOOLEAN",
    "n": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "x": "DECIMAL(9,2)",
    "day": "DATE",
    "at": "TIMESTAMP",
    "raw": "BINARY",
    "v": "VARIANT",
    "l": "ARRAY<INT>",
    "m": "MAP<STRING,INT>",
    "s": "STRUCT<a: INT, t: ARRAY<STRING>>",
}
_ROWS = [
    {
        "k": "é",
        "b": True,
        "n": 2**53 + 1,
        "f": 0.1,
        "d": -0.0,
        "x": "1.50",
        "day": "2026-11-29",
        "at": "2026-11-29T10:00:00.123456Z",
        "raw": "AP8=",
        "v": {"a": [1, None]},
        "l": [1, None],
        "m": {"x": 1},
        "s": {"a": None, "t": ["y"]},
    },
    {"k": "a"},
    {"k": "b", "l": [], "m": {}, "s": {}, "v": None, "d": 1e300},
]


def _table(*columns: StreamColumn, key: tuple[str, ...]) -> Stream:
    return table_changes(Table("t_1", "things", columns, key, "source", "json", ""))


def _shown(events: Events) -> list[object]:
    items = tuple(SelectItem(column.stored, column) for column in Scan(events.stream).columns)
    rows = np.arange(events.count, dtype=np.int32)
    values, _ = encode(events, SelectList("s_1", items), rows, evaluate_expression)  # type: ignore[arg-type]
    return [json.loads(value) for value in values.to_pylist()]


def test_values_are_those_of_a_stream() -> None:
    """Rows of a table and events of a stream give equal results for equal records, for all types."""
    records = batch([json.dumps(row).encode() for row in _ROWS])
    as_stream, letters = decode(records, stream(*(f"{name} {kind}" for name, kind in _COLUMNS.items())), SETTINGS)
    assert letters is None
    changes = _table(*(StreamColumn(name, kind) for name, kind in _COLUMNS.items()), key=("k",))
    [(events, letters)] = decode_stream(records, changes, SETTINGS)
    assert letters is None
    assert _shown(as_stream) == _shown(events)
    assert events.removals is not None
    assert not events.removals.any()


def test_removals_and_dead_letters() -> None:
    """A record without a value removes the row of the key; a record without a key is a dead letter."""
    changes = _table(StreamColumn("k", "STRING"), StreamColumn("n", "INT"), StreamColumn("p", "DOUBLE"), key=("n", "k"))
    values = [b'{"k": "a", "n": 1, "p": 2}', None, None, b'{"k": "a"}', None]
    keys = [None, b'{"k": "a", "n": 1}', b"a", None, b'{"k": "b", "n": 7}']
    [(events, letters)] = decode_stream(batch(values, keys, first=5), changes, SETTINGS)
    assert letters is not None
    assert [header(row, "source") for row in letters.to_pylist()] == ["source/3/7", "source/3/8"]
    assert (events.offsets.tolist(), events.removals.tolist()) == ([5, 6, 9], [False, True, True])  # type: ignore[union-attr]
    assert _shown(events) == [
        {"k": "a", "n": 1, "p": 2.0},
        {"k": "a", "n": 1, "p": None},
        {"k": "b", "n": 7, "p": None},
    ]


@pytest.mark.parametrize("value", [b'{"n": 5}', None])
def test_a_key_from_the_record(value: bytes | None) -> None:
    """A column FROM KEY names the row, for a new row and for a removal."""
    changes = _table(StreamColumn("k", "STRING", "KEY"), StreamColumn("n", "INT"), key=("k",))
    [(events, letters)] = decode_stream(batch([value], [b"a"]), changes, SETTINGS)
    assert letters is None
    assert _shown(events) == [{"k": "a", "n": None if value is None else 5}]


def test_a_later_topic_of_the_name() -> None:
    """Positions continue above the positions of a topic that was deleted."""
    changes = _table(StreamColumn("k", "STRING"), key=("k",))
    later = msgspec.structs.replace(changes, generation=2)
    [(events, _)] = decode_stream(batch([b'{"k": "a"}'], first=5), later, SETTINGS)
    assert events.offsets.tolist() == [10**13 + 5]
