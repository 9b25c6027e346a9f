"""Decodes records with an array of events (the option `explode`) to `Events` of their elements, and dead letters.

An element is read like a record. For a record with bad elements, there is a single dead letter; its good elements are
events. Events come in pieces of bounded size, because a record may have a hundred thousand elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.column_place import RecordPath
from grouping.model.explode import explode_levels
from grouping.model.wording import counted
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.framing import bodies, has_framed_json
from spark_jobs.engine.decode.json_events import JsonReader
from spark_jobs.engine.decode.json_exact import WrongRecord
from spark_jobs.engine.decode.json_explode import ExplodedRecord, Exploder
from spark_jobs.engine.decode.json_lenient import Leniency
from spark_jobs.engine.decode.record_parts import PartsReader
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.output import dead_letters
from spark_jobs.engine.rows.record_fields import repeated_records
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["exploded_events"]

_AT_ONCE = 10_000
"""The largest number of events in a piece."""
_REPEATED_BYTES = 64 << 20
"""The largest number of repeated bytes in a run of events, unless a single event has more.

An enclosing value, a key or headers are repeated for each event of their record.
"""

Values = list[Any]


class _EventPiece:
    """Some events: elements of consecutive records."""

    def __init__(self, levels: Sequence[int]) -> None:
        self.elements: list[Any] = []
        """The text of each event, or the decoded event (`json_events.Element`)."""
        self.around: dict[int, list[bytes]] = {level: [] for level in levels}
        """The enclosing values of the events, by level."""
        self._places: dict[int, list[Ints]] = {level: [] for level in levels}
        self._spans: list[tuple[int, int, int]] = []
        """For each record: its row in the batch, and the bounds of its elements in this piece."""

    def add(self, row: int, record: ExplodedRecord, begin: int, end: int) -> None:
        """Add elements of a record."""
        self._spans.append((row, begin, end))
        elements = record.layers[-1]
        self.elements += elements if len(elements) == end - begin else elements[begin:end]
        for level, places in self._places.items():
            some = record.around(level)[begin:end]
            first, last = int(some[0]), int(some[-1])
            places.append(some - first + len(self.around[level]))
            self.around[level] += record.layers[-1 - level][first : last + 1]

    def places(self, level: int) -> Ints:
        """Return for each event the index of its enclosing value in `around`."""
        return np.concatenate([np.zeros(0, np.int64), *self._places[level]])

    def origins(self) -> tuple[Ints, Ints]:
        """Return for each event the row of its record in the batch, and its place among the record's elements."""
        spans = np.array(self._spans, np.int64).reshape(-1, 3)
        counts = spans[:, 2] - spans[:, 1]
        begins = np.cumsum(counts) - counts
        return np.repeat(spans[:, 0], counts), np.arange(counts.sum()) - np.repeat(begins - spans[:, 1], counts)


class _ReadPiece(NamedTuple):
    """The good events of a piece."""

    rows: Ints
    """For each event, the row of its record in the batch."""
    numbers: Ints
    """For each event, its place among the elements of its record."""
    read: Callable[[StreamColumn], Values]
    """Returns a column of the events."""
    repeated: Ints
    """For each event, the number of bytes that it repeats from its record and from its enclosing values."""


