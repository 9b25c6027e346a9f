"""Avro records, in the three framings of docs/statements.md."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import fastavro
import pyarrow as pa

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import DATE, STRING, TIMESTAMP
from grouping.model.wording import are, counted
from schemas.avro_columns import AvroMismatch, AvroTypes, check_avro_columns, reading_schema, single_object_header
from schemas.avro_indexes import index_checked
from schemas.avro_limits import body_check, body_fault
from schemas.avro_writers import CONFLUENT_BYTES, id_header, schema_text
from spark_jobs.engine.decode.avro_values import NestedChecks, check_texts, plain_check
from spark_jobs.engine.decode.framing import NO_SCHEMA_ID
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.misfit import Misfit, misfit_detail

__all__ = ["AvroReader"]


class AvroReader:
    """Reads the Avro records of one stream."""

    def __init__(self, pick: Callable[[bytes], tuple[AvroBody, int]]) -> None:
        """Take a function that returns for a record's value the reader of its body, and where the body begins."""
        self._pick = pick

    @classmethod
    def of_schema(cls, columns: Sequence[StreamColumn], schema: str, framing: str) -> AvroReader:
        """Return a reader of records that are all written with the same schema, whatever schema id they name."""
        body, begin = AvroBody(columns, schema), _BODIES[framing]
        header = single_object_header(schema)
        return cls(lambda value: (body, begin(value, header)))

    @classmethod
    def of_writers(
        cls, columns: Sequence[StreamColumn], writers: Mapping[int, Any], unknown: Callable[[int], str]
    ) -> AvroReader:
        """Return a reader of records that name their schemas by ids.

        Args:
            columns: The columns.
            writers: By id, a schema decoded from JSON, or a sentence that says why there is none.
            unknown: Returns the fault of a record whose id is not in `writers`.
        """
        bodies: dict[bytes, AvroBody | str] = {}
        for schema_id, schema in writers.items():
            bodies[id_header(schema_id)] = schema if isinstance(schema, str) else _body_of(columns, schema_id, schema)

        def pick(value: bytes) -> tuple[AvroBody, int]:
            body = bodies.get(value[:CONFLUENT_BYTES])
            if isinstance(body, AvroBody):
                return body, CONFLUENT_BYTES
            _confluent(value, b"")
            raise WrongRecord(body or unknown(int.from_bytes(value[:CONFLUENT_BYTES], "big")))

        return cls(pick)

    def __call__(self, values: pa.Array) -> tuple[Callable[[StreamColumn], list[Any]], dict[int, str]]:
        """Decode the values of a batch.

        Returns:
            A function that returns a column of the good records; and by row the faults of the bad records.
        """
        records: list[dict[str, Any]] = []
        wrong: dict[int, str] = {}
        for row, value in enumerate(values.to_pylist()):
            try:
                if value is None:
                    raise WrongRecord("The record has no value.")
                body, start = self._pick(value)
                records.append(body.read(value, start))
            except WrongRecord as exc:
                wrong[row] = str(exc)
            except Exception as exc:  # fastavro's errors have no common base: IndexError, EOFError, OverflowError, …
                wrong[row] = f"The value does not fit the Avro schema{body.fault(value, start, exc)}."
        return lambda column: list(map(itemgetter(column.name), records)), wrong


