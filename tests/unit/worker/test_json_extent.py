"""Limits of a nested JSON record: its places are counted as in Arrow's arrays, and too many make it a dead letter."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.sql_type import SqlType
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.decode.json_extent import extent
from tests.unit.matching.event_batches import SETTINGS, batch, header, stream

_TYPES = ("INT", "STRUCT<a: INT, b: INT>", "ARRAY<STRUCT<a: INT, b: STRUCT<c: INT, d: ARRAY<INT>>>>")
_FIELDS = ", ".join(f"f{number}: INT" for number in range(100))
_WIDE = stream(f"items ARRAY<STRUCT<{_FIELDS}>>", "name STRING")


def _values(sql_type: SqlType) -> st.SearchStrategy[object]:
    if sql_type.name == "ARRAY":
        assert sql_type.element is not None
        return st.none() | st.lists(_values(sql_type.element), max_size=3)
    if sql_type.name == "STRUCT":
        return st.none() | st.fixed_dictionaries({}, optional={name: _values(field) for name, field in sql_type.fields})
    return st.none() | st.integers(0, 9)


def _arrow(sql_type: SqlType) -> pa.DataType:
    if sql_type.name == "ARRAY":
        assert sql_type.element is not None
        return pa.list_(_arrow(sql_type.element))
    return pa.struct([(name, _arrow(field)) for name, field in sql_type.fields]) if sql_type.fields else pa.int32()


def _places(array: pa.Array) -> int:
    if pa.types.is_list(array.type):
        return len(array) + _places(array.values)
    if pa.types.is_struct(array.type):
        return len(array) + sum(_places(array.field(number)) for number in range(array.type.num_fields))
    return len(array)


@given(
    st.sampled_from(_TYPES).map(SqlType.of).flatmap(lambda sql_type: st.tuples(st.just(sql_type), _values(sql_type)))
)
def test_an_extent_is_that_of_arrows_arrays(given_value: tuple[SqlType, object]) -> None:
    """Values are counted as Arrow lays them out, where parts are missing too."""
    sql_type, value = given_value
    assert _places(pa.array([value], _arrow(sql_type))) == extent(value, sql_type)


def test_few_bytes_make_no_large_rows() -> None:
    """A record whose rows would be far larger than its text is a dead letter; its neighbours are rows."""
    large = b'{"name": "large", "items": [' + b",".join([b"{}"] * 100_000) + b"]}"
    full = b'{"name": "full", "items": [' + b",".join([b'{"f0": 1}'] * 90) + b"]}"
    events, letters = decode(batch([b'{"name": "a"}', large, full]), _WIDE, SETTINGS)
    assert events.column("name").to_pylist() == ["a", "full"]
    assert letters is not None and len(letters) == 1
    assert f"too many for {len(large)} bytes" in header(letters.to_pylist()[0], "detail")
