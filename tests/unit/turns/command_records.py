"""Records of `cq.commands` for the tests of turns, and a queue that knows their subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.kafka import Place, Record
from gateway.turns.command_queue import CommandQueue

__all__ = ["Hand", "carried_out", "known", "place", "places", "record"]

_PARTITION = 9
"""Where `known` has the first commands of subscribers."""


class Hand:
    """A clock that is set by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def record(partition: int, offset: int, subscriber: str, value: bytes = b"{}") -> Record:
    """Return a command of a subscriber."""
    return Record("cq.commands", partition, offset, 0, subscriber.encode(), value, ())


def place(record: Record) -> Place:
    """Return its partition and its offset."""
    return record.partition, record.offset


def places(records: Sequence[Record]) -> list[Place]:
    """Return the partitions and offsets of records."""
    return [place(each) for each in records]


def known(*subscribers: str, clock: Hand | None = None, seconds: float = 0.001, **options: Any) -> CommandQueue:
    """Return a queue that has carried out commands of each of these subscribers, all accepted.

    Args:
        subscribers: Their names.
        clock: The queue's clock; it is at a time when all budgets are full.
        seconds: CPU seconds of each command.
        options: Further arguments of the queue.
    """
    clock = clock or Hand()
    if genuine := options.get("is_genuine"):
        options["is_genuine"] = lambda each: each.partition == _PARTITION or genuine(each)
    queue = CommandQueue(clock, **options)
    offset = 0
    for name in subscribers:
        for _ in range(16):  # the first command makes the account, the others give the cost of a command
            queue.add([record(_PARTITION, offset, name)])
            carried_out(queue, queue.take(1).records, seconds, name)
            offset += 1
            clock.now += 1.0
    return queue


def carried_out(queue: CommandQueue, unit: list[Record], seconds: float, *accepted: str) -> list[Record]:
    """Tell the queue that a unit was carried out, at `seconds` for each command, and return the unit."""
    queue.charge({place(each): seconds for each in unit})
    queue.finish(unit, {name.encode() for name in accepted})
    return unit
