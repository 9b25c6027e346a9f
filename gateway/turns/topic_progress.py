"""The progress on `cq.commands`. Subscribers take turns, so a command may be done before earlier commands."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

from gateway.kafka import Place
from gateway.state.commands_read import CommandsRead

__all__ = ["MOST_AHEAD", "TopicProgress"]

MOST_AHEAD = 10_000
"""The largest number of commands of a partition that may be done before an earlier command. Each commit stores their
offsets, which take 8 bytes each."""


class TopicProgress:
    """Notes which commands of each partition wait, and which are done."""

    def __init__(self, ahead: Mapping[int, Iterable[int]]) -> None:
        """Begin at the first command that was not carried out.

        Args:
            ahead: Partition → offsets of finished commands after the first unfinished command.
        """
        self._waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        """Partition → offsets of the records that were read, from the first unfinished record on."""
        self._passed = {partition: frozenset(offsets) for partition, offsets in ahead.items()}
        """Partition → offsets of commands that an earlier gateway has carried out, and that are read again."""
        self._ahead = {partition: set(offsets) for partition, offsets in self._passed.items()}
        self._read_to: dict[int, int] = {}

    def read(self, place: Place) -> bool:
        """Note that a record was read, and return whether it must still be carried out."""
        partition, offset = place
        self._read_to[partition] = offset + 1
        if offset in self._passed.get(partition, ()):
            return False
        self._waiting[partition].append(offset)
        return True

    def may_pass(self, place: Place) -> bool:
        """Tell whether a record may be carried out before the earlier records of its partition."""
        partition, offset = place
        return len(self._ahead.get(partition, ())) < MOST_AHEAD or offset == self._waiting[partition][0]

    def holds_up(self, place: Place) -> bool:
        """Tell whether the later records of a partition must wait until this record is carried out."""
        partition, offset = place
        return len(self._ahead.get(partition, ())) >= MOST_AHEAD and offset == self._waiting[partition][0]

    def finish(self, places: Iterable[Place]) -> CommandsRead:
        """Note that records are done, and return the new position on the topic."""
        finished: defaultdict[int, list[int]] = defaultdict(list)
        for partition, offset in places:
            finished[partition].append(offset)
        offsets = {}
        for partition, some in finished.items():
            waiting, done = self._waiting[partition], self._ahead.setdefault(partition, set())
            done.update(some)
            while waiting and waiting[0] in done:
                waiting.popleft()
            first = waiting[0] if waiting else self._read_to[partition]
            while first in done:  # an earlier gateway has carried out this command, which is not read again yet
                first += 1
            offsets[partition] = first
            self._ahead[partition] = {offset for offset in done if offset > first}
        ahead = {partition: sorted(done) for partition, done in self._ahead.items() if done}
        return CommandsRead(offsets, ahead)
