"""The place where the evaluation of a stream begins: from its checkpoint, or from Redis if no checkpoint is valid."""

from __future__ import annotations

from grouping.model.catalog import Stream
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.topic_offsets import PartitionOffsets
from spark_jobs.runtime.streams.checkpoint import Checkpoint, StreamPosition
from spark_jobs.runtime.streams.lane_log import LaneStart

__all__ = ["find_place", "is_far", "resume"]

_FAR = 5_000
"""A stream with more waiting events than this begins in a query of its own."""


def resume(stream: Stream, checkpoint: Checkpoint, store: TableStore, broker: Broker) -> StreamPosition:
    """Return the place where a query begins, and remove the pins of micro-batches that will not be replayed.

    Redis has the name of the valid checkpoint of each stream. A new checkpoint is made if the old one is lost or
    unreadable. A new checkpoint is also made if the name in Redis is that of another checkpoint, because then another
    evaluator has evaluated the stream with its own checkpoint meanwhile. All events before the place are evaluated.
    Later events may have been evaluated already; they are evaluated again, and their results have the same ids.

    Args:
        stream: The query's stream.
        checkpoint: The stream's own checkpoint.
        store: Redis, with the offsets that are committed and the pins.
        broker: Kafka, with the ends of the source.
    """
    if checkpoint.is_whole() and store.checkpoint(stream.stream_id) in (None, checkpoint.name()):
        store.note_checkpoint(stream.stream_id, checkpoint.name() or checkpoint.give_name())
        position = checkpoint.last_commit(stream.topic)
        store.unpin(stream.stream_id, 0 if position is None else position.batch + 1)
        if position is not None:
            return position
    else:
        checkpoint.remove()
        store.unpin(stream.stream_id, None)
        ends = broker.ends(stream.topic)
        checkpoint.note_earlier_ends(stream.positions({str(partition): end for partition, end in ends.items()}))
        store.note_checkpoint(stream.stream_id, checkpoint.give_name())
    return _known_to_redis(stream, store)


def find_place(stream: Stream, checkpoint: Checkpoint, store: TableStore, broker: Broker) -> LaneStart | None:
    """Return where the lane may begin with a stream that has no query.

    The result is None if a micro-batch is under way, because the stream's own query must carry out this batch first.

    Args:
        stream: The stream.
        checkpoint: The stream's own checkpoint.
        store: Redis, with the offsets that are committed.
        broker: Kafka, with the ends of the source.
    """
    counting = store.checkpoint(stream.stream_id)
    if checkpoint.is_whole() and counting in (None, checkpoint.name()):
        committed = checkpoint.last_commit(stream.topic)
        idle = committed is not None and checkpoint.is_idle()
        return LaneStart(committed, checkpoint.earlier_ends()) if committed is not None and idle else None
    if counting is not None and counting == checkpoint.name():
        earlier_ends = checkpoint.earlier_ends()
    else:
        earlier_ends = stream.positions({str(partition): end for partition, end in broker.ends(stream.topic).items()})
    return LaneStart(_known_to_redis(stream, store), earlier_ends)


def is_far(place: LaneStart, ends: PartitionOffsets) -> bool:
    """Tell whether so many events wait after a place that the stream would delay the other streams of the lane.

    Args:
        place: Where the stream's evaluation begins.
        ends: By source partition, the offset after the last record.
    """
    offsets = place.position.offsets
    return sum(max(0, end - offsets.get(str(partition), 0)) for partition, end in ends.items()) > _FAR


def _known_to_redis(stream: Stream, store: TableStore) -> StreamPosition:
    begin = stream.evaluated(store.committed_positions(stream.stream_id))
    offsets = {partition: place - stream.base for partition, place in begin.items() if place >= stream.base}
    return StreamPosition(-1, offsets)
