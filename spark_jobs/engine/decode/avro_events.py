"""Avro records, in the three framings of docs/statements.md."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import fastavro
import pyarrow as pa

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import STRING
from grouping.model.wording import are, counted
from schemas.avro_columns import AvroTypes, reading_schema, single_object_header
from schemas.avro_limits import body_check
from spark_jobs.engine.decode.avro_values import NestedChecks, check_texts, plain_check
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.misfit import Misfit, misfit_detail

__all__ = ["AvroReader"]

_CONFLUENT_BYTES = 5
"""A zero byte and the id of the schema, which may be any."""


class AvroReader:
    """Reads the Avro records of one stream."""

    def __init__(self, columns: Sequence[StreamColumn], schema: str, framing: str) -> None:
        self._schema = reading_schema(schema, [column.name for column in columns])
        self._check_body = body_check(self._schema)
        self._body = _BODIES[framing]
        self._header = single_object_header(schema)
        self._texts = [column.name for column in columns if column.type == STRING or column.type.is_nested]
        nested = NestedChecks(AvroTypes(schema))
        checks = ((column, _check_of(column, nested)) for column in columns)
        self._checks = [(column, check) for column, check in checks if check]

    def __call__(self, values: pa.Array) -> tuple[Callable[[StreamColumn], list[Any]], dict[int, str]]:
        """Decode the values of a batch.

        Returns:
            A function that reads a column of the good records, and by row the faults of the others.
        """
        records: list[dict[str, Any]] = []
        wrong: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                records.append(self._record(value))
            except WrongRecord as exc:
                wrong[row] = str(exc)
            except Exception as exc:  # fastavro's errors have no common base: IndexError, EOFError, OverflowError, …
                wrong[row] = f"The value does not fit the Avro schema: {str(exc) or type(exc).__name__}."
        return lambda column: list(map(itemgetter(column.name), records)), wrong

    def _record(self, value: bytes | None) -> dict[str, Any]:
        if value is None:
            raise WrongRecord("The record has no value.")
        start = self._body(value, self._header)
        if self._check_body is not None:
            self._check_body(value, start)
        broken = False
        try:
            record = self._read(value, start, "strict")
        except UnicodeDecodeError:
            record, broken = self._read(value, start, "surrogateescape"), True
        for column, check in self._checks:
            if (found := record[column.name]) is not None:
                try:
                    record[column.name] = check(found)
                except Misfit as exc:
                    raise WrongRecord(misfit_detail(column, exc)) from None
        if broken:
            for name in self._texts:  # a field without a column does no harm
                try:
                    check_texts(record[name])
                except UnicodeEncodeError:
                    raise WrongRecord(f'Column "{name}" has a string that is no valid UTF-8.') from None
        return record

    def _read(self, value: bytes, start: int, unicode_errors: str) -> dict[str, Any]:
        body = io.BytesIO(value)
        body.seek(start)
        record: dict[str, Any] = fastavro.schemaless_reader(  # type: ignore[assignment]  # the schema is a record's
            body, self._schema, None, handle_unicode_errors=unicode_errors
        )
        if body.tell() != len(value):
            left = len(value) - body.tell()
            raise WrongRecord(f"There {are(left)} {counted(left, 'byte')} after the Avro body.")
        return record


def _single_object(value: bytes, header: bytes) -> int:
    if not value.startswith(header):
        raise WrongRecord(f"The value does not begin with {header.hex()}, which the stream's schema calls for.")
    return len(header)


def _confluent(value: bytes, _header: bytes) -> int:
    if len(value) < _CONFLUENT_BYTES or value[0] != 0:
        raise WrongRecord("The value does not begin with a zero byte and four bytes of a schema id.")
    return _CONFLUENT_BYTES


def _raw(_value: bytes, _header: bytes) -> int:
    return 0


_BODIES: Mapping[str, Callable[[bytes, bytes], int]] = {
    "single-object": _single_object,
    "confluent": _confluent,
    "raw": _raw,
}
"""By framing, the function that returns where the body begins."""


def _check_of(column: StreamColumn, nested: NestedChecks) -> Callable[[Any], object] | None:
    """Return a check and conversion of a column's values, None where fastavro's values are right as they come."""
    if column.type.is_nested:
        return nested.column(column)
    return plain_check(column.type)
