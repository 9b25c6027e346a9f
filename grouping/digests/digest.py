"""A digest out of the matches of one tick: which rows it shows, and how it is cut into parts. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from grouping.digests.rows import Row, Rows
from grouping.group import SelectList
from grouping.query import DigestClause
from grouping.times import instant

__all__ = ["PART_BYTES", "Frame", "column_type", "digest_parts", "parts_of", "shown"]

PART_BYTES = 900_000
"""A part's rows, at most: Kafka's default of 1 MiB a record, less ample room. A longer row has a part of its own."""

_SLACK = 1000

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Frame(NamedTuple):
    """The times of a digest, epoch milliseconds."""

    fired_ms: int
    from_ms: int
    tick_ms: int


def digest_parts(
    source: str, destination_id: str, clause: DigestClause, kind: str, rows: Rows, frame: Frame
) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """Yield value and headers of a digest's records, one for each part.

    Args:
        source: The stream's name.
        destination_id: Whose digest.
        clause: What was asked for; its columns are names of the SELECT list.
        kind: As `column_type` gives it.
        rows: All matches, in source order per partition.
        frame: The digest's times.
    """
    for part, body in enumerate(parts_of(shown(clause, kind, rows), len(rows), frame), 1):
        yield body, _headers(source, destination_id, frame, part)


def column_type(clause: DigestClause, select: SelectList | None) -> str:
    """Return the type of TOP's column, out of the SELECT list; empty for other clauses, which need none."""
    if clause.kind != "top":
        return ""
    assert select is not None, "TOP compares by a column's type"
    return next(getattr(item.expression, "type", "") for item in select.items if item.name == clause.columns[0])


def shown(clause: DigestClause, kind: str, rows: Iterable[Row]) -> Iterable[Row]:
    """Return the rows that a digest shows, given all its matches in source order per partition.

    Args:
        clause: What was asked for; its columns are names of the SELECT list.
        kind: As `column_type` gives it.
        rows: All matches; gone through once, and only what is shown is held.
    """
    match clause.kind:
        case "count":
            return []
        case "latest":
            return _latest(clause.columns, rows)
        case "top":
            return _top(clause.rows, clause.columns[0], kind, rows)
        case _:
            return rows


def _rank(row: Row) -> tuple[int, int, int]:
    return (row.time_ms, row.partition, row.offset)


def _latest(columns: Sequence[str], rows: Iterable[Row]) -> list[Row]:
    """Keep the last row per key, by record time, then partition and offset."""
    last: dict[tuple[Any, ...], tuple[int, Row]] = {}
    for number, row in enumerate(rows):
        values = _decode(row.body)
        key = tuple(values[column] for column in columns)
        if key not in last or _rank(last[key][1]) < _rank(row):
            last[key] = (number, row)
    return [row for _, row in sorted(last.values(), key=lambda found: found[0])]


def _top(most: int, column: str, kind: str, rows: Iterable[Row]) -> list[Row]:
    """Keep the largest, largest first; NULLs last, ties earliest first."""
    read = _comparable(kind)
    best: list[tuple[Any, Row]] = []
    for row in rows:
        value = _decode(row.body)[column]
        best.append((None if value is None else read(value), row))
        if len(best) >= 2 * most + _SLACK:
            best = _largest(most, best)
    return [row for _, row in _largest(most, best)]


def _largest(most: int, rows: list[tuple[Any, Row]]) -> list[tuple[Any, Row]]:
    rows.sort(key=lambda pair: _rank(pair[1]))
    known = [pair for pair in rows if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=True)  # which keeps the order of ties
    return (known + [pair for pair in rows if pair[0] is None])[:most]


def _comparable(kind: str) -> Callable[[Any], Any]:
    """Return what makes a JSON value of a type comparable as the type is."""
    if kind.startswith("DECIMAL"):
        return Decimal
    if kind == "TIMESTAMP":
        return datetime.fromisoformat
    if kind == "DATE":
        return date.fromisoformat
    return lambda value: value


def parts_of(rows: Iterable[Row], count: int, frame: Frame) -> Iterator[bytes]:
    """Yield the values of a digest's records, one at least.

    Args:
        rows: What is shown; gone through twice, since each part tells how many there are.
        count: Of all matches.
        frame: The digest's times.
    """
    parts = sum(1 for _ in _groups(rows))
    fired, since, until = _text(frame.fired_ms), _text(frame.from_ms), _text(frame.tick_ms)
    head = b'{"fired_at":"%b","from":"%b","to":"%b","count":%d' % (fired, since, until, count)
    for number, bodies in enumerate(_groups(rows), 1):
        yield b'%b,"part":%d,"parts":%d,"rows":[%b]}' % (head, number, parts, b",".join(bodies))


def _groups(rows: Iterable[Row]) -> Iterator[list[bytes]]:
    """Cut rows into runs that fit a part each; an empty one where there is no row."""
    group: list[bytes] = []
    size = 0
    for row in rows:
        if group and size + len(row.body) > PART_BYTES:
            yield group
            group, size = [], 0
        group.append(row.body)
        size += len(row.body) + 1
    yield group


@lru_cache(maxsize=4096)
def _text(epoch_ms: int) -> bytes:
    """Return an instant as text; many digests share theirs."""
    return instant(epoch_ms).encode()


def _headers(source: str, destination_id: str, frame: Frame, part: int) -> tuple[tuple[str, bytes], ...]:
    return (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"cq.digest"),
        ("ce_source", source.encode()),
        ("ce_id", f"{destination_id}/{frame.tick_ms}/{part}".encode()),
        ("ce_time", _text(frame.tick_ms)),
    )
