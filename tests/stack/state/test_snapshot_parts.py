"""Workers that share a snapshot: who writes which part of it, and when."""

from __future__ import annotations

from grouping.model.ids import StreamId
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.snapshot_notes import SnapshotNote, SnapshotPart, SnapshotStore
from tests.ground import Ground

_NOTE = SnapshotNote(StreamId("c_t_1"), "alice", "mine", 7, (5, 0), "shared", 3, b"")


def test_each_part_has_one_writer(ground: Ground) -> None:
    """A part that is written or has a writer is not taken; a writer that died is replaced, and the try is counted."""
    redis, keys = connect(ground.settings), RedisKeys.of(ground.settings)
    notes, (first, second, end) = SnapshotStore(redis, keys), (SnapshotPart("d_1", number) for number in range(3))
    redis.hset(keys.snapshots, "d_1", _NOTE.pack())
    assert [notes.take(first, "a"), notes.take(first, "b"), notes.take(second, "b")] == [1, 0, 1]
    assert notes.keep(first, "a")
    assert notes.written("d_1") == {}
    notes.wrote(first, 4)
    redis.delete(keys.snapshot_writer(second.name))  # worker b dies, and its charge lapses
    assert [notes.take(first, "a"), notes.take(second, "a")] == [0, 2]
    notes.wrote(second, 0)
    assert notes.written("d_1") == {0: 4, 1: 0}
    assert notes.take(end, "a") == 1
    notes.made(end, _NOTE)
    assert (notes.due(), notes.written("d_1")) == ({}, {})
    assert SnapshotNote.unpack(redis.hget(keys.snapshots_made, "d_1")) == _NOTE
    assert [notes.take(each, "a") for each in (first, second, end)] == [0, 0, 0]
    assert not redis.exists(keys.snapshot_tries)


def test_a_dropped_query_ends_its_snapshot(ground: Ground) -> None:
    """A writer learns that the snapshot is not owed any more, and gives its part up."""
    redis, keys = connect(ground.settings), RedisKeys.of(ground.settings)
    notes, part = SnapshotStore(redis, keys), SnapshotPart("d_1", 0)
    redis.hset(keys.snapshots, "d_1", _NOTE.pack())
    assert notes.take(part, "a") == 1
    redis.hdel(keys.snapshots, "d_1")
    assert not notes.keep(part, "a")
    notes.release(part.name)
    assert not redis.exists(keys.snapshot_writer(part.name), keys.snapshot_tries)
