"""Records of `cq.commands` for the tests of turns."""

from __future__ import annotations

from gateway.kafka import Record

__all__ = ["place", "record"]


def record(partition: int, offset: int, subscriber: str) -> Record:
    """Return a command of a subscriber."""
    return Record("cq.commands", partition, offset, 0, subscriber.encode(), b"{}", ())


def place(record: Record) -> tuple[int, int]:
    """Return its partition and its offset."""
    return record.partition, record.offset
