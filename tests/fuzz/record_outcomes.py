"""The outcome of each record of a batch: events with values of the declared types, dead letters, changes of a table."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from gateway.evaluation.records import PlacedRecord, source_batch
from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode_pieces
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.output import dead_letter_code
from tests.fuzz.record_kinds import KafkaRecord, RecordKind, record_kinds
from tests.fuzz.record_mutations import broken_record
from tests.unit.matching.event_batches import header

__all__ = ["Outcomes", "check_batch", "mixed_records", "outcomes", "records_batch"]

_SETTINGS = Settings()
_AT = datetime(2026, 11, 21, tzinfo=UTC)
_FIRST = 1_000
_OF_FORMAT = {"json": ["_value"], "debezium-json": ["_value"], "maxwell-json": ["_value"], "canal-json": ["_value"]}


class Outcomes(NamedTuple):
    """The results of the records of a batch."""

    rows: dict[int, list[str]]
    """By place of a record: its events or changes, as text."""
    letters: dict[int, str]
    """By place of a record: the detail of its dead letter."""
    misfits: Counter[str]
    """By column: how many values of a lenient stream became NULL because they did not fit."""


def mixed_records(rng: random.Random, kind: RecordKind, count: int) -> list[KafkaRecord]:
    """Return records of a kind, of which about a third is well-formed."""
    chosen = [rng.choice(kind.records) for _ in range(count)]
    return [record if rng.random() < 0.3 else broken_record(rng, kind, record) for record in chosen]


def records_batch(records: list[KafkaRecord]) -> pa.RecordBatch:
    """Return records as a task has them."""
    return source_batch(
        PlacedRecord(value, key, _AT, 0, _FIRST + place, headers) for place, (value, key, headers) in enumerate(records)
    )


def check_batch(rng: random.Random, name: str, count: int) -> tuple[list[KafkaRecord], Outcomes]:
    """Decode a batch of broken and well-formed records, and check it beside each of its records alone."""
    kind = record_kinds()[name]
    records = mixed_records(rng, kind, count)
    batch = records_batch(records)
    found = outcomes(kind.source, batch)
    misfits: Counter[str] = Counter()
    for place, record in enumerate(records):
        alone = outcomes(kind.source, batch.slice(place, 1))
        assert found.rows.get(place) == alone.rows.get(place), record
        assert found.letters.get(place) == alone.letters.get(place), record
        assert set(alone.rows) | set(alone.letters) <= {place}
        misfits += alone.misfits
        _check_count(kind.source, record, alone.rows.get(place, []), place in alone.letters)
    assert misfits == found.misfits, (misfits, found.misfits)
    return records, found


def outcomes(source: Stream | Table, batch: pa.RecordBatch) -> Outcomes:
    """Decode records, and check the types of all values and the form of all dead letters."""
    found = Outcomes({}, {}, Counter())
    if isinstance(source, Table):
        changes, letters = decode_changes(batch, source, _SETTINGS)
        changes.rows.validate(full=True)
        for column in source.columns:
            assert changes.rows.column(column.name).type == arrow_type(column.type)
        keys = [column.to_pylist() for column in changes.keys]
        rows = changes.rows.to_pylist()
        for at, (offset, row) in enumerate(zip(changes.offset.tolist(), changes.row.tolist(), strict=True)):
            key = [values[at] for values in keys]
            lacking = [name for name, mask in changes.unavailable.items() if row >= 0 and mask[row]]
            text = repr((key, rows[row] if row >= 0 else None, lacking))
            found.rows.setdefault(offset - _FIRST, []).append(text)
        for offset in changes.emptied:
            found.rows.setdefault(offset - _FIRST, []).append("emptied")
        _add_letters(letters, source, found)
        return found
    for events, letters in decode_pieces(batch, source, _SETTINGS):
        names = [column.name for column in source.columns]
        names += [name for name in ("_key", "_headers", *_OF_FORMAT.get(source.format, ())) if name not in names]
        columns = []
        for name in names:
            array = events.column(name)
            array.validate(full=True)
            if events.declares(name):
                assert arrow_type(events.type_of(name)) == array.type
            columns.append(array.to_pylist())
            assert len(array) == events.count
        assert len(events.record_bytes) == len(events.time_ms) == events.count
        for offset, *row in zip(events.offsets.tolist(), *columns, strict=True):
            found.rows.setdefault(offset - _FIRST, []).append(repr(row))
        found.misfits.update(events.misfits)
        _add_letters(letters, source, found)
    return found


def _add_letters(letters: pa.RecordBatch | None, source: Stream | Table, found: Outcomes) -> None:
    if letters is None:
        return
    assert dead_letter_code(letters) == "undecodable"
    for letter in letters.to_pylist():
        topic, partition, offset = header(letter, "source").split("/")
        assert (source.topic, "0", "undecodable") == (topic, partition, header(letter, "code"))
        place = int(offset) - _FIRST
        assert place not in found.letters, "one dead letter for each record"
        found.letters[place] = header(letter, "detail")


def _check_count(source: Stream | Table, record: KafkaRecord, rows: list[Any], is_letter: bool) -> None:
    """Check how many outcomes a record has: one, unless an array or a change of a database has several or none."""
    if isinstance(source, Stream) and source.explode:
        return
    if isinstance(source, Table):
        assert not (rows and is_letter), record
    elif source.format in ("json", "avro", "protobuf"):
        assert len(rows) + is_letter == 1, record
    else:
        assert len(rows) + is_letter <= 1, record
