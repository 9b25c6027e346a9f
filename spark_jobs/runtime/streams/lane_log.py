"""The lane's checkpoint. Its offset log has the positions of all streams in the lane; streams are added and removed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.table_store import TableStore
from grouping.store.task_notes import LANE
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.checkpoints import Checkpoints

__all__ = ["LaneLog", "LaneStart", "Seat"]

log = logging.getLogger(__name__)

_FILE = "members.json"
"""The file with the streams in the lane, next to the log."""


class LaneStart(NamedTuple):
    """The place where the lane begins to evaluate a stream."""

    position: StreamPosition
    """The position of the stream, in offsets of the topic."""
    earlier_ends: dict[str, int]
    """By source partition, the position before which an earlier checkpoint may have evaluated events."""


class Seat(NamedTuple):
    """A stream in the lane."""

    stream: Stream
    starts: dict[str, int]
    """By partition of the topic, the first offset that the lane evaluates. Later positions are in the log."""
    earlier_ends: dict[str, int]
    """See `LaneStart.earlier_ends`."""


class _LaneMember(msgspec.Struct, frozen=True):
    """A stream in the lane, as stored in `_FILE`."""

    source_id: str
    topic: str
    starts: dict[str, int]
    earlier_ends: dict[str, int] = msgspec.field(name="anew")


class LaneLog:
    """The checkpoint of a lane. Only a single thread may use the log.

    The lane's query must not run while the log is changed.

    Redis has the name of the valid checkpoint of each stream. When a stream joins or leaves, the stream is first
    written to the checkpoint that will become valid. Then the name of this checkpoint is written to Redis. Finally, the
    stream is removed from the old checkpoint. So after a crash between these steps, the valid checkpoint has the
    stream, at the same position.
    """

    def __init__(self, settings: Settings, store: TableStore, checkpoints: Checkpoints) -> None:
        """Begin without a checkpoint; `open` finds an earlier checkpoint or makes a new one.

        Args:
            settings: The evaluator's settings.
            store: Redis, with the pins and the name of each stream's valid checkpoint.
            checkpoints: The checkpoints of the streams and the lane.
        """
        self._store = store
        self._checkpoints = checkpoints
        name = settings.evaluator.name
        self.checkpoint = checkpoints.of(f"{LANE}-{name}" if name else LANE)
        """The files of the lane's checkpoint."""
        self._kept: dict[str, Seat] = {}
        """The streams of an earlier evaluator's lane that have not joined this lane yet, by `Stream.source_id`."""
        self.name = ""
        """The name of the checkpoint, empty before `open`."""

    def open(self, live: Iterable[Stream]) -> None:
        """Go on with the checkpoint of an earlier evaluator; make a new checkpoint if that one is lost or broken.

        Args:
            live: The streams that this evaluator has.

        Raises:
            OperationalError: The checkpoint's file system does not answer.
        """
        name = self.checkpoint.name()
        if name is None or self.is_broken():
            self.checkpoint.remove()
            self.name = self.checkpoint.give_name()
            return
        here = {stream.source_id: stream for stream in live}
        for each in self._members():
            if each.source_id in here and each.topic == here[each.source_id].topic:
                self._kept[each.source_id] = Seat(here[each.source_id], each.starts, each.earlier_ends)
        self.name = name

    def is_broken(self) -> bool:
        """Tell whether the log's files are damaged, so that a query cannot go on from the log."""
        return self.checkpoint.has_begun() and not self.checkpoint.is_whole()

    @property
    def kept(self) -> Mapping[str, Seat]:
        """The streams of an earlier evaluator's lane that have not joined this lane yet, by `Stream.source_id`."""
        return self._kept

    def counts_for(self, stream: Stream) -> bool:
        """Tell whether a stream is in `kept` and its valid checkpoint is this one; otherwise forget the stream.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        if stream.source_id not in self._kept:
            return False
        counting = self._store.checkpoint(stream.stream_id)
        own = self._checkpoints.of(stream.source_id)
        if counting == self.name or (counting is None and not own.is_whole()):
            return True
        self.forget(stream.source_id)
        return False

    def place(self, source_id: str) -> LaneStart:
        """Return where the lane goes on with a stream that is in `kept`."""
        seat = self._kept[source_id]
        committed = self.checkpoint.last_commit(seat.stream.topic)
        if committed is None:
            starts = (self.checkpoint.next_beginnings() or {}).get(seat.stream.topic, seat.starts)
            committed = StreamPosition(-1, starts)
        return LaneStart(committed, seat.earlier_ends)

    def forget(self, source_id: str) -> None:
        """Remove a stream from `kept`, because the stream was dropped or goes on with another checkpoint."""
        self._kept.pop(source_id, None)

    def take_back(self, stream: Stream) -> Seat:
        """Make this checkpoint the valid one of a stream in `kept`, including its part of the micro-batch under way.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        seat = self._kept[stream.source_id]
        self._store.unpin(stream.stream_id, self.place(stream.source_id).position.batch + 1)
        self._store.note_checkpoint(stream.stream_id, self.name)
        self._checkpoints.of(stream.source_id).remove()
        del self._kept[stream.source_id]
        return seat

    def release(self, seat: Seat) -> None:
        """Copy a stream's entries of the log into a checkpoint of its own, and make that checkpoint the valid one.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        own = self._checkpoints.of(seat.stream.source_id)
        own.remove()
        # Before the lane's first micro-batch there is nothing to copy: the stream begins at the position in Redis.
        if not self.is_broken() and self.checkpoint.copy_of(seat.stream.topic, own):
            own.note_earlier_ends(seat.earlier_ends)
            self._store.note_checkpoint(seat.stream.stream_id, own.give_name())
        self.forget(seat.stream.source_id)

    def release_kept(self) -> None:
        """Release all streams that are still in `kept`, for example because their topics cannot be read."""
        for seat in list(self._kept.values()):
            try:
                self.release(seat)
            except OperationalError as error:
                log.warning("checkpoint lost", extra={"stream": seat.stream.name, "reason": error.line})
                self.forget(seat.stream.source_id)

    def renew(self) -> None:
        """Begin a new log; no stream may be in the lane."""
        self.release_kept()
        self.checkpoint.remove()
        self.name = self.checkpoint.give_name()

    def add(self, seats: Iterable[Seat], added: Iterable[Seat]) -> None:
        """Add streams to the log. No added stream may have a micro-batch under way.

        Args:
            seats: The streams in the lane.
            added: The streams to add.

        Raises:
            OperationalError: Redis or the checkpoint's file system does not answer.
        """
        seats, added = list(seats), list(added)
        places = {seat.stream.topic: seat.starts for seat in added}
        self.checkpoint.set_topics([seat.stream.topic for seat in seats], places)
        self._note(seats + added)
        for seat in added:
            self._store.unpin(seat.stream.stream_id, None)
            self._store.note_checkpoint(seat.stream.stream_id, self.name)
            self._checkpoints.of(seat.stream.source_id).remove()

    def begin(self, seats: Iterable[Seat]) -> None:
        """Bring the log in line with the streams of the query, before the query starts.

        Args:
            seats: The streams in the lane.
        """
        seats = list(seats)
        if self.checkpoint.has_begun():
            self.checkpoint.set_topics([seat.stream.topic for seat in seats], {})
        else:  # an earlier start, after which no micro-batch was carried out, may have left files with other topics
            self.checkpoint.remove()
            self.checkpoint.give_name(self.name)
            self.checkpoint.open_log({seat.stream.topic: seat.starts for seat in seats})
        self._note(seats)

    def _note(self, seats: Iterable[Seat]) -> None:
        members = [
            _LaneMember(seat.stream.source_id, seat.stream.topic, seat.starts, seat.earlier_ends) for seat in seats
        ]
        self.checkpoint.files.write(f"{self.checkpoint.location}/{_FILE}", msgspec.json.encode(members).decode())

    def _members(self) -> list[_LaneMember]:
        text = self.checkpoint.files.text(f"{self.checkpoint.location}/{_FILE}")
        try:
            return msgspec.json.decode(text or "[]", type=list[_LaneMember])
        except msgspec.DecodeError:  # a power failure left half a file
            return []
