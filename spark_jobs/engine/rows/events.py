"""The decoded records of one task's batch, as columns that are built when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.catalog import RECORD_FIELDS, Stream, StreamColumn
from grouping.model.expression import Reference
from grouping.model.sql_type import SqlType
from grouping.store.arrow_types import ARROW_TYPES
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.record_fields import header_maps, key_texts, once_each
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["Events", "arrow_type", "column_array"]

_TIME_BOUNDS_MS = (-62_135_596_800_000, 253_402_300_799_999)


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """Return the Arrow type of a column with an SQL type.

    Example:
        >>> arrow_type(SqlType.of("DECIMAL(10,2)"))
        Decimal128Type(decimal128(10, 2))
    """
    match sql_type.name:
        case "DECIMAL":
            return pa.decimal128(sql_type.precision, sql_type.scale)
        case "STRUCT":
            return pa.struct([pa.field(name, arrow_type(field)) for name, field in sql_type.fields])
        case "ARRAY" | "MAP":
            assert sql_type.element is not None
            element = arrow_type(sql_type.element)
            return pa.list_(pa.struct({"key": pa.string(), "value": element}) if sql_type.key else element)
    return ARROW_TYPES[sql_type]


def _holds_maps(sql_type: SqlType) -> bool:
    """Tell whether values of a type contain maps. A map is a dict in Python, and a list of entries in Arrow."""
    parts = [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element else [])
    return sql_type.name == "MAP" or any(map(_holds_maps, parts))


def _with_entries(value: Any, sql_type: SqlType) -> Any:
    """Return a value with its maps as lists of entries."""
    if value is None or not _holds_maps(sql_type):
        return value
    if sql_type.fields:
        return {name: _with_entries(value.get(name), field) for name, field in sql_type.fields}
    assert sql_type.element is not None
    if sql_type.key:
        return [{"key": key, "value": _with_entries(each, sql_type.element)} for key, each in value.items()]
    return [_with_entries(each, sql_type.element) for each in value]


def column_array(values: Sequence[object], sql_type: SqlType) -> pa.Array:
    """Return Python values of a type, in which maps are dicts, as an Arrow array.

    Example:
        >>> column_array([{"a": 1}, None], SqlType.of("MAP<STRING, INT>")).to_pylist()
        [[{'key': 'a', 'value': 1}], None]
    """
    if _holds_maps(sql_type):
        values = [_with_entries(value, sql_type) for value in values]
    return pa.array(values, arrow_type(sql_type))


def _as_none(values: pa.Array) -> pa.Array:
    return pa.nulls(len(values), pa.string())


class Events:
    """The decoded events of a batch, in its order. `Matches.event` has the numbers of these rows."""

    kinds: NDArray[np.int8] | None = None
    removals: NDArray[np.bool_] | None = None
    """See `rows.row_source.RowSource` for both."""

    def __init__(
        self,
        stream: Stream,
        source: pa.RecordBatch,
        read: Callable[[StreamColumn], list[object]],
        misfits: Mapping[str, int] | None = None,
        read_whole: Callable[[pa.Array], pa.Array] = _as_none,
        *,
        number: Ints | None = None,
        sizes: Callable[[], Ints] | None = None,
    ) -> None:
        """Keep the records.

        Args:
            stream: The stream of the records.
            source: The records of the events as Spark's Kafka source gives them, for dead letters and for the record's
                own fields. If records hold several events, there is a row for each event, and keys, values and headers
                are dictionary-encoded.
            read: Returns a column's values: str, bool, int, float, Decimal, date or UTC datetime, and None for NULL.
                A value of a nested type is a dict or list of these.
            misfits: By column of a lenient stream, the number of values that did not fit and were replaced by NULL.
            read_whole: Returns each record's value as a VARIANT, for the field `_value`.
            number: The place of each event among the elements of its record; None if each record is one event.
            sizes: Returns an upper bound for the bytes of each event's columns; None to use the bytes of the records.
        """
        self.misfits = misfits or {}
        self.stream = stream
        self.source = source
        self.number = number
        self.count: int = source.num_rows
        self._declared: dict[Reference, StreamColumn] = {column.name: column for column in stream.columns}
        self._read = read
        self._read_whole = read_whole
        self._values: dict[Reference, list[object]] = {}
        self._arrays: dict[Reference, pa.Array] = {}
        self._times: NDArray[np.int64] | None = None
        self._sizes = sizes
        self._record_bytes: NDArray[np.int64] | None = None
        self._longest_record: int | None = None

    @property
    def partitions(self) -> NDArray[np.int32]:
        """The source partition of each event."""
        partitions: NDArray[np.int32] = self.source["partition"].to_numpy()
        return partitions

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The position of each event: its offset, raised so that it is above all positions of earlier generations."""
        offsets: NDArray[np.int64] = self.source["offset"].to_numpy()
        return offsets + self.stream.base if self.stream.base else offsets

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """The record time of each event in epoch milliseconds, limited to the years 1 to 9999."""
        if self._times is None:
            times = pc.cast(self.source["timestamp"], pa.timestamp("ms", "UTC"), safe=False)
            self._times = np.clip(times.cast(pa.int64()).to_numpy(), *_TIME_BOUNDS_MS)
        return self._times

    @property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each event's columns: the bytes of key and value, and twice those of headers.

        Twice, because results contain the values of headers in base64, which is longer by a third.
        """
        if self._record_bytes is None and self._sizes is not None:
            self._record_bytes = self._sizes()
        if self._record_bytes is None:
            key, value = (pc.fill_null(pc.binary_length(self.source[name]), 0) for name in ("key", "value"))
            self._record_bytes = pc.add(key, value).to_numpy().astype(np.int64)
            if "headers" in self.source.schema.names:
                self._record_bytes += 2 * value_sizes(self.source["headers"])
        return self._record_bytes

    @property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""
        if self._longest_record is None:
            self._longest_record = int(self.record_bytes.max(initial=0))
        return self._longest_record

    def values(self, name: Reference) -> list[object]:
        """Return a declared column as Python values; the list is shared, so the caller must not change it."""
        values = self._values.get(name)
        if values is None:
            values = self._values[name] = self._read(self._declared[name])
        return values

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> list[object]:
        """Return a declared column of some events; arguments and result are those of `rows.row_source.RowSource`."""
        values = self.values(name)
        if len(rows) == self.count:
            return values
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return values[rows[0] : rows[-1] + 1]
        return [values[row] for row in rows.tolist()]

    def column(self, name: Reference) -> pa.Array:
        """Return a column, or one of the record's own fields, as an Arrow array.

        Args:
            name: The column's name in its declared spelling, or a name in `catalog.RECORD_FIELDS`. A declared column
                hides the record's own field of the same name.
        """
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._build(name)
        return array

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`: no dictionary of repeated values is known here."""
        return self.column(name)

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column or of one of the record's own fields."""
        declared = self._declared.get(name)
        if declared is not None:
            return declared.type
        assert isinstance(name, str), "a field of the record"
        return RECORD_FIELDS[name]

    def declares(self, name: Reference) -> bool:
        """Tell whether the stream declares the column; the fields that every record has are not declared."""
        return name in self._declared

    def _build(self, name: Reference) -> pa.Array:
        if name in self._declared:
            return column_array(self.values(name), self._declared[name].type)
        match name:
            case "_key":
                return once_each(key_texts, self.source["key"])
            case "_time":
                return pc.cast(pa.array(self.time_ms, pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"))
            case "_partition":
                return pc.cast(self.source["partition"], pa.int32())
            case "_headers":
                return once_each(header_maps, self.source["headers"])
            case "_value":
                return self._read_whole(self.source["value"])
            case _:
                return pc.cast(self.source["offset"], pa.int64())
