"""Streams of changes: each record is an event, whose columns are fields of its envelope and of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.change_format import ValueEncoding
from grouping.model.column_place import RecordPath
from spark_jobs.engine.decode.envelopes.canal import row_count
from spark_jobs.engine.decode.envelopes.debezium import EnvelopeRecord, split_record
from spark_jobs.engine.decode.envelopes.json_parts import BLANKS
from spark_jobs.engine.decode.envelopes.row_writer import RowWriter, flat_columns
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.json_lenient import Leniency

__all__ = ["ChangeEvents", "envelopes", "read_change_events"]

_NOTHING = b"null"
_MILLIS, _MICROS, _NANOS = 1_000, 1_000_000, 1_000_000_000
_DEBEZIUM_TIMES: dict[RecordPath, int] = {
    (*above, name): per_second
    for above in ((), ("source",))
    for name, per_second in (("ts_ms", _MILLIS), ("ts_us", _MICROS), ("ts_ns", _NANOS))
}
_TIMES: dict[str, dict[RecordPath, int]] = {
    "debezium-json": _DEBEZIUM_TIMES,
    "maxwell-json": {("ts",): 1},
    "canal-json": {("es",): _MILLIS, ("ts",): _MILLIS},
}
"""By format: the envelope's own fields with a time since 1970, and the number of each field's units in a second."""
_SEVERAL_ROWS = (
    "The record has {count} rows, and a column takes one of them. A stream with format = 'json', lenient = true, "
    "explode = '$.data[*]' has an event for each row."
)


class ChangeEvents(NamedTuple):
    """The records of a batch that are events."""

    batch: pa.RecordBatch
    """The records without tombstones."""
    column: Callable[[StreamColumn], list[Any]]
    """Returns a column of the good records."""
    wrong: dict[int, str]
    """Row in `batch` of a bad record → the fault of the record."""
    misfits: Counter[str]
    """By column of a lenient stream, the number of values that did not fit and became NULL."""


class _ChangeReader:
    """Reads the records of one stream."""

    def __init__(self, columns: tuple[StreamColumn, ...], encoding: ValueEncoding, leniency: Leniency) -> None:
        self._form = encoding.form
        opens: tuple[RecordPath, ...] = (("before",), ("after",)) if encoding.form == "debezium-json" else ()
        self._writer = RowWriter(columns, encoding, opens=opens, times=_TIMES[encoding.form])
        self._json = JsonReader(flat_columns(columns), leniency)
        self._lenient = leniency.lenient
        self._one_row = encoding.form == "canal-json" and any(
            each.place.path is not None and each.place.path[:1] in (("data",), ("old",)) and len(each.place.path) > 1
            for each in columns
        )

    def read(self, batch: pa.RecordBatch) -> ChangeEvents:
        """Read a batch of records with the columns key and value."""
        kept: list[int] = []
        texts: list[bytes | None] = []
        faults: dict[int, str] = {}
        misfits: Counter[str] = Counter()
        for row, (value, key) in enumerate(zip(batch["value"].to_pylist(), batch["key"].to_pylist(), strict=True)):
            try:
                record = _split(value, self._form)
                if record is None:
                    continue
                if self._one_row and (count := row_count(record.envelope)) > 1:
                    raise WrongRecord(_SEVERAL_ROWS.format(count=count))
                counted = misfits if self._lenient else None
                texts.append(self._writer.write(record.envelope, record.schema, key, counted).text)
            except WrongRecord as exc:
                faults[len(kept)] = str(exc)
                texts.append(None)
            kept.append(row)
        if len(kept) < batch.num_rows:
            batch = batch.take(pa.array(kept, pa.int64()))
        column, wrong, unfit = self._json.read(pa.array(texts, pa.binary()))
        misfits.update(unfit)
        return ChangeEvents(batch, column, dict(sorted((wrong | faults).items())), misfits)


def read_change_events(batch: pa.RecordBatch, stream: Stream, leniency: Leniency) -> ChangeEvents:
    """Read, for a stream of changes, the columns that are in the values and keys of records.

    Args:
        batch: The records, with the columns key and value.
        stream: The stream.
        leniency: The options of the stream by which more values fit.
    """
    inside = tuple(column for column in stream.columns if column.place.kind in ("value", "key"))
    return _reader(inside, stream.encoding, leniency).read(batch)


@lru_cache(maxsize=1024)
def _reader(columns: tuple[StreamColumn, ...], encoding: ValueEncoding, leniency: Leniency) -> _ChangeReader:
    return _ChangeReader(columns, encoding, leniency)


def envelopes(values: Sequence[bytes | None], form: str) -> list[bytes | None]:
    """Return the envelopes of records, for the field `_value`; None for a record without an envelope."""
    found: list[bytes | None] = []
    for value in values:
        try:
            record = _split(value, form)
        except WrongRecord:
            record = None
        found.append(None if record is None else record.envelope)
    return found


def _split(value: bytes | None, form: str) -> EnvelopeRecord | None:
    """Return a record without wrapping, of any format of change events; None for a tombstone."""
    if form == "debezium-json":
        return split_record(value)
    value = None if value is None else value.strip(BLANKS)
    return None if value is None or value == _NOTHING else EnvelopeRecord(value)
