"""Notes of gateway and evaluator for each other in Redis, with a type for each note. The keys are in `keys.py`.

Each field that was added to a note has a default, so notes of earlier versions of the product can be read. Earlier
versions ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from grouping.model.ids import GroupId

__all__ = [
    "CommittedNote",
    "EpochNote",
    "ExecutorsNote",
    "Output",
    "PartitionStates",
    "PartitionWatermark",
    "Pin",
    "ReplicaNote",
    "StateNote",
    "TablePins",
    "TableVersion",
]

_WATERMARK = b"watermark/"
"""The beginning of the names of fields of `RedisKeys.output` that hold the watermark of a partition."""
TablePins = dict[str, dict[int, int]]
"""By `Table.source_id`, then by partition of the table's topic: the offset after the last change that a batch sees."""


class TableVersion(NamedTuple):
    """A version of a stream's constant tables."""

    epoch: int
    version: int


class Pin(NamedTuple):
    """The constant tables and the declaration that all tasks of a micro-batch use; a value of `RedisKeys.pins`."""

    version: TableVersion
    paused: tuple[GroupId, ...] = ()
    """The groups that an operator has paused."""
    revision: int = 1
    """The `Stream.revision` of the declaration."""

    @classmethod
    def unpack(cls, body: bytes | str) -> Pin:
        """Read the pin of a micro-batch.

        Example:
            >>> Pin.unpack(b"7:12").version, Pin.unpack(b"7:12:g_1,g_2").paused
            (TableVersion(epoch=7, version=12), ('g_1', 'g_2'))
            >>> Pin.unpack(b"7:12::3")
            Pin(version=TableVersion(epoch=7, version=12), paused=(), revision=3)
        """
        epoch, version, *more = (body if isinstance(body, str) else body.decode()).split(":")
        paused = more[0].split(",") if more and more[0] else []
        revision = int(more[1]) if len(more) > 1 else 1
        return cls(TableVersion(int(epoch), int(version)), tuple(map(GroupId, paused)), revision)


class Output(NamedTuple):
    """Totals over a stream's tasks since Redis was filled. The hash `RedisKeys.output` has fields of the same names.

    Example:
        >>> Output.unpack({b"matches": b"3", b"nbytes": b"120"})
        Output(matches=3, results=0, nbytes=120, late=0, future=0)
    """

    matches: int = 0
    """The number of matches of all destinations except virtual ones."""
    results: int = 0
    """The number of records written to topics of results."""
    nbytes: int = 0
    """The bytes of these records: keys, values and headers."""
    late: int = 0
    """The number of events behind the watermark, or without an event time."""
    future: int = 0
    """The number of events whose event time is too far in the future."""

    @classmethod
    def unpack(cls, fields: Mapping[bytes, bytes]) -> Output:
        """Read a hash of Redis."""
        return cls(*(int(fields.get(name.encode(), 0)) for name in cls._fields))


class PartitionWatermark(NamedTuple):
    """The watermark of a source partition after a task, and the time from which on the partition is idle."""

    watermark: int
    """Epoch milliseconds."""
    moves_at: int
    """When the partition becomes idle, in epoch milliseconds. From then on, until the next event, the watermark
    advances with the clock.
    """

    @classmethod
    def unpack_all(cls, fields: Mapping[bytes, bytes]) -> dict[int, PartitionWatermark]:
        """Read the watermarks by partition from the hash `RedisKeys.output`.

        Example:
            >>> PartitionWatermark.unpack_all({b"matches": b"3", b"watermark/0": b"1000 5000"})
            {0: PartitionWatermark(watermark=1000, moves_at=5000)}
        """
        bodies = {int(field[len(_WATERMARK) :]): body for field, body in fields.items() if field.startswith(_WATERMARK)}
        return {partition: cls(*map(int, bodies[partition].split())) for partition in sorted(bodies)}

    def pack(self) -> str:
        """Return the watermark in the form that Redis stores."""
        return f"{self.watermark} {self.moves_at}"

    def at(self, now_ms: int) -> int:
        """Return the watermark at a time, if no event has come since."""
        return self.watermark + max(now_ms - self.moves_at, 0)


