"""The evaluator reads the SDK's records for a table as set and removed rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from gateway.sdk import GatewayError
from gateway.sdk.tables import TableForm
from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.operators.lookup_join.changes import decode_changes

_COLUMNS = {"symbol": "STRING", "number": "INT", "day": "DATE"}


def _form(*key: str, form: str = "json") -> TableForm:
    columns = [{"name": name, "type": kind} for name, kind in _COLUMNS.items()]
    answer = {"table": "t", "id": "t_1", "topic": "t", "format": form, "columns": columns, "primary_key": list(key)}
    return TableForm.of(answer)


@pytest.mark.parametrize(
    ("key", "record"),
    [
        ({"symbol": "ÜSAP"}, "ÜSAP".encode()),
        ({"number": 7}, b'{"number":7}'),
        ({"number": 7, "symbol": "A"}, b'{"number":7,"symbol":"A"}'),
        ({"day": "2026-11-23"}, b'{"day":"2026-11-23"}'),
        ({"symbol": '"A"'}, rb'"\"A\""'),
        ({"symbol": '{"symbol": 1}'}, rb'"{\"symbol\": 1}"'),
        ({"symbol": '{"schema": 1, "payload": 2}'}, rb'"{\"schema\": 1, \"payload\": 2}"'),
        ({"symbol": '{"x": 1}'}, b'{"x": 1}'),
        ({"symbol": '"A'}, b'"A'),
    ],
)
def test_a_row_and_its_removal_have_one_key(key: dict[str, Any], record: bytes) -> None:
    """Both lie in one partition, and the evaluator reads the removal as that of the row."""
    form = _form(*key)
    assert record == form.key({"number": 1, **key}) == form.removal(key)
    if len(key) == 1:
        assert record == form.removal(*key.values())
    columns = tuple(StreamColumn(name, kind) for name, kind in _COLUMNS.items())
    table = Table("t_1", "t", columns, tuple(key), "t", "json", "2026-11-23T00:00:00.000Z")
    records = {"key": [record], "value": [None], "partition": [0], "offset": [0]}
    types = [pa.binary(), pa.binary(), pa.int32(), pa.int64()]
    batch = pa.record_batch(
        [pa.array(each, kind) for each, kind in zip(records.values(), types, strict=True)], [*records]
    )
    changes, letters = decode_changes(batch, table, Settings())
    assert letters is None
    assert [-1] == changes.row.tolist()
    assert [str(value) for value in key.values()] == [str(array[0].as_py()) for array in changes.keys]


def test_what_is_no_key_is_refused() -> None:
    """A column that is missing, NULL or not named; a table whose topic holds no JSON."""
    with pytest.raises(ValueError, match='column "number" of the PRIMARY KEY'):
        _form("symbol", "number").key({"symbol": "A"})
    with pytest.raises(ValueError, match='column "symbol" of the PRIMARY KEY'):
        _form("symbol").removal(None)
    with pytest.raises(ValueError, match="several columns"):
        _form("symbol", "number").removal("A")
    with pytest.raises(GatewayError, match="are not JSON") as caught:
        _form("symbol", form="avro")
    assert caught.value.detail == 'The format of its topic "t" is avro.'
