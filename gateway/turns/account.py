"""An account: the waiting commands of one or several subscribers, and their common budget of CPU time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gateway.kafka import Place, Record

__all__ = ["BUDGET_RATE", "BUDGET_SECONDS", "Account", "ReadAgain", "SpilledRecord", "size_of"]

ReadAgain = Callable[[Sequence[Place]], Iterator[tuple[Place, Record | None]]]
"""Reads the records at these places, and yields each place with its record, or with None if the topic no longer has the
record. A place that was not reached in time is left out."""

BUDGET_SECONDS = 0.005
"""The CPU seconds of a full budget. In a unit of work with commands of several subscribers, each subscriber has at most
this time in a turn."""
BUDGET_RATE = 0.2
"""The CPU seconds that a budget gains each second."""
_FIRST_GUESS = 0.001
"""The expected CPU seconds of a command before any command was timed. A wrong statement whose text is unlike all
earlier texts takes about this time."""
_RECORD_BYTES = 300
"""Approximate memory of a record in bytes, without its key and value."""
_SPILLED_BYTES = 200
"""Approximate memory of a spilled record in bytes."""

_READ_AGAIN_BYTES = 1 << 20
"""Approximate number of bytes of spilled records that are read together."""


class SpilledRecord(NamedTuple):
    """The place of a record that is not kept in memory, since its account's share of memory was used up.

    The record is read again at its turn.
    """

    place: Place
    size: int
    """The memory of the record, in bytes, after it is read again."""


class Account:
    """Queues of commands with a common budget.

    A known subscriber has an account of its own with one queue. Newcomers share an account, which has a queue for each
    name. All records without a proven subscriber share another account.
    """

    __slots__ = ("_budget", "_refilled_at", "bytes", "command_seconds", "queues")

    def __init__(self, now: float) -> None:
        """Begin with a full budget and without commands; `now` is in seconds of the queue's clock."""
        self._budget = BUDGET_SECONDS
        self._refilled_at = now
        self.command_seconds = _FIRST_GUESS
        """The expected CPU seconds of a command, estimated from the last commands."""
        self.queues: OrderedDict[bytes | None, deque[Record | SpilledRecord]] = OrderedDict()
        """Subscriber → its waiting commands, in the order of turns. No queue is empty."""
        self.bytes = 0
        """The memory of the waiting commands, in bytes."""

    def budget(self, now: float) -> float:
        """Return the CPU seconds that may be used now; negative after a command that has cost more than the budget."""
        self._budget = min(self._budget + BUDGET_RATE * max(now - self._refilled_at, 0.0), BUDGET_SECONDS)
        self._refilled_at = now
        return self._budget

    def spend(self, seconds: float, commands: int) -> None:
        """Subtract CPU seconds from the budget, and update the expected cost of a command.

        Args:
            seconds: The CPU seconds that the commands took.
            commands: The number of these commands; 0 for other work, which leaves the expected cost unchanged.
        """
        self._budget -= seconds
        if commands:
            self.command_seconds += (seconds / commands - self.command_seconds) / 2

    def append(self, subscriber: bytes | None, record: Record | SpilledRecord) -> None:
        """Add a command after the subscriber's other commands."""
        self.queues.setdefault(subscriber, deque()).append(record)
        self.bytes += size_of(record)

    def return_first(self, subscriber: bytes | None, record: Record | SpilledRecord) -> None:
        """Put a command before the subscriber's other commands, and give the subscriber the account's next turn."""
        self.queues.setdefault(subscriber, deque()).appendleft(record)
        self.queues.move_to_end(subscriber, last=False)
        self.bytes += size_of(record)

    def remove_first(self, subscriber: bytes | None) -> None:
        """Remove the first command of a subscriber, and move its other commands to the end of the account's turns."""
        waiting = self.queues[subscriber]
        self.bytes -= size_of(waiting.popleft())
        if not waiting:
            del self.queues[subscriber]
        elif len(self.queues) > 1:
            self.queues.move_to_end(subscriber)

    def unspill(self, subscriber: bytes | None, read_again: ReadAgain) -> list[Place]:
        """Read the first spilled records of a subscriber again; return the places of records that the topic lacks."""
        wanted: list[SpilledRecord] = []
        size = 0
        for record in self.queues[subscriber]:
            if not isinstance(record, SpilledRecord) or size >= _READ_AGAIN_BYTES:
                break
            wanted.append(record)
            size += record.size
        found: dict[Place, Record | SpilledRecord | None] = dict(read_again([record.place for record in wanted]))
        for _ in wanted:
            self.remove_first(subscriber)
        for spilled in reversed(wanted):
            again = found.get(spilled.place, spilled)  # without an answer in time, the record stays spilled
            if again is not None:
                self.return_first(subscriber, again)
        return [place for place, again in found.items() if again is None]


def size_of(record: Record | SpilledRecord) -> int:
    """Return the approximate memory of a record, in bytes."""
    if isinstance(record, SpilledRecord):
        return _SPILLED_BYTES
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