class ReplicaNote(msgspec.Struct, frozen=True):
    """A worker's report on its replica of a table; a value of `RedisKeys.replicas`."""

    at_ms: int
    """When the note was written, in epoch milliseconds."""
    rows: int
    """The number of live rows."""
    nbytes: int
    """Bytes of memory that the rows and their indexes take in the worker."""
    reached: dict[int, int] = {}
    """By partition of the topic, the offset after the last change in the replica."""
    waiting: int = 0
    """The number of records that the replica must still read for a waiting micro-batch; 0 if no micro-batch waits."""
    evaluator: str = ""
    """The name of the worker's evaluator."""
    split_keys: bool = False
    """Whether a primary key was found in two partitions of the topic."""

    @classmethod
    def unpack(cls, body: bytes) -> ReplicaNote:
        """Read a note.

        Raises:
            msgspec.MsgspecError: The value is not a note.
        """
        return _decode_replica(body)

    def pack(self) -> bytes:
        """Return the note as Redis has it."""
        return _encode(self)


class StateNote(msgspec.Struct, frozen=True):
    """The state of a computation in one source partition."""

    keys: int
    rows: int
    nbytes: int
    """Bytes of memory in the worker."""
    restore_seconds: float = 0.0
    """Seconds that the worker took to restore the state, from files and the log, before its first batch."""


class PartitionStates(msgspec.Struct, frozen=True):
    """A worker's report on the states in one source partition; a value of `RedisKeys.states`."""

    at_ms: int
    """When the report was written, in epoch milliseconds."""
    states: dict[str, StateNote] = {}
    """The states by the ids of their computations."""

    @classmethod
    def unpack(cls, body: bytes) -> PartitionStates:
        """Read a report.

        Raises:
            msgspec.MsgspecError: The bytes are no report.
        """
        return _decode_states(body)

    def pack(self) -> bytes:
        """Return the report as Redis has it."""
        return _encode(self)


class EpochNote(msgspec.Struct, frozen=True):
    """The value of `RedisKeys.epoch`."""

    epoch: int = 0
    run_id: str | None = None
    """The run of the Redis server for which the tables are confirmed; "" if no run is confirmed, None if Redis has no
    note.
    """

    @classmethod
    def unpack(cls, body: bytes | None) -> EpochNote:
        """Read a note; a value of another form is read as an empty note."""
        try:
            return _decode_epoch(body or b"{}")
        except msgspec.MsgspecError:
            return cls()

    def pack(self) -> bytes:
        """Return the note in the form that Redis stores. The scripts of the evaluator read the note too."""
        return _encode(self)


class CommittedNote(msgspec.Struct, frozen=True):
    """The value of `RedisKeys.committed`."""

    batch: int = -1
    """The last micro-batch that is committed."""
    offsets: dict[str, int] = {}
    """By source partition, the position up to which events are evaluated; empty if no position was noted."""
    pinned: str | msgspec.UnsetType = msgspec.UNSET
    """The `Pin` of the batch, as text, if known."""

    @property
    def table(self) -> TableVersion | None:
        """The version of the constant tables that the batch used; None if unknown."""
        return None if self.pinned is msgspec.UNSET else Pin.unpack(self.pinned).version

    @classmethod
    def unpack(cls, body: bytes | None) -> CommittedNote:
        """Read a note; an empty note if the value is missing.

        Example:
            >>> CommittedNote.unpack(b'{"batch": 3, "offsets": {"0": 12}}').offsets, CommittedNote.unpack(None).offsets
            ({'0': 12}, {})
        """
        return _decode_committed(body or b"{}")

    def pack(self) -> bytes:
        """Return the note as Redis has it."""
        return _encode(self)


class ExecutorsNote(msgspec.Struct, frozen=True):
    """The executors of the evaluator's tasks; the value of `RedisKeys.executors`."""

    cores: int = 0
    """The number of cores of all executors; each core runs one task at a time in its own Python worker."""
    worker_bytes: int | None = None
    """The bytes of an executor's memory, divided by the executor's workers; None if unknown."""

    @classmethod
    def unpack(cls, body: bytes | None) -> ExecutorsNote:
        """Read a note; an empty note if the value is missing or has another form."""
        try:
            return _decode_executors(body or b"{}")
        except msgspec.MsgspecError:
            return cls()

    def pack(self) -> bytes:
        """Return the note as Redis has it."""
        return _encode(self)


_encode = msgspec.json.encode
_decode_executors = msgspec.json.Decoder(ExecutorsNote).decode
_decode_replica = msgspec.json.Decoder(ReplicaNote).decode
_decode_states = msgspec.json.Decoder(PartitionStates).decode
_decode_epoch = msgspec.json.Decoder(EpochNote).decode
_decode_committed = msgspec.json.Decoder(CommittedNote).decode