class AvroBody:
    """Reads the bodies of records that are written with the same schema, as values of columns."""

    def __init__(self, columns: Sequence[StreamColumn], schema: str) -> None:
        """Prepare to read.

        Args:
            columns: The columns; a column that the schema lacks is NULL.
            schema: The writer's schema.
        """
        self._text = schema
        self._schema = reading_schema(schema, [column.name for column in columns])
        self._reading = index_checked(self._schema)
        self._check_body = body_check(self._schema)
        types = AvroTypes(schema)
        there = [column for column in columns if column.name in types.fields]
        self._texts = [column.name for column in there if column.type == STRING or column.type.is_nested]
        self._times = [column for column in there if column.type in (DATE, TIMESTAMP)]
        self._types = types
        self._nulls = {column.name: None for column in columns if column.name not in types.fields}
        checks = ((column, _check_of(column, types)) for column in there)
        self._checks = [(column, check) for column, check in checks if check]

    def read(self, value: bytes, start: int) -> dict[str, Any]:
        """Return the values of the columns; the result may have further fields of the record.

        Args:
            value: The record's value.
            start: Where the body begins.

        Raises:
            WrongRecord: The record does not fit the columns.
            Exception: Any other exception, if the body does not fit the schema.
        """
        if self._check_body is not None:
            self._check_body(value, start)
        broken = False
        try:
            record = self._read(value, start, "strict")
        except UnicodeDecodeError:
            record, broken = self._read(value, start, "surrogateescape"), True
        except (OverflowError, ValueError):
            self._check_times(value, start)
            raise
        for column, check in self._checks:
            if (found := record[column.name]) is not None:
                try:
                    record[column.name] = check(found)
                except Misfit as exc:
                    raise WrongRecord(misfit_detail(column, exc)) from None
        if broken:
            for name in self._texts:  # only these columns, since bad UTF-8 in a field without a column does no harm
                try:
                    check_texts(record[name])
                except UnicodeEncodeError:
                    raise WrongRecord(f'Column "{name}" has a string that is no valid UTF-8.') from None
        if self._nulls:
            record.update(self._nulls)
        return record

    def fault(self, value: bytes, start: int, exc: Exception) -> str:
        """Return the end of a sentence: the field at which a body does not fit the schema, and the reason.

        Args:
            value: The record's value.
            start: Where the body begins.
            exc: The exception of fastavro, whose text names neither the field nor, in most cases, the reason.
        """
        found = body_fault(self._schema, value, start)
        return f": {str(exc) or type(exc).__name__}" if found is None else f' at field "{found[0]}": {found[1]}'

    def _check_times(self, value: bytes, start: int) -> None:
        """Look for a time outside the years 1 to 9999. fastavro refuses the record, but does not name the column.

        Raises:
            WrongRecord: A column has such a time.
        """
        plain = index_checked(reading_schema(self._text, ()))
        record = self._read(value, start, "surrogateescape", plain)
        checks = NestedChecks(self._types)
        for column in self._times:
            try:
                checks.column(column)(record[column.name])
            except Misfit as exc:
                raise WrongRecord(misfit_detail(column, exc)) from None

    def _read(
        self, value: bytes, start: int, unicode_errors: str, schema: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        body = io.BytesIO(value)
        body.seek(start)
        record: dict[str, Any] = fastavro.schemaless_reader(  # type: ignore[assignment]  # the schema is a record's
            body, schema or self._reading, None, handle_unicode_errors=unicode_errors
        )
        if body.tell() != len(value):
            left = len(value) - body.tell()
            raise WrongRecord(f"There {are(left)} {counted(left, 'byte')} after the Avro body.")
        return record


def _body_of(columns: Sequence[StreamColumn], schema_id: int, schema: Any) -> AvroBody | str:
    """Return the reader of bodies with a schema; if the schema does not fit the columns, the fault of its records."""
    try:
        text = schema_text(schema)
        check_avro_columns(text, [(column.name, column.type) for column in columns], resolved=True)
    except AvroMismatch as error:
        return f"The schema with id {schema_id} does not fit the stream: {error.message}. {error.detail}"
    return AvroBody(columns, text)


def _single_object(value: bytes, header: bytes) -> int:
    if not value.startswith(header):
        raise WrongRecord(f"The value does not begin with {header.hex()}, which the stream's schema calls for.")
    return len(header)


def _confluent(value: bytes, _header: bytes) -> int:
    if len(value) < CONFLUENT_BYTES or value[0] != 0:
        raise WrongRecord(NO_SCHEMA_ID)
    return CONFLUENT_BYTES


def _raw(_value: bytes, _header: bytes) -> int:
    return 0


_BODIES: Mapping[str, Callable[[bytes, bytes], int]] = {
    "single-object": _single_object,
    "confluent": _confluent,
    "raw": _raw,
}
"""For each framing, the function that returns where the body begins."""


def _check_of(column: StreamColumn, types: AvroTypes) -> Callable[[Any], object] | None:
    """Return a check and conversion of a column's values; None if fastavro's values need neither."""
    if column.type.is_nested:
        return NestedChecks(types).column(column)
    return plain_check(column.type, str(types.found(types.fields[column.name]).get("type")))
