"""The digest of a tick's matches: the rows that its clause selects, divided into parts for records."""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cmp_to_key, lru_cache
from itertools import groupby, islice
from math import isnan
from typing import Any, NamedTuple

import msgspec

from grouping.digests.rows import IN_MEMORY, DigestRow, DigestRows
from grouping.digests.sorted_rows import sorted_rows
from grouping.digests.stored_rows import shown_row, stored_values
from grouping.model.query import DigestClause
from grouping.model.sql_type import BINARY, DATE, TIMESTAMP, UNKNOWN, SqlType
from grouping.plan.group import SelectList
from grouping.values.equal_json import equal_json
from grouping.values.times import instant

__all__ = ["PART_BYTES", "Digest", "DigestTimes", "column_type", "digest_parts", "parts_of", "shown"]

PART_BYTES = 900_000
"""The largest number of bytes of rows in a part: Kafka's default limit of 1 MiB for a record, less a margin.

A longer row has a part of its own.
"""

_encode = msgspec.json.encode


class DigestTimes(NamedTuple):
    """The times of a digest, epoch milliseconds."""

    fired_ms: int
    from_ms: int
    tick_ms: int


class Digest(NamedTuple):
    """The rows of a digest, and the number of its matches."""

    rows: DigestRows
    matches: int
    """The number of matches."""
    late: int
    """The number of matches with times before the beginning of the digest."""

    @classmethod
    def of(cls, clause: DigestClause, sql_type: SqlType, matches: DigestRows, from_ms: int) -> Digest:
        """Select the rows of a digest. Afterwards, the records of the digest can be written without further disk space.

        Args:
            clause: The digest clause; its columns are names of the SELECT list.
            sql_type: The type of TOP's column, from `column_type`.
            matches: All matches of the tick, in source order per partition.
            from_ms: The instant at which the digest begins.

        Raises:
            RowsUnavailable: There is no room for the rows.
        """
        late = sum(row.time_ms < from_ms for row in matches)
        return cls(shown(clause, sql_type, matches), len(matches), late)


def digest_parts(
    source: str, destination_id: str, digest: Digest, frame: DigestTimes
) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """Yield value and headers of a digest's records, one for each part.

    Args:
        source: The stream's name.
        destination_id: The destination's id.
        digest: The digest.
        frame: The digest's times.
    """
    for part, body in enumerate(parts_of(digest.rows, digest.matches, frame), 1):
        yield body, _headers(source, destination_id, frame, part)


def column_type(clause: DigestClause, select: SelectList | None) -> SqlType:
    """Return the type of TOP's column from the SELECT list; `UNKNOWN` for clauses other than TOP."""
    if clause.kind != "top":
        return UNKNOWN
    assert select is not None, "TOP compares by a column's type"
    return next(getattr(item.expression, "type", UNKNOWN) for item in select.items if item.name == clause.columns[0])


def shown(clause: DigestClause, sql_type: SqlType, rows: DigestRows, *, in_memory: int = IN_MEMORY) -> DigestRows:
    """Return the rows that a digest shows.

    Args:
        clause: The digest clause; its columns are names of the SELECT list.
        sql_type: The type of TOP's column, from `column_type`.
        rows: All matches of the tick, in source order per partition.
        in_memory: Approximate bytes of rows that are held at once.

    Raises:
        RowsUnavailable: There is no room for the rows.
    """
    match clause.kind:
        case "count":
            return DigestRows()
        case "latest":
            return DigestRows(_latest(clause.columns, rows, in_memory), in_memory=in_memory)
        case "top":
            return DigestRows(_top(clause.rows, clause.columns[0], sql_type, rows, in_memory), in_memory=in_memory)
        case _:
            return rows


def _rank(row: DigestRow) -> tuple[int, int, int]:
    return (row.time_ms, row.partition, row.offset)


