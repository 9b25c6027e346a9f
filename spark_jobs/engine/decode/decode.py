"""Decodes records of a source topic to `Events` and dead letters.

Whether a record is a dead letter depends on the record and its stream, never on the existing CQs (docs/expressions.md).
Therefore every column of every record is checked here, whether a CQ uses the column or not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import UNSET

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.change_format import is_change_format
from grouping.model.column_place import ColumnPlace
from grouping.model.sql_type import VARIANT
from grouping.settings.settings import Settings
from schemas.avro_writers import read_writers
from spark_jobs.engine.decode.avro_events import AvroReader
from spark_jobs.engine.decode.envelopes.change_events import envelopes, read_change_events
from spark_jobs.engine.decode.exploded_events import exploded_events
from spark_jobs.engine.decode.framing import bodies, has_framed_json, schema_ids
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_lenient import STRICT, Leniency
from spark_jobs.engine.decode.record_parts import PartsReader
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.output import dead_letters

__all__ = ["Events", "decode", "decode_pieces", "json_reader", "record_reader"]

_SHOWN_IDS = 5
"""The largest number of known schema ids in the detail of a dead letter."""


def decode_pieces(
    batch: pa.RecordBatch, stream: Stream, settings: Settings
) -> Iterator[tuple[Events, pa.RecordBatch | None]]:
    """Decode a batch of source records in pieces; without the stream's option `explode`, the batch is a single piece.

    Yields:
        For each piece, the good events; and dead letters for bad records, None if there are none.
    """
    if stream.explode:
        yield from exploded_events(batch, stream, _leniency(stream), _read_whole, settings)
    else:
        yield decode(batch, stream, settings)


def decode(batch: pa.RecordBatch, stream: Stream, settings: Settings) -> tuple[Events, pa.RecordBatch | None]:
    """Decode a batch of source records.

    Args:
        batch: Records with the columns key, value, partition, offset and timestamp of Spark's Kafka source. For a
            column FROM HEADER and for the field `_headers`, also with the column headers, a list of structs of key
            (string) and value (binary).
        stream: The stream, with its declared columns; must not have the option `explode`.
        settings: The settings, with the topic of dead letters.

    Returns:
        The good records, and a dead letter (code ``undecodable``) for each bad record; None if no record is bad.
    """
    if is_change_format(stream.format):
        return _decode_changes(batch, stream, settings)
    in_value = tuple(column for column in stream.columns if column.place.kind == "value")
    misfits: Counter[str] = Counter()
    values = batch["value"]
    if has_framed_json(stream):
        values, unframed = bodies(values)
        read, wrong, misfits = json_reader(in_value, _leniency(stream)).read(values)
        wrong |= unframed
    elif stream.format == "json":
        read, wrong, misfits = json_reader(in_value, _leniency(stream)).read(values)
    elif stream.format == "protobuf":
        read, wrong = _proto_reader(in_value, stream.descriptor or "", stream.message or "", stream.framing)(values)
    else:
        read, wrong = _avro_reader(stream, in_value, values)(values)
    outside = tuple(column for column in stream.columns if column.place.kind != "value")
    if outside:
        read, wrong = _with_parts(batch, stream, outside, read, wrong, misfits)
    read_whole = _read_framed if has_framed_json(stream) else _read_whole
    return _good_events(batch, stream, read, wrong, misfits, read_whole, settings)


def _decode_changes(batch: pa.RecordBatch, stream: Stream, settings: Settings) -> tuple[Events, pa.RecordBatch | None]:
    """Decode records that are changes of rows; a tombstone is no event."""
    batch, read, wrong, misfits = read_change_events(batch, stream, _leniency(stream))
    outside = tuple(column for column in stream.columns if column.place.kind == "header")
    if outside:
        read, wrong = _with_parts(batch, stream, outside, read, wrong, misfits)

    def read_whole(values: pa.Array) -> pa.Array:
        return _read_whole(pa.array(envelopes(values.to_pylist(), stream.format), pa.binary()))

    return _good_events(batch, stream, read, wrong, misfits, read_whole, settings)


def _good_events(
    batch: pa.RecordBatch,
    stream: Stream,
    read: Read,
    wrong: dict[int, str],
    misfits: Counter[str],
    read_whole: Callable[[pa.Array], pa.Array],
    settings: Settings,
) -> tuple[Events, pa.RecordBatch | None]:
    """Return the good records of a batch as events, and the dead letters of the bad records."""
    if not wrong:
        return Events(stream, batch, read, misfits, read_whole), None
    good = np.ones(batch.num_rows, bool)
    good[list(wrong)] = False
    events = Events(stream, batch.filter(pa.array(good)), read, misfits, read_whole)
    return events, dead_letters(batch, wrong, "undecodable", stream, settings)


_WHOLE = StreamColumn("_value", str(VARIANT), str(ColumnPlace("value", ())))


def _read_whole(values: pa.Array) -> pa.Array:
    """Return JSON records as VARIANTs. A record that no VARIANT can hold gives NULL, since the record may be good."""
    read, refused, _ = json_reader((_WHOLE,), STRICT).read(values)
    found = iter(read(_WHOLE))
    return pa.array([None if row in refused else next(found) for row in range(len(values))], pa.string())


def _read_framed(values: pa.Array) -> pa.Array:
    return _read_whole(bodies(values)[0])


def _leniency(stream: Stream) -> Leniency:
    return Leniency(stream.lenient, stream.timestamps)


Read = Callable[[StreamColumn], list[Any]]


def _with_parts(
    batch: pa.RecordBatch,
    stream: Stream,
    outside: tuple[StreamColumn, ...],
    read: Read,
    refused: dict[int, str],
    misfits: Counter[str],
) -> tuple[Read, dict[int, str]]:
    """Add the columns from keys and headers to the columns from the values."""
    found, wrong = _parts_reader(outside, _leniency(stream))(batch, misfits)
    of_value = [row for row in range(batch.num_rows) if row not in refused]
    kept = [place for place, row in enumerate(of_value) if row not in wrong]

    def column_of(column: StreamColumn) -> list[Any]:
        if column.name in found:
            return [found[column.name][of_value[place]] for place in kept]
        values = read(column)
        return values if len(kept) == len(values) else [values[place] for place in kept]

    return column_of, dict(sorted((wrong | refused).items()))


@lru_cache(maxsize=1024)
def _parts_reader(columns: tuple[StreamColumn, ...], leniency: Leniency) -> PartsReader:
    return PartsReader(columns, leniency)


@lru_cache(maxsize=1024)
def json_reader(columns: tuple[StreamColumn, ...], leniency: Leniency) -> JsonReader:
    """Return the reader for JSON records, made once for equal arguments."""
    return JsonReader(columns, leniency)


FormatReader = Callable[[pa.Array], tuple[Callable[[StreamColumn], list[object]], dict[int, str]]]
"""Reads the values of a batch. Returns a function that returns a column of the good records; and by row the faults of
the bad records.
"""


@lru_cache(maxsize=1024)
def record_reader(form: str, columns: tuple[StreamColumn, ...], schema: str, framing: str) -> FormatReader:
    """Return the reader for records of a format, made once for equal arguments.

    Args:
        form: ``json`` or ``avro``.
        columns: The declared columns.
        schema: The writer's schema, for Avro.
        framing: For Avro: ``single-object``, ``confluent`` or ``raw``.
    """
    return json_reader(columns, STRICT) if form == "json" else AvroReader.of_schema(columns, schema, framing)


def _avro_reader(stream: Stream, columns: tuple[StreamColumn, ...], values: pa.Array) -> FormatReader:
    """Return the reader of a stream's Avro records.

    If a stream has a single schema, the schema's id is that of the stream's first record. The evaluator stores this id
    with the stream before the first record is decoded. Without a stored id, the first id among `values` is used.
    """
    if stream.registry:
        return _registry_reader(columns, stream.schemas or "")
    if stream.schemas:
        return _writers_reader(columns, stream.schemas)
    schema = stream.avro_schema or ""
    if not stream.has_one_schema_id:
        return record_reader("avro", columns, schema, stream.framing)
    first = stream.schema_id
    if first is UNSET:
        first = next(iter(schema_ids(values)), 0)
    return _single_writer_reader(columns, first, schema)


@lru_cache(maxsize=256)
def _writers_reader(columns: tuple[StreamColumn, ...], schemas: str) -> FormatReader:
    writers = read_writers(schemas)
    ids = ", ".join(map(str, sorted(writers)[:_SHOWN_IDS])) + (", …" if len(writers) > _SHOWN_IDS else "")
    return AvroReader.of_writers(
        columns, writers, lambda found: f"The record has the schema id {found}, and the stream has schemas for {ids}."
    )


@lru_cache(maxsize=256)
def _proto_reader(columns: tuple[StreamColumn, ...], descriptor: str, message: str, framing: str) -> FormatReader:
    from spark_jobs.engine.decode.proto_events import ProtoReader

    return ProtoReader(columns, descriptor, message, framing)


@lru_cache(maxsize=256)
def _registry_reader(columns: tuple[StreamColumn, ...], schemas: str) -> FormatReader:
    """Return the reader of records with the schemas that a registry has returned for their ids."""
    return AvroReader.of_writers(
        columns,
        read_writers(schemas) if schemas else {},
        lambda found: f"The registry has no schema with the id {found}.",
    )


@lru_cache(maxsize=256)
def _single_writer_reader(columns: tuple[StreamColumn, ...], first: int, schema: str) -> FormatReader:
    return AvroReader.of_writers(
        columns,
        {first: json.loads(schema)},
        lambda found: (
            f"The record has the schema id {found}, and the stream's schema has the id {first}, which its first record"
            " named. The option schemas takes several."
        ),
    )