class _ExplodedReader:
    """Reads the records of one stream."""

    def __init__(self, columns: tuple[StreamColumn, ...], levels: tuple[RecordPath, ...], leniency: Leniency) -> None:
        self._elements = JsonReader([each for each in columns if each.place.kind == "value"], leniency)
        self._explode = Exploder(levels, self._elements.element)
        self._outer = {
            level: [each for each in columns if each.place.level == level]
            for level in sorted({each.place.level for each in columns} - {0})
        }
        self._outer_readers = {level: JsonReader(some, leniency, any_json=True) for level, some in self._outer.items()}
        parts = [each for each in columns if each.place.kind in ("key", "header")]
        self._parts = PartsReader(parts, leniency) if parts else None

    def pieces(self, values: pa.Array, wrong: dict[int, str]) -> Iterator[_EventPiece]:
        """Cut records into pieces; the last piece may be empty. The faults of bad records are added to `wrong`."""
        piece = _EventPiece([*self._outer])
        delicate = self._elements.delicate(values)
        for row, value in enumerate(values.to_pylist()):
            try:
                record = self._explode(value, decoded=row not in delicate)
            except WrongRecord as exc:
                wrong[row] = str(exc)
                continue
            begin, count = 0, len(record.layers[-1])
            while begin < count:
                end = min(count, begin + _AT_ONCE - len(piece.elements))
                piece.add(row, record, begin, end)
                begin = end
                if len(piece.elements) == _AT_ONCE:
                    yield piece
                    piece = _EventPiece([*self._outer])
        yield piece

    def decode(
        self, piece: _EventPiece, batch: pa.RecordBatch, wrong: dict[int, str], misfits: Counter[str]
    ) -> _ReadPiece:
        """Read the columns of a piece; the fault of each bad event is added to `wrong`."""
        rows, numbers = piece.origins()
        read, refused, unfit = self._elements.read_elements(piece.elements)
        misfits.update(unfit)
        wrong.update({at: f"Element {numbers[at]}: {why}" for at, why in refused.items()})
        found: dict[str, tuple[Values, Ints]] = {}
        repeated = np.zeros(rows.size, np.int64)

        def add(values: Mapping[str, Values], places: Ints, faults: Mapping[int, str]) -> None:
            if faults:
                bad = np.flatnonzero(np.isin(places, [*faults])).tolist()
                wrong.update({at: faults[int(places[at])] for at in bad if at not in wrong})
            found.update({name: (some, places) for name, some in values.items()})

        for level, columns in self._outer.items():
            places = piece.places(level)
            values, faults = self._read_around(level, piece.around[level], misfits)
            sizes = np.zeros(len(piece.around[level]), np.int64)
            for column in columns:
                sizes += np.fromiter(map(_size, values[column.name]), np.int64, sizes.size)
            repeated += sizes[places]
            add(values, places, faults)
        if rows.size:
            is_first = np.diff(rows, prepend=-1) > 0
            places = np.cumsum(is_first) - 1
            parts = [name for name in ("key", "headers") if name in batch.schema.names]
            records = batch.select(parts).take(pa.array(rows[is_first]))
            repeated += _record_sizes(records)[places]
            if self._parts is not None:
                values, faults = self._parts(records, misfits)
                add(values, places, faults)
        kept = of_kept = np.arange(rows.size)
        if wrong:
            kept = np.delete(kept, [*wrong])
            of_kept = np.flatnonzero(np.isin(np.delete(of_kept, [*refused]), kept))

        def column_of(column: StreamColumn) -> Values:
            if column.name in found:
                values, places = found[column.name]
                return [values[place] for place in places[kept].tolist()]
            if not kept.size:
                return []
            values = read(column)
            return values if len(of_kept) == len(values) else [values[place] for place in of_kept.tolist()]

        return _ReadPiece(rows[kept], numbers[kept], column_of, repeated[kept])

    def texts(self, values: pa.Array, rows: Ints, numbers: Ints) -> list[bytes]:
        """Return the texts of events.

        Args:
            values: The records of the batch.
            rows: For each event, the row of its record; ascending.
            numbers: For each event, its place among the elements of its record.
        """
        found: list[bytes] = []
        bounds = np.flatnonzero(np.diff(rows, prepend=-1, append=-1)).tolist()
        for begin, end in pairwise(bounds):
            elements = self._explode(values[int(rows[begin])].as_py()).layers[-1]
            found += elements if len(elements) == end - begin else [elements[at] for at in numbers[begin:end].tolist()]
        return found

    def _read_around(
        self, level: int, texts: list[bytes], misfits: Counter[str]
    ) -> tuple[dict[str, Values], dict[int, str]]:
        """Return the columns of enclosing values, with None for bad values; and by index the faults of bad values."""
        read, refused, unfit = self._outer_readers[level].read(pa.array(texts, pa.binary()))
        misfits.update(unfit)
        values: dict[str, Values] = {}
        for column in self._outer[level]:
            some = iter(read(column))
            values[column.name] = [None if place in refused else next(some) for place in range(len(texts))]
        return values, refused


@lru_cache(maxsize=1024)
def _reader(columns: tuple[StreamColumn, ...], levels: tuple[RecordPath, ...], leniency: Leniency) -> _ExplodedReader:
    return _ExplodedReader(columns, levels, leniency)


