"""The fast reader of JSON records, with a typed decoder that is built for the stream's columns.

The decoder is in part stricter and in part more generous than docs/expressions.md. Records that the decoder refuses are
read again by `json_exact`. If the decoder might accept too much, or change a value, its work is limited:

- For a DECIMAL, the decoder would accept texts such as ``"NaN"``, ``" 1"`` or ``"1_0"``. So the decoder returns the
  field's JSON text, which is read here.
- In a VARIANT, the decoder would lose digits of numbers. So the decoder returns the field's JSON text, which
  `grouping.values.variant` reads.
- For a TIMESTAMP, the decoder rounds to microseconds and ignores characters after a NUL. Conversion of a time with an
  offset to UTC may give a year outside 1 to 9999. A record in which this is possible is read only by `json_exact`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    SqlType,
)
from grouping.values.variant import variant_text
from spark_jobs.engine.decode.json_exact import FLOAT_BOUND, WrongRecord, read_record
from spark_jobs.engine.decode.json_extent import extent_check
from spark_jobs.engine.decode.json_layers import layers_of
from spark_jobs.engine.decode.json_lenient import LENIENT_DELICATE, STRICT, Leniency, time_reader

__all__ = ["REFUSALS", "Decoded", "Element", "JsonReader", "needs_escape"]

_FIELD_TYPES: dict[SqlType, Any] = {
    STRING: str,
    BOOLEAN: bool,
    TINYINT: Annotated[int, msgspec.Meta(ge=-(2**7), le=2**7 - 1)],
    SMALLINT: Annotated[int, msgspec.Meta(ge=-(2**15), le=2**15 - 1)],
    INT: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    FLOAT: Annotated[float, msgspec.Meta(gt=-FLOAT_BOUND, lt=FLOAT_BOUND)],
    DOUBLE: float,
    DATE: date,
    TIMESTAMP: datetime,
    BINARY: bytes,
}

_FINITE = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""The type of a DOUBLE in a lenient stream. Without the bounds, the lax decoder would accept NaN and infinities."""

REFUSALS = (msgspec.MsgspecError, ValueError, RecursionError)

_DELICATE_TIME = r":[0-9]{2}\.[0-9]{7}|0001-01-01|9999-12-31|\\u00(?:3[0-9aA]|2[deDE]|00)"
"""Matches records whose TIMESTAMP the decoder may read wrongly.

The last pattern matches JSON escapes of NUL, and of characters that the other patterns look for.
"""

_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f]')


class Decoded(NamedTuple):
    """The decoded records of a batch."""

    column: Callable[[StreamColumn], list[Any]]
    """Returns a column of the good records."""
    wrong: dict[int, str]
    """By row, the faults of the bad records."""
    misfits: Counter[str]
    """By column of a lenient stream, the number of values that did not fit and became NULL."""


class Element(NamedTuple):
    """The type of the records in an array (the option `explode`), if they can be decoded together."""

    struct: Any
    """The type to which msgspec decodes a record."""
    finished: Callable[[Any], Any] | None
    """Reads the values that msgspec has left as JSON texts; raises an error if the record must be read exactly.

    None if there are no such values.
    """
    lax: bool
    """Whether texts are accepted as numbers and booleans."""


