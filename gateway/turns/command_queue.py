"""Commands that wait for their turn: subscribers take turns, so that nobody waits for all that another one has sent.

Each subscriber's commands keep their order. Commands of a partition may so be carried out before earlier ones of it,
and a position on `cq.commands` has two halves: the offset of the first command that still waits, and those behind it
that are done. This is start-time fair queueing with equal weights and commands of equal cost (Demers, Keshav and
Shenker, SIGCOMM 1989, section 2, by packets). While several subscribers send, `UnitSize` keeps a unit short, however
dear its commands are: short units take half the rate of a bulk registration, so one that is alone has long ones. Beside
a subscriber who has a single command a unit is one round.
A subscriber whose first command is held has no turn until that is ready. One who has sent broken commands, and more of
them, pauses after each unit, and goes on with one command at a time in units of the others: their commands meet no unit
of such ones under way, and few of them meet such a command. So begins whoever has sent nothing sound while others of
the kind send broken commands (`Standing`): the next name of one who changes names is no better off than the last.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gateway.kafka import Record
from gateway.state.commands_read import CommandsRead
from gateway.turns.standing import Standing

__all__ = ["MOST_AHEAD", "SHORT_UNIT_SECONDS", "UNIT_SECONDS", "CommandQueue", "UnitSize"]

_MOST_BYTES = 64 << 20
"""Of the records that wait; more are left on the topic."""
_RECORD_BYTES = 500
"""Of a record besides its key and value, about."""
MOST_AHEAD = 2_000
"""Offsets of a partition that are done before an earlier one: each commit names them."""
_TOGETHER_SECONDS = 10.0
"""Subscribers send side by side when one follows another within this time."""
UNIT_SECONDS = 0.02
"""A unit of work aims at so long: a command that comes meanwhile waits for all of it."""
SHORT_UNIT_SECONDS = 0.008
"""The same while somebody sends single commands: each waits for the unit under way and for its own."""
_PAUSE = 9
"""Times what its broken commands took, a subscriber has no turn: one who sends nothing else, beside others, takes a
tenth of the gateway's time."""
_ALONG_SECONDS = 0.1
"""From one command that goes along to the next, whosesoever: so few of the others' commands meet one that the longest
hundredth of these takes no longer than without any."""
_ALONE_SECONDS = 0.25
"""Whoever has paused has no unit of work before so long after the last one of the others."""
_DOUBT_SECONDS = 0.05
"""Whoever is doubted waits so long for a unit of the others to come before one of its own."""
_FIRST, _SMALLEST = 200, 16
"""Commands of a unit before any is timed, and however dear they are."""