def exploded_events(
    batch: pa.RecordBatch,
    stream: Stream,
    leniency: Leniency,
    read_whole: Callable[[pa.Array], pa.Array],
    settings: Settings,
) -> Iterator[tuple[Events, pa.RecordBatch | None]]:
    """Yield the events of a batch of records in pieces, each with the dead letters found since the preceding piece.

    Args:
        batch: The records, with the same columns as for `decode`.
        stream: The stream of the records, which must have `explode`.
        leniency: The options of the stream by which more values fit.
        read_whole: Returns the VARIANT of each element.
        settings: The settings, with the topic of dead letters.
    """
    reader = _reader(stream.columns, explode_levels(stream.explode or "$"), leniency)
    values, unframed = bodies(batch["value"]) if has_framed_json(stream) else (batch["value"], {})
    faults: dict[int, str] = {}
    """By row, the first faults of records that have no dead letter yet."""
    bad: Counter[int] = Counter()
    """By row, the number of bad elements."""
    for piece in reader.pieces(values, faults):
        wrong: dict[int, str] = {}
        misfits: Counter[str] = Counter()
        decoded = reader.decode(piece, batch, wrong, misfits)
        rows = piece.origins()[0]
        for at, why in sorted(wrong.items()):
            faults.setdefault(int(rows[at]), why)
            bad[int(rows[at])] += 1
        # The next piece may have further elements of a full piece's last record, so the record's dead letter waits.
        until = int(rows[-1]) if len(piece.elements) == _AT_ONCE else batch.num_rows
        details = {row: unframed.get(row, faults.pop(row) + _more(bad[row])) for row in sorted(faults) if row < until}
        letters = dead_letters(batch, details, "undecodable", stream, settings) if details else None
        columns: dict[str, Values] = {}
        for begin, end in _runs(decoded.repeated):
            run = slice(begin, end)
            yield _events(reader, decoded, run, batch, values, stream, misfits, read_whole, columns), letters
            letters, misfits = None, Counter()


def _more(bad: int) -> str:
    """Return the part of a detail that counts the bad elements of a record after the first one."""
    return f" (and {counted(bad - 1, 'other')})" if bad > 1 else ""


def _runs(repeated: Ints) -> Iterator[tuple[int, int]]:
    """Yield the bounds of at least one run of events. A run repeats at most `_REPEATED_BYTES`, or is a single event."""
    ends, begin = np.cumsum(repeated), 0
    while True:
        before = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, before + _REPEATED_BYTES, side="right")), min(begin + 1, len(ends)))
        yield begin, end
        begin = end
        if begin >= len(ends):
            return


def _events(
    reader: _ExplodedReader,
    decoded: _ReadPiece,
    run: slice,
    batch: pa.RecordBatch,
    values: pa.Array,
    stream: Stream,
    misfits: Counter[str],
    read_whole: Callable[[pa.Array], pa.Array],
    columns: dict[str, Values],
) -> Events:
    """Return a run of the good events of a piece.

    Args:
        reader: The reader of the stream.
        decoded: The piece.
        run: The events.
        batch: The records.
        values: The JSON of the records.
        stream: Their stream.
        misfits: By column, the number of values that did not fit.
        read_whole: Returns the VARIANT of each element.
        columns: The columns of the piece that have been read, by name. The function adds to them, for the other runs.
    """
    rows, numbers = decoded.rows[run], decoded.numbers[run]

    def read(column: StreamColumn) -> Values:
        if column.name not in columns:
            columns[column.name] = decoded.read(column)
        return columns[column.name][run]

    def whole(_: pa.Array) -> pa.Array:
        return read_whole(pa.array(reader.texts(values, rows, numbers), pa.binary()))

    def sizes() -> Ints:
        own = (events.column(column.name) for column in stream.columns if column.place.kind == "value")
        found: Ints = np.sum([decoded.repeated[run], *map(value_sizes, own)], axis=0)
        return found

    source = repeated_records(batch, rows)
    events = Events(stream, source, read, misfits, whole, number=numbers, sizes=sizes)
    return events


def _record_sizes(records: pa.RecordBatch) -> Ints:
    """Return for each record the bytes of its key, and twice the bytes of its headers (see `Events.record_bytes`)."""
    sizes: Ints = pc.fill_null(pc.binary_length(records["key"]), 0).to_numpy().astype(np.int64)
    return sizes + 2 * value_sizes(records["headers"]) if "headers" in records.schema.names else sizes


def _size(value: Any) -> int:
    """Return the approximate bytes of a value."""
    match value:
        case str() | bytes():
            return len(value)
        case list():
            return sum(map(_size, value)) + len(value)
        case dict():
            return sum(len(name) + _size(each) for name, each in value.items())
    return 0