class JsonReader:
    """Reads the JSON records of one stream."""

    def __init__(self, columns: Sequence[StreamColumn], leniency: Leniency = STRICT, *, any_json: bool = False) -> None:
        """Prepare to read the columns that lie in the record's value, at the paths `column.place.path`.

        Args:
            columns: The columns.
            leniency: The options of the stream.
            any_json: Whether a record may be any JSON value. Otherwise a record must be an object, unless a column is
                the whole value or an element of it (`json_exact.takes_any_json`).
        """
        self._any_json = any_json
        self._columns = tuple(columns)
        self._leniency = leniency
        self._numbers = {column.name: number for number, column in enumerate(columns)}
        lax = leniency.lenient
        has_times = any(column.type == TIMESTAMP for column in columns)
        has_wholes = any(_holds_wholes(column.type) for column in columns)
        patterns = [_DELICATE_TIME] if has_times else []
        self._delicate_pattern = "|".join([*patterns, LENIENT_DELICATE] if lax and has_wholes else patterns)
        # The fast decoder cannot find field names that JSON writes with escapes. And a DECIMAL, VARIANT or TIMESTAMP in
        # a nested column would need a further conversion. If a stream has such a column, all its records are read
        # exactly.
        self._exact = any(needs_escape(column) or _needs_finish(column.type) for column in columns)
        found = {number: _raw_reader(column.type, leniency) for number, column in enumerate(columns)}
        readers = {number: read for number, read in found.items() if read is not None}
        types: list[Any] = [
            msgspec.Raw if number in readers else _field_type(column.type, lax=lax)
            for number, column in enumerate(columns)
        ]
        self._layers = layers_of(self._columns, types, readers, named=not self._exact, lax=lax)
        self._layer = {number: at for at, layer in enumerate(self._layers) for number in layer.columns}
        self._check = extent_check(self._columns)

    def __call__(self, values: pa.Array) -> tuple[Callable[[StreamColumn], list[Any]], dict[int, str]]:
        """Decode the values of a batch.

        Returns:
            A function that returns a column of the good records; and by row the faults of the bad records.
        """
        column, wrong, _ = self.read(values)
        return column, wrong

    def read(self, values: pa.Array) -> Decoded:
        """Decode the values of a batch."""
        decoded: list[list[Any]] = [[] for _ in self._layers]
        first, *others = self._layers
        records, decode = decoded[0], first.decode
        exact: dict[int, list[object]] = {}
        wrong: dict[int, str] = {}
        misfits: Counter[str] = Counter()
        counted = misfits if self._leniency.lenient else None
        delicate = self.delicate(values)
        for row, value in enumerate(values.to_pylist()):
            if value is not None and row not in delicate:
                try:
                    record = decode(value)
                    if others:
                        for some, each in zip(decoded[1:], [layer.decode(value) for layer in others], strict=True):
                            some.append(each)
                    records.append(record)
                    continue
                except REFUSALS:
                    pass  # json_exact decides
            try:
                exact[len(records)] = read_record(
                    value, self._columns, self._leniency, counted, any_json=self._any_json
                )
            except WrongRecord as exc:
                wrong[row] = str(exc)
                continue
            for some, layer in zip(decoded, self._layers, strict=True):
                some.append(layer.empty)
        holders = [{"": some} for some in decoded]
        if self._check is None:
            return Decoded(lambda column: self._column(holders, exact, self._numbers[column.name]), wrong, misfits)
        found = [self._column(holders, exact, number) for number in range(len(self._columns))]
        good = [row for row in range(len(values)) if row not in wrong]
        kept = self._bounded(found, good, values, wrong)
        bounded = found if len(kept) == len(good) else [[column[place] for place in kept] for column in found]
        return Decoded(lambda column: bounded[self._numbers[column.name]], wrong, misfits)

    def _column(self, holders: list[dict[str, list[Any]]], exact: dict[int, list[object]], number: int) -> list[Any]:
        """Return a column of the good records."""
        at = self._layer[number]
        values = self._layers[at].values(holders[at], number)
        for place, row in exact.items():
            values[place] = row[number]
        return [_utc(value) for value in values] if self._columns[number].type == TIMESTAMP else values

    def _bounded(self, found: list[list[Any]], rows: list[int], values: pa.Array, wrong: dict[int, str]) -> list[int]:
        """Return the indexes of records within the limit on the number of nested values (`json_extent`).

        The faults of the other records are added to `wrong`.
        """
        assert self._check is not None, "`read` calls this method only if there is a check"
        sizes = pc.fill_null(pc.binary_length(values), 0).to_pylist()
        kept = []
        for place, (record, row) in enumerate(zip(zip(*found, strict=True), rows, strict=True)):
            try:
                self._check(record, sizes[row])
                kept.append(place)
            except WrongRecord as exc:
                wrong[row] = str(exc)
        return kept

    @property
    def element(self) -> Element | None:
        """The type by which all records of an array are decoded at once; None if each record must be decoded by itself.

        Each record is decoded by itself if records are read exactly, if the columns need several layers, or if values
        must be counted.
        """
        [layer, *others] = self._layers
        if others or self._exact or self._check is not None or layer.struct is None:
            return None
        return Element(layer.struct, layer.finished if layer.has_raw else None, self._leniency.lenient)

    def read_elements(self, elements: list[Any]) -> Decoded:
        """Decode records that are given as JSON texts, or that were already decoded to `Element.struct`."""
        texts = [at for at, each in enumerate(elements) if isinstance(each, bytes)]
        if len(texts) == len(elements):
            return self.read(pa.array(elements, pa.binary()))
        ready = [at for at, each in enumerate(elements) if not isinstance(each, bytes)] if texts else []
        holder: dict[str, list[Any]] = {"": [elements[at] for at in ready] if texts else elements}
        if not texts:
            return Decoded(lambda column: self._column([holder], {}, self._numbers[column.name]), {}, Counter())
        read, refused, misfits = self.read(pa.array([elements[at] for at in texts], pa.binary()))
        places = ready + [at for row, at in enumerate(texts) if row not in refused]
        order = sorted(range(len(places)), key=places.__getitem__)

        def column_of(column: StreamColumn) -> list[Any]:
            both = self._column([holder], {}, self._numbers[column.name]) + read(column)
            return [both[place] for place in order]

        return Decoded(column_of, {texts[row]: why for row, why in refused.items()}, misfits)

    def delicate(self, values: pa.Array) -> frozenset[int] | range:
        """Return the rows that must be read exactly, because the fast decoder might read them wrongly."""
        if self._exact:
            return range(len(values))
        if not self._delicate_pattern:
            return frozenset()
        found = pc.indices_nonzero(pc.match_substring_regex(values, self._delicate_pattern))
        return frozenset(found.to_pylist())