class CommandQueue:
    """The commands that were read and are not carried out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without commands.

        Args:
            clock: The present, in seconds.
        """
        self._clock = clock
        self._standing = Standing()
        self.begin({})

    def begin(self, ahead: Mapping[int, Iterable[int]]) -> None:
        """Forget all: the topic is read anew from the first command that was not carried out.

        Args:
            ahead: By partition, the offsets behind that one that are done.
        """
        self._turns: OrderedDict[bytes | None, deque[Record]] = OrderedDict()
        """By subscriber who does not pause, in the order of turns: the commands that wait; at least one."""
        self._held: dict[bytes | None, Callable[[], bool]] = {}
        """By subscriber whose first command is held: whether it is ready."""
        self._pausing: OrderedDict[bytes | None, _Pause] = OrderedDict()
        """By subscriber who pauses, in the order of turns at going along: thousands do while names change."""
        self._along_at = float("-inf")
        """From when on the next command may go along."""
        self._others_at = float("-inf")
        """When somebody had a turn last who did not pause."""
        self._waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        """By partition, the offsets of records that were added, from the first one on that is not finished."""
        self._passed = {partition: frozenset(offsets) for partition, offsets in ahead.items()}
        """Done before the gateway began, and to be read again."""
        self._ahead = {partition: set(offsets) for partition, offsets in self._passed.items()}
        self._read_to: dict[int, int] = {}
        self._last: bytes | None = None
        self._changed_at = float("-inf")
        self._now = self._single_at = float("-inf")
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._turns or self._pausing)

    @property
    def all_held(self) -> bool:
        """Whether commands wait, and nobody has a turn."""
        self._resume()
        return bool(self) and all(map(self._is_held, list(self._turns)))

    @property
    def full(self) -> bool:
        """Whether no more is to be read for now."""
        return self._bytes >= _MOST_BYTES

    def together(self, now: float) -> bool:
        """Tell whether several subscribers send, at this time in seconds."""
        return now - self._changed_at < _TOGETHER_SECONDS

    @property
    def unit_seconds(self) -> float:
        """How long a unit of work is to take, while several subscribers send."""
        return SHORT_UNIT_SECONDS if self._now - self._single_at < _TOGETHER_SECONDS else UNIT_SECONDS

    def add(self, records: Iterable[Record], now: float) -> None:
        """Take in records in the order of their partitions; one that is done already is passed over.

        Args:
            records: What was read.
            now: When, in seconds.
        """
        self._now = now
        for record in records:
            if record.key != self._last:
                self._last, self._changed_at = record.key, now if self._last is not None else self._changed_at
            self._read_to[record.partition] = record.offset + 1
            if record.offset in self._passed.get(record.partition, ()):
                continue
            own = self._own(record.key)
            if own is None:
                own = deque()
                if self.together(now) and self._standing.is_doubted(record.key, now):
                    self._pausing[record.key] = _Pause(own, now, now + _DOUBT_SECONDS)
                else:
                    self._turns[record.key] = own
            own.append(record)
            self._waiting[record.partition].append(record.offset)
            self._bytes += _size(record)

    def take(self, most: int) -> list[Record]:
        """Return the records whose turn it is, at most so many: one of each subscriber, then again.

        Beside a subscriber who has a single one there is one round, for its answer waits for the whole unit of work.
        """
        self._resume()
        taken: list[Record] = []
        served: set[bytes | None] = set()
        barred, single = 0, False
        while len(taken) < most and barred < len(self._turns):
            subscriber, own = next(iter(self._turns.items()))
            if single and subscriber in served:
                break
            if not self._is_held(subscriber) and self._may_pass(own[0]):
                taken.append(own.popleft())
                if len(self._turns) == 1:
                    while own and len(taken) < most and self._may_pass(own[0]):
                        taken.append(own.popleft())
                barred = 0
                single = single or not (own or subscriber in served)
                served.add(subscriber)
            else:
                barred += 1
            if own:
                self._turns.move_to_end(subscriber)
            else:
                del self._turns[subscriber]
        if single and self:
            self._single_at = self._now
        if taken and self._pausing:
            self._others_at = self._clock()
            taken += self._along()
        self._bytes -= sum(map(_size, taken))
        return taken

    def _along(self) -> Iterable[Record]:
        """Return the first command of one whose pause is over, for the unit of work of others; none if there is none.

        However many pause, one command is all that the others wait for, ten times a second: the next time it is another
        subscriber's.
        """
        if self._others_at < self._along_at:
            return ()
        for subscriber, pause in self._pausing.items():
            first = pause.waiting[0]
            if self._others_at >= pause.along_at and not self._is_held(subscriber) and self._may_pass(first):
                pause.waiting.popleft()
                if pause.waiting:
                    self._pausing.move_to_end(subscriber)
                else:
                    del self._pausing[subscriber]
                self._along_at = self._others_at + _ALONG_SECONDS
                return (first,)
        return ()

    def _resume(self) -> None:
        """Let those whose pause is over have turns, where the others have had none for a while."""
        now = self._clock()
        if self._pausing and now >= self._others_at + _ALONE_SECONDS:
            for subscriber in [name for name, pause in self._pausing.items() if now >= pause.alone_at]:
                self._turns[subscriber] = self._pausing.pop(subscriber).waiting

    def _own(self, subscriber: bytes | None) -> deque[Record] | None:
        """Return the commands of a subscriber that wait, None if none do."""
        pause = self._pausing.get(subscriber)
        return self._turns.get(subscriber) if pause is None else pause.waiting

    def hold(self, held: Mapping[bytes | None, Callable[[], bool]]) -> None:
        """Give subscribers no turns until their first command is ready.

        Args:
            held: By subscriber: tells whether it is.
        """
        self._held |= held

    def learn(self, done: Iterable[Record], broken: Mapping[bytes | None, int], seconds: float) -> None:
        """Take in how the commands of a unit of work fared.

        While several subscribers send, those of broken commands of whose commands more wait have no turns for some
        time. After it they have no turns of their own as long as others have some: of all of them one command goes
        along with a unit of work of the others, ten a second, until they are in good standing again.

        Args:
            done: The records that were carried out.
            broken: By subscriber, how many of these never could be.
            seconds: What each of them took.
        """
        now = self._clock()
        for subscriber, commands in Counter(record.key for record in done).items():
            wrong = broken.get(subscriber, 0)
            self._standing.note(subscriber, commands, wrong, now)
            own = self._own(subscriber)
            if own is not None and self._standing.is_good(subscriber):
                self._pausing.pop(subscriber, None)
                self._turns.setdefault(subscriber, own)
            elif own is not None and wrong and self.together(now):
                self._turns.pop(subscriber, None)
                end = now + _PAUSE * wrong * seconds
                self._pausing[subscriber] = _Pause(own, end, end)

    def _is_held(self, subscriber: bytes | None) -> bool:
        if (is_ready := self._held.get(subscriber)) is None:
            return False
        if is_ready():
            del self._held[subscriber]
            return False
        return True

    def put_back(self, records: Sequence[Record]) -> None:
        """Let records that were taken, and are the last ones that were taken of their subscribers, be the first ones.

        Args:
            records: In the order of taking.
        """
        for record in reversed(records):
            own = self._own(record.key)
            if own is None:
                own = self._turns[record.key] = deque()
            own.appendleft(record)
            if record.key in self._turns:
                self._turns.move_to_end(record.key, last=False)
            self._bytes += _size(record)

    def _may_pass(self, record: Record) -> bool:
        """Tell whether a record may be carried out before earlier ones of its partition."""
        ahead = self._ahead.get(record.partition, ())
        return len(ahead) < MOST_AHEAD or record.offset == self._waiting[record.partition][0]

    def finish(self, records: Sequence[Record]) -> CommandsRead:
        """Count records as carried out, whether they waited here or not, and return how far the topic is with them."""
        finished: defaultdict[int, list[int]] = defaultdict(list)
        for record in records:
            finished[record.partition].append(record.offset)
        offsets = {}
        for partition, some in finished.items():
            waiting, done = self._waiting[partition], self._ahead.setdefault(partition, set())
            done.update(some)
            while waiting and waiting[0] in done:
                waiting.popleft()
            self._read_to[partition] = max(max(some) + 1, self._read_to.get(partition, 0))
            first = waiting[0] if waiting else self._read_to[partition]
            while first in done:  # one that is to be read again
                first += 1
            offsets[partition] = first
            self._ahead[partition] = {offset for offset in done if offset > first}
        ahead = {partition: sorted(done) for partition, done in self._ahead.items() if done}
        return CommandsRead(offsets, ahead)


class _Pause(NamedTuple):
    """Of a subscriber who has no turns."""

    waiting: deque[Record]
    """Its commands that wait; at least one."""
    along_at: float
    """From when on its commands go along with those of the others."""
    alone_at: float
    """From when on it has turns again, if the others have had none for a while."""


class UnitSize:
    """How many commands a unit of work takes, by how long the last ones took."""

    def __init__(self, most: int) -> None:
        """Begin with a few.

        Args:
            most: Commands of one unit, however cheap they are.
        """
        self._most = most
        self.commands = min(_FIRST, most)

    def note(self, commands: int, seconds: float) -> None:
        """Learn from a unit.

        Example:
            >>> size = UnitSize(5000)
            >>> size.note(200, 0.08), size.commands
            (None, 50)
            >>> size.note(50, 0.01), size.commands
            (None, 100)
        """
        fitting = int(commands * UNIT_SECONDS / max(seconds, 1e-6))
        if fitting < self.commands and seconds > UNIT_SECONDS:
            self.commands = max(fitting, _SMALLEST)
        elif commands >= self.commands:
            self.commands = min(max(fitting, self.commands), 2 * self.commands, self._most)


def _size(record: Record) -> int:
    return _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
