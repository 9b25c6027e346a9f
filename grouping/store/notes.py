"""Notes of gateway and evaluator for each other in Redis: a type for each note, beside its key.

New fields have defaults, so notes of earlier versions can be read; earlier versions ignore new fields.
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
"""The beginning of the fields of `RedisKeys.output` that have a partition's watermark."""
TablePins = dict[str, dict[int, int]]
"""By `Table.source_id` and partition of the table's topic: the offset after the last change that a micro-batch sees."""


class TableVersion(NamedTuple):
    """A version of a stream's constant tables."""

    epoch: int
    version: int


class Pin(NamedTuple):
    """The constant tables and declaration that all tasks of a micro-batch use; as text a value of `RedisKeys.pins`."""

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
    """Totals of a stream's tasks since Redis was filled; the fields are those of `RedisKeys.output`.

    Example:
        >>> Output.unpack({b"matches": b"3", b"nbytes": b"120"})
        Output(matches=3, results=0, nbytes=120, late=0, future=0)
    """

    matches: int = 0
    """Matches of all destinations except virtual ones."""
    results: int = 0
    """Records written to topics of results."""
    nbytes: int = 0
    """Bytes of keys, values and headers."""
    late: int = 0
    """Events behind the watermark, or without an event time."""
    future: int = 0
    """Events with an event time too far ahead."""

    @classmethod
    def unpack(cls, fields: Mapping[bytes, bytes]) -> Output:
        """Read a hash of Redis."""
        return cls(*(int(fields.get(name.encode(), 0)) for name in cls._fields))


class PartitionWatermark(NamedTuple):
    """The watermark of a source partition after a task, and when the partition counts as idle."""

    watermark: int
    """Epoch milliseconds."""
    moves_at: int
    """Epoch milliseconds: from then on, without a new event, the watermark advances with the clock."""

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
        """Return the watermark as Redis has it."""
        return f"{self.watermark} {self.moves_at}"

    def at(self, now_ms: int) -> int:
        """Return the watermark at a time, if no event has come since."""
        return self.watermark + max(now_ms - self.moves_at, 0)


class ReplicaNote(msgspec.Struct, frozen=True):
    """A worker's report on its replica of a table; a value of `RedisKeys.replicas`."""

    at_ms: int
    """The time of the note."""
    rows: int
    """The number of live rows."""
    nbytes: int
    """Memory of the rows and their indexes in the worker."""
    reached: dict[int, int] = {}
    """By partition of the topic, the offset after the last change in the replica."""
    waiting: int = 0
    """The number of records that a waiting micro-batch still needs; 0 if none waits."""
    evaluator: str = ""
    """The name of the worker's evaluator."""
    split_keys: bool = False
    """Whether a key was found in two partitions."""

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
    """Memory in the worker."""
    restore_seconds: float = 0.0
    """How long the worker took to restore the state for its first batch, from files and the log."""


class PartitionStates(msgspec.Struct, frozen=True):
    """A worker's report on the states in one source partition; a value of `RedisKeys.states`."""

    at_ms: int
    """When the report was written."""
    states: dict[str, StateNote] = {}
    """By computation id."""

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
    """The run of the Redis server for which the tables are confirmed; empty for no run, None if Redis has no such
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
        """Return the note as Redis has it; a script reads the note too."""
        return _encode(self)


class CommittedNote(msgspec.Struct, frozen=True):
    """The value of `RedisKeys.committed`."""

    batch: int = -1
    """The last micro-batch that is committed."""
    offsets: dict[str, int] = {}
    """By source partition, the position up to which events are evaluated; empty if none was noted."""
    pinned: str | msgspec.UnsetType = msgspec.UNSET
    """The `Pin` of the batch, as text, if known."""

    @property
    def table(self) -> TableVersion | None:
        """The version that the batch was pinned to."""
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
    """Bytes of an executor's memory for each worker; None if unknown."""

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