def _latest(columns: Sequence[str], rows: Iterable[DigestRow], in_memory: int) -> Iterable[DigestRow]:
    """Keep the last row per key, by record time, then partition and offset."""

    def key_of(row: DigestRow) -> bytes:
        values = stored_values(row.body)
        return equal_json([values[column] for column in columns])

    def last_of_each(some: Iterable[DigestRow]) -> Iterator[DigestRow]:
        return (deque(group, maxlen=1).pop() for _, group in groupby(some, key_of))

    last = sorted_rows(rows, lambda row: (key_of(row), _rank(row)), last_of_each, in_memory=in_memory)
    return sorted_rows(last, lambda row: (row.partition, row.offset), lambda some: some, in_memory=in_memory)


def _top(most: int, column: str, sql_type: SqlType, rows: Iterable[DigestRow], in_memory: int) -> Iterable[DigestRow]:
    """Keep the rows with the largest values, largest first. NULLs come last; of equal values, the earliest is first."""
    read = _comparable(sql_type)

    def key_of(row: DigestRow) -> tuple[bool, Any, tuple[int, int, int]]:
        value = stored_values(row.body)[column]
        return value is None, 0 if value is None else _descending(read(value)), _rank(row)

    return sorted_rows(rows, key_of, lambda some: islice(some, most), in_memory=in_memory)


def _compared(one: Any, other: Any) -> int:
    if _is_nan(one) or _is_nan(other):  # SQL: NaN is greater than all numbers, and equal to itself
        return int(_is_nan(other)) - int(_is_nan(one))
    return int(one < other) - int(one > other)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


_descending = cmp_to_key(_compared)


def _comparable(sql_type: SqlType) -> Callable[[Any], Any]:
    """Return a function that turns JSON values of an SQL type into Python values with the order of this type."""
    if sql_type.is_decimal:
        return Decimal
    if sql_type == TIMESTAMP:
        return datetime.fromisoformat
    if sql_type == DATE:
        return date.fromisoformat
    if sql_type == BINARY:
        return b64decode
    if not sql_type.is_ordered:
        return _encode  # CREATE refuses other types, but CQs of earlier versions may have them
    return lambda value: value


def parts_of(rows: Iterable[DigestRow], count: int, frame: DigestTimes) -> Iterator[bytes]:
    """Yield the values of a digest's records, at least one.

    Args:
        rows: The digest's rows. If there are several parts, the rows are read twice, since each part states how many
            parts there are.
        count: The number of matches.
        frame: The digest's times.
    """
    first = list(islice(_parts(rows), 2))
    parts = 1 if len(first) == 1 else sum(1 for _ in _parts(rows))
    fired, since, until = _text(frame.fired_ms), _text(frame.from_ms), _text(frame.tick_ms)
    head = b'{"fired_at":"%b","from":"%b","to":"%b","count":%d' % (fired, since, until, count)
    for number, bodies in enumerate(first if parts == 1 else _parts(rows), 1):
        yield b'%b,"part":%d,"parts":%d,"rows":[%b]}' % (head, number, parts, b",".join(bodies))


def _parts(rows: Iterable[DigestRow]) -> Iterator[list[bytes]]:
    """Divide rows into the bodies of parts; without rows, there is one empty part."""
    part: list[bytes] = []
    size = 0
    for row in rows:
        body = shown_row(row.body)
        if part and size + len(body) > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(body)
        size += len(body) + 1
    yield part


@lru_cache(maxsize=4096)
def _text(epoch_ms: int) -> bytes:
    """Return an instant as text; cached, since many digests have the same instants."""
    return instant(epoch_ms).encode()


def _headers(source: str, destination_id: str, frame: DigestTimes, part: int) -> tuple[tuple[str, bytes], ...]:
    return (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"cq.digest"),
        ("ce_source", source.encode()),
        ("ce_id", f"{destination_id}/{frame.tick_ms}/{part}".encode()),
        ("ce_time", _text(frame.tick_ms)),
    )