def needs_escape(column: StreamColumn) -> bool:
    """Tell whether the column's path has a name that JSON writes with an escape."""
    return any(isinstance(step, str) and _NEEDS_ESCAPE.search(step) for step in column.place.path or ())


def _is_raw(sql_type: SqlType) -> bool:
    return sql_type.is_decimal or sql_type == VARIANT


def _raw_reader(sql_type: SqlType, leniency: Leniency) -> Callable[[bytes], object] | None:
    """Return a function that reads a column from its JSON text; None if the decoder itself reads the column."""
    if sql_type == VARIANT:
        return variant_text
    if sql_type == TIMESTAMP and leniency != STRICT:
        return time_reader(leniency)
    return _decimal_reader(sql_type) if sql_type.is_decimal else None


def _field_type(sql_type: SqlType, *, lax: bool = False) -> Any:
    if _is_raw(sql_type):
        return msgspec.Raw
    if lax and sql_type == DOUBLE:
        return _FINITE | None
    match sql_type.name:
        case "ARRAY":
            return list[_field_type(sql_type.element, lax=lax)] | None  # type: ignore[arg-type, misc]  # it is made while running
        case "MAP":
            return dict[str, _field_type(sql_type.element, lax=lax)] | None  # type: ignore[arg-type, misc]
        case "STRUCT":
            fields = {name: _field_type(field, lax=lax) for name, field in sql_type.fields}
            return TypedDict("Struct", fields, total=False) | None  # type: ignore[operator]
    return _FIELD_TYPES[sql_type] | None


def _holds_wholes(sql_type: SqlType) -> bool:
    """Tell whether values of a type are or hold whole numbers."""
    parts = [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element else [])
    return sql_type.is_whole or any(map(_holds_wholes, parts))


def _needs_finish(sql_type: SqlType) -> bool:
    """Tell whether a nested type has a part that is a DECIMAL, VARIANT or TIMESTAMP, or a name with escapes."""
    parts = [field for _, field in sql_type.fields] + ([sql_type.element] if sql_type.element else [])
    names = any(_NEEDS_ESCAPE.search(name) for name, _ in sql_type.fields)
    return names or any(_is_raw(part) or part == TIMESTAMP or _needs_finish(part) for part in parts)


def _decimal_reader(sql_type: SqlType) -> Callable[[bytes], Decimal | None]:
    """Return a function that reads DECIMALs from JSON texts. A text that is refused may still fit (`json_exact`)."""
    precision, scale = sql_type.precision, sql_type.scale
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    fraction = rf"(?:\.[0-9]{{1,{scale}}})?" if scale else ""
    fitting = re.compile(rf'("?)(-?{whole}{fraction})\1'.encode()).fullmatch

    def read(raw: bytes) -> Decimal | None:
        found = fitting(raw)
        if found is not None:
            return Decimal(found[2].decode())
        if raw == b"null":
            return None
        raise msgspec.ValidationError

    return read


def _utc(time: datetime | None) -> datetime | None:
    if time is None or time.tzinfo is UTC:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
