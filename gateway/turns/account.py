"""Accounts: a subscriber's waiting commands and budget of CPU time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gateway.kafka import Place, Record

__all__ = ["BUDGET_RATE", "BUDGET_SECONDS", "Account", "ReadAgain", "SpilledRecord", "size_of"]

ReadAgain = Callable[[Sequence[Place]], Iterator[tuple[Place, Record | None]]]
"""Reads records by their places: yields None for a record that the topic has lost, and nothing for records not reached
in time."""

BUDGET_SECONDS = 0.005
"""CPU seconds of a full budget: the most that a subscriber takes of a unit of work that others share."""
BUDGET_RATE = 0.2
"""CPU seconds that a budget gains each second."""
_FIRST_GUESS = 0.001
"""Expected CPU seconds of a command before any was timed: as long as a broken statement of a new shape takes."""
_RECORD_BYTES = 300
"""Approximate bytes of memory of a record besides its key and value."""
_SPILLED_BYTES = 200
"""Approximate bytes of memory of a spilled record."""

_READ_AGAIN_BYTES = 1 << 20
"""Bytes of spilled records that are read at once."""


class SpilledRecord(NamedTuple):
    """The place of a record beyond its account's share of memory, to read the record again at its turn."""

    place: Place
    size: int
    """Bytes of the record once it is read again."""


class Account:
    """Queues of commands that share a budget.

    A known subscriber has an account with one queue. Newcomers share an account, with a queue for each name. All
    records without a proven subscriber share another account.
    """

    __slots__ = ("_budget", "_refilled_at", "bytes", "command_seconds", "queues")

    def __init__(self, now: float) -> None:
        """Begin with a full budget and without commands; `now` in seconds of the queue's clock."""
        self._budget = BUDGET_SECONDS
        self._refilled_at = now
        self.command_seconds = _FIRST_GUESS
        """Expected CPU seconds of a command, from the last commands."""
        self.queues: OrderedDict[bytes | None, deque[Record | SpilledRecord]] = OrderedDict()
        """Waiting commands by subscriber, in the order of turns; no queue is empty."""
        self.bytes = 0
        """Memory of the commands that wait."""

    def budget(self, now: float) -> float:
        """Return the CPU seconds that may be used now; negative after a command that cost more than the budget."""
        self._budget = min(self._budget + BUDGET_RATE * max(now - self._refilled_at, 0.0), BUDGET_SECONDS)
        self._refilled_at = now
        return self._budget

    def spend(self, seconds: float, commands: int) -> None:
        """Subtract CPU seconds from the budget, and expect the next commands to cost as much.

        Args:
            seconds: CPU seconds that the commands took.
            commands: The number of these commands; 0 for work that says nothing about the next command.
        """
        self._budget -= seconds
        if commands:
            self.command_seconds += (seconds / commands - self.command_seconds) / 2

    def append(self, subscriber: bytes | None, record: Record | SpilledRecord) -> None:
        """Add a command behind the subscriber's other commands."""
        self.queues.setdefault(subscriber, deque()).append(record)
        self.bytes += size_of(record)

    def push_back(self, subscriber: bytes | None, record: Record | SpilledRecord) -> None:
        """Add a command before the subscriber's other commands."""
        self.queues.setdefault(subscriber, deque()).appendleft(record)
        self.queues.move_to_end(subscriber, last=False)
        self.bytes += size_of(record)

    def remove_first(self, subscriber: bytes | None) -> None:
        """Remove the first command of a subscriber; the next turn goes to the other subscribers."""
        waiting = self.queues[subscriber]
        self.bytes -= size_of(waiting.popleft())
        if not waiting:
            del self.queues[subscriber]
        elif len(self.queues) > 1:
            self.queues.move_to_end(subscriber)

    def unspill(self, subscriber: bytes | None, read_again: ReadAgain) -> list[Place]:
        """Read some of the first spilled records of a subscriber again, and return the places of lost records."""
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
            again = found.get(spilled.place, spilled)  # A missing place was not reached in time
            if again is not None:
                self.push_back(subscriber, again)
        return [place for place, again in found.items() if again is None]


def size_of(record: Record | SpilledRecord) -> int:
    """Return the approximate bytes of memory that a record takes."""
    if isinstance(record, SpilledRecord):
        return _SPILLED_BYTES
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
