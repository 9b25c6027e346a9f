"""The queue of commands: subscribers take turns, each within a budget of CPU time (docs/design/039-fair-turns.md).

The commands of a subscriber keep their order. A unit of work has commands of all subscribers in turn, so its fixed
costs are divided among them. The algorithm is deficit round robin by CPU time (Shreedhar and Varghese, SIGCOMM 1995).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from gateway.kafka import Place, Record
from gateway.state.commands_read import CommandsRead
from gateway.turns.account import BUDGET_SECONDS, Account, ReadAgain, SpilledRecord, size_of
from gateway.turns.accounts import NEWCOMERS, UNPROVEN, Accounts
from gateway.turns.topic_progress import TopicProgress

__all__ = ["CommandQueue", "CommandUnit"]

_MOST_BYTES = 64 << 20
"""The largest memory of waiting commands, in bytes. Further commands stay on the topic."""
_SHARE_BYTES = 16 << 20
"""The largest memory of an account's commands, in bytes. For further commands, only their places are kept."""
_UNIT_BYTES = 8 << 20
"""The approximate largest size of a unit's commands, in bytes, while several subscribers send."""
_TOGETHER_SECONDS = 10.0
"""Several subscribers *send together* while commands of two or more subscribers have come within this time."""
_LIGHT_SECONDS = 0.25
"""An account is *light* when all its waiting commands were taken, and its budget was not used up. For this time after
an account was light, all accounts are limited by their budgets, since they must not delay the few commands of the light
account."""
_UNIT_SECONDS = 0.1
"""The approximate largest CPU time of a unit of work while several subscribers send."""
_ALONE_SECONDS = 0.5
"""The largest CPU time of a unit of work while a single subscriber sends."""
_LOOKED_AT = 64
"""The largest number of an account's queues that are searched for a command that may have its turn."""


class CommandUnit(NamedTuple):
    """The commands of a unit of work."""

    records: list[Record]
    seconds: float
    """How long the unit may begin further commands, in seconds."""
    alone: bool
    """Whether a single subscriber sends, so that no other subscriber waits for the unit."""


