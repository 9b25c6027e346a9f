"""A digest out of the matches of one tick: which rows it shows, and how it is cut into parts. No I/O."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from gateway.records import Destination, instant
from grouping.group import SelectList
from grouping.query import DigestClause

__all__ = ["PART_BYTES", "Frame", "Row", "headers_of", "parts_of", "shown"]

PART_BYTES = 900_000
"""A part's rows, at most: Kafka's default of 1 MiB a record, less ample room. A longer row has a part of its own."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Row(NamedTuple):
    """A match that waited."""

    partition: int
    offset: int
    time_ms: int
    body: bytes
    """The JSON object."""


class Frame(NamedTuple):
    """The times of a digest, epoch milliseconds."""

    fired_ms: int
    from_ms: int
    tick_ms: int


def shown(clause: DigestClause, select: SelectList | None, rows: list[Row]) -> list[Row]:
    """Return the rows that a digest shows, given all its matches in source order per partition.

    Args:
        clause: What was asked for; its columns are names of the SELECT list.
        select: The SELECT list, for the type of TOP's column; not needed otherwise.
        rows: All matches.
    """
    match clause.kind:
        case "count":
            return []
        case "latest":
            return _latest(clause.columns, rows)
        case "top":
            assert select is not None, "TOP compares by a column's type"
            types = {item.name: getattr(item.expression, "type", "") for item in select.items}
            return _top(clause.rows, clause.columns[0], types[clause.columns[0]], rows)
        case _:
            return rows


def _latest(columns: Sequence[str], rows: list[Row]) -> list[Row]:
    """Keep the last row per key, by record time, then partition and offset."""
    last: dict[tuple[Any, ...], tuple[tuple[int, int, int], int]] = {}
    for number, row in enumerate(rows):
        values = _decode(row.body)
        key = tuple(values[column] for column in columns)
        rank = (row.time_ms, row.partition, row.offset)
        if key not in last or last[key][0] < rank:
            last[key] = (rank, number)
    return [rows[number] for number in sorted(number for _, number in last.values())]


def _top(most: int, column: str, kind: str, rows: list[Row]) -> list[Row]:
    """Keep the largest, largest first; NULLs last, ties earliest first."""
    read = _comparable(kind)
    ranked: list[tuple[Any, Row]] = []
    for row in rows:
        value = _decode(row.body)[column]
        ranked.append((None if value is None else read(value), row))
    known = [pair for pair in ranked if pair[0] is not None]
    # Earliest first, then a stable choice of the largest.
    known.sort(key=lambda pair: (pair[1].time_ms, pair[1].partition, pair[1].offset))
    best = heapq.nlargest(most, known, key=lambda pair: pair[0])
    if len(best) < most:
        unknown = [pair for pair in ranked if pair[0] is None]
        unknown.sort(key=lambda pair: (pair[1].time_ms, pair[1].partition, pair[1].offset))
        best += unknown[: most - len(best)]
    return [row for _, row in best]


def _comparable(kind: str) -> Callable[[Any], Any]:
    """Return what makes a JSON value of a type comparable as the type is."""
    if kind.startswith("DECIMAL"):
        return Decimal
    if kind == "TIMESTAMP":
        return datetime.fromisoformat
    if kind == "DATE":
        return date.fromisoformat
    return lambda value: value


def parts_of(rows: Sequence[Row], count: int, frame: Frame) -> list[bytes]:
    """Return the values of a digest's records, one at least.

    Args:
        rows: What is shown.
        count: Of all matches.
        frame: The digest's times.
    """
    groups: list[list[bytes]] = [[]]
    size = 0
    for row in rows:
        if size and size + len(row.body) > PART_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(row.body)
        size += len(row.body) + 1
    fired, since, until = _text(frame.fired_ms), _text(frame.from_ms), _text(frame.tick_ms)
    head = b'{"fired_at":"%b","from":"%b","to":"%b","count":%d' % (fired, since, until, count)
    return [
        b'%b,"part":%d,"parts":%d,"rows":[%b]}' % (head, number, len(groups), b",".join(bodies))
        for number, bodies in enumerate(groups, 1)
    ]


@lru_cache(maxsize=4096)
def _text(epoch_ms: int) -> bytes:
    """Return an instant as text; many digests share theirs."""
    return instant(epoch_ms).encode()


def headers_of(source: str, destination: Destination, frame: Frame, part: int) -> tuple[tuple[str, bytes], ...]:
    """Return the CloudEvents headers of a part."""
    return (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"cq.digest"),
        ("ce_source", source.encode()),
        ("ce_id", f"{destination.destination_id}/{frame.tick_ms}/{part}".encode()),
        ("ce_time", _text(frame.tick_ms)),
    )
