"""Notes of tasks in Redis on the schemas that records name."""

from __future__ import annotations

import msgspec

from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.store.connection import connect
from grouping.store.keys import RedisKeys
from grouping.store.task_notes import SchemaNotes, UnknownIds
from tests.ground import Ground

_ID = StreamId("s_1")


def test_the_first_id_stays(ground: Ground) -> None:
    """The first task decides; a stream's own record counts where Redis was filled anew."""
    notes, redis, keys = SchemaNotes(ground.settings), connect(ground.settings), RedisKeys.of(ground.settings)
    assert [7, 7] == [notes.first_id(_ID, 7), notes.first_id(_ID, 8)]
    redis.delete(keys.schema_id(_ID))
    stream = Stream(_ID, "q", (), "t", "avro", {}, "", "{}", "confluent", schema_id=5)
    redis.hset(keys.streams, _ID, msgspec.json.encode(stream))
    assert 5 == notes.first_id(_ID, 8)


def test_schemas_of_a_registry_stay(ground: Ground) -> None:
    """The first schema of an id stays; unknown ids are those of a partition."""
    notes = SchemaNotes(ground.settings)
    notes.keep_schemas(_ID, {1: "a", 2: "b"})
    notes.keep_schemas(_ID, {2: "c", 3: "d"})
    notes.keep_unknown(_ID, 4, UnknownIds(9, frozenset((8,))))
    assert ({1: "a", 2: "b", 3: "d"}, UnknownIds(9, frozenset((8,)))) == notes.schemas(_ID, [1, 2, 3, 8], 4)
    assert ({}, UnknownIds()) == notes.schemas(_ID, [], 5)