class CommandQueue:
    """The commands that were read, but are not carried out yet."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        is_genuine: Callable[[Record], bool] | None = None,
        read_again: ReadAgain | None = None,
    ) -> None:
        """Begin without commands.

        Args:
            clock: Returns the present, in seconds.
            is_genuine: Tells whether a record comes from the subscriber that its key names. With None, all records do.
            read_again: Reads spilled records. With None, all records are kept in memory.
        """
        self._clock = clock
        self._is_genuine = is_genuine
        self._read_again = read_again
        self._accounts = Accounts()
        self.begin({})

    def begin(self, ahead: Mapping[int, Iterable[int]]) -> None:
        """Forget all commands. The topic is read again from the first command that was not carried out.

        Args:
            ahead: Partition → offsets of finished commands after the first unfinished command.
        """
        self._accounts.clear(self._clock())
        self._turns: OrderedDict[bytes | str, Account] = OrderedDict()
        """Name → account, for accounts with waiting commands, in the order of turns."""
        self._under_way: dict[Place, bytes | str] = {}
        """Place of a record that was taken for a unit of work → the name of its account."""
        self._held: dict[bytes | None, Callable[[], bool]] = {}
        """Subscriber whose first command is held → a function that tells whether the command is ready."""
        self._gone: list[Place] = []
        """The places of spilled records that the topic no longer has."""
        self._progress = TopicProgress(ahead)
        self._last: bytes | None = None
        self._changed_at = self._light_at = self._last_at = float("-inf")
        self.stalled = False
        """Whether commands waited at the last `take`, but none of them could have its turn."""

    def __bool__(self) -> bool:
        return bool(self._turns)

    @property
    def full(self) -> bool:
        """Whether the memory for commands is used up, so that reading must pause."""
        return sum(account.bytes for account in self._turns.values()) >= _MOST_BYTES

    @property
    def together(self) -> bool:
        """Whether several subscribers send together."""
        return self._clock() - self._changed_at < _TOGETHER_SECONDS

    def add(self, records: Iterable[Record]) -> None:
        """Take in records, and skip finished records. The records of a partition must come in order."""
        now = self._clock()
        for record in records:
            if record.key != self._last:
                self._changed_at = now if now - self._last_at < _TOGETHER_SECONDS else self._changed_at
                self._last = record.key
            self._last_at = now
            place = record.partition, record.offset
            if self._progress.read(place):
                self.stalled = False
                name, account = self._accounts.of_subscriber(record.key)
                self._append(name, account, record.key, record)

    def _append(self, name: bytes | str, account: Account, subscriber: bytes | None, record: Record) -> None:
        """Queue a record. If the account's share of memory is used up, queue only the record's place."""
        spilled = self._read_again and account.queues and account.bytes + size_of(record) > _SHARE_BYTES
        place = record.partition, record.offset
        account.append(subscriber, SpilledRecord(place, size_of(record)) if spilled else record)
        self._turns.setdefault(name, account)

    def take(self, most: int) -> CommandUnit:
        """Return the commands of the next unit of work, at most `most`.

        Subscribers take turns. A subscriber that stays within its budget must not be delayed by others. So if such a
        subscriber was served a moment ago, each subscriber has one turn, which ends when its budget is used up. A
        little later, each subscriber still has only one turn, but its budget does not limit the turn. If no such
        subscriber was served for some seconds, subscribers take several turns, until the unit is full.
        """
        now = self._clock()
        alone = not self.together
        limited = not alone and now - self._light_at < _LIGHT_SECONDS
        repeated = alone or now - self._light_at >= _TOGETHER_SECONDS
        most_seconds, most_bytes = (_ALONE_SECONDS, _MOST_BYTES) if alone else (_UNIT_SECONDS, _UNIT_BYTES)
        records: list[Record] = []
        expected, size, turns = 0.0, 0, deque(self._turns.items())
        most_each = min(most_seconds / len(turns), BUDGET_SECONDS) if turns else 0.0
        while turns and len(records) < most and expected < most_seconds and size < most_bytes:
            name, account = turns.popleft()
            taken = self._turn(name, account, most - len(records), most_each, limited=limited)
            records += taken
            expected += len(taken) * account.command_seconds
            size += sum(map(size_of, taken))
            if taken and repeated and account.queues:
                turns.append((name, account))
        self.stalled = bool(self) and not records
        return CommandUnit(records, _ALONE_SECONDS if alone else expected + BUDGET_SECONDS, alone)

    def _turn(self, name: bytes | str, account: Account, most: int, seconds: float, *, limited: bool) -> list[Record]:
        """Take commands of an account for about `seconds` of CPU time, and put the account at the end of the turns."""
        now = self._clock()
        budget = account.budget(now)
        if limited and budget < BUDGET_SECONDS / 2:
            if not self._holds_up(account):
                return []
            seconds = 0.0
        elif limited:
            seconds = min(budget, seconds)
        taken: list[Record] = []
        own, more = name != UNPROVEN, True
        most_taken = min(most, max(round(seconds / account.command_seconds), 1))
        while more and len(taken) < most_taken and (record := self._next(account, own=own)) is not None:
            if not own or self._is_genuine is None:
                taken.append(record)
            else:
                if self._is_proven(record, account):
                    taken.append(record)
                more = self._clock() < now + seconds
        for record in taken:
            self._under_way[record.partition, record.offset] = name
        if account.queues:
            self._turns.move_to_end(name)
        else:
            self._turns.pop(name, None)
            if name != UNPROVEN and budget > len(taken) * account.command_seconds:
                self._light_at = now
        return taken

    def _is_proven(self, record: Record, account: Account) -> bool:
        """Tell whether a record comes from its subscriber. If not, move it to the queue of unproven records."""
        assert self._is_genuine is not None, "records are checked"
        began = self._clock()
        genuine = self._is_genuine(record)
        unproven = self._accounts.unproven
        (account if genuine else unproven).spend(self._clock() - began, 0)
        if not genuine:
            self._append(UNPROVEN, unproven, None, record)
            self._changed_at = self._clock()  # another sender uses the subscriber's name, so two senders send together
        return genuine

    def _next(self, account: Account, *, own: bool) -> Record | None:
        """Remove and return the account's next command that may have its turn; None if there is none.

        Args:
            account: The account.
            own: Whether the account's commands come from the subscribers that their keys name.
        """
        for _ in range(min(len(account.queues), _LOOKED_AT)):
            subscriber, waiting = next(iter(account.queues.items()))
            if not (own and self._is_held(subscriber)):
                first = waiting[0]
                if isinstance(first, SpilledRecord):
                    assert self._read_again is not None, "records were spilled"
                    began = self._clock()
                    self._gone += account.unspill(subscriber, self._read_again)
                    account.spend(self._clock() - began, 0)
                    if subscriber not in account.queues:
                        continue
                    first = account.queues[subscriber][0]
                if isinstance(first, Record) and self._progress.may_pass((first.partition, first.offset)):
                    account.remove_first(subscriber)
                    return first
            account.queues.move_to_end(subscriber)
        return None

    def _holds_up(self, account: Account) -> bool:
        """Tell whether later commands of the partition must wait until an account's next command is carried out.

        They must wait if `MOST_AHEAD` later commands are done already.
        """
        first = next(iter(account.queues.values()))[0]
        place = first.place if isinstance(first, SpilledRecord) else (first.partition, first.offset)
        return self._progress.holds_up(place)

    def _is_held(self, subscriber: bytes | None) -> bool:
        if not self._held or (is_ready := self._held.get(subscriber)) is None:
            return False
        if is_ready():
            del self._held[subscriber]
            return False
        return True

    def hold(self, held: Mapping[bytes | None, Callable[[], bool]]) -> None:
        """Give subscribers no turns until their first commands are ready.

        Args:
            held: Subscriber → a function that tells whether the command is ready.
        """
        self._held |= held

    def put_back(self, records: Sequence[Record]) -> None:
        """Put records back at the front of their queues. They must be the last records taken from these queues.

        Args:
            records: The records, in the order in which they were taken.
        """
        for record in reversed(records):
            forged = self._under_way.pop((record.partition, record.offset)) == UNPROVEN
            subscriber = None if forged else record.key
            name, account = self._accounts.of_subscriber(subscriber)
            account.return_first(subscriber, record)
            self._turns[name] = account
            self._turns.move_to_end(name, last=False)

    def charge(self, costs: Mapping[Place, float]) -> None:
        """Subtract the cost of commands from the budgets of their accounts.

        Args:
            costs: Place of a command that was taken → its CPU seconds. The command need not be carried out.
        """
        by_name: dict[bytes | str, list[float]] = {}
        for place, seconds in costs.items():
            by_name.setdefault(self._under_way[place], []).append(seconds)
        for name, some in by_name.items():
            if (account := self._accounts.named(name)) is not None:
                account.spend(sum(some), len(some))

    def finish(self, records: Sequence[Record], accepted: Container[bytes | None] = ()) -> CommandsRead:
        """Note that records are carried out, and return the new position on the topic.

        Args:
            records: The records, which must have been taken.
            accepted: Subscribers of accepted commands. From now on, they have accounts of their own.
        """
        for record in records:
            name = self._under_way.pop((record.partition, record.offset))
            if name == NEWCOMERS and record.key is not None and record.key in accepted:
                self._promote(record.key)
        gone, self._gone = self._gone, []
        return self._progress.finish([*gone, *((record.partition, record.offset) for record in records)])

    def _promote(self, subscriber: bytes) -> None:
        """Give a newcomer an account of its own and, if it has waiting commands, a place in the order of turns."""
        self._accounts.promote(subscriber, self._clock())
        for name, account in (self._accounts.of_subscriber(subscriber), (NEWCOMERS, self._accounts.named(NEWCOMERS))):
            assert account is not None, "both are there"
            if account.queues:
                self._turns.setdefault(name, account)
            else:
                self._turns.pop(name, None)
