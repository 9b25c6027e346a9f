"""The place where a stream's query begins: its checkpoint's, or without one the place that Redis knows."""

from __future__ import annotations

from grouping.model.catalog import Stream
from grouping.store.table_store import TableStore
from spark_jobs.runtime.driver.checkpoint import Checkpoint, Position
from spark_jobs.runtime.kafka.broker import Broker

__all__ = ["resume"]


def resume(stream: Stream, checkpoint: Checkpoint, store: TableStore, broker: Broker) -> Position:
    """Return the place where a query begins, and forget the pins that no batch of it goes by.

    A lost or unreadable checkpoint is made anew; so is a checkpoint that another evaluator has left behind since, with
    a checkpoint of its own: in Redis each stream has one, by name. All events before the place are evaluated; events
    after it that were evaluated too are evaluated again, with the same ids.

    Args:
        stream: The query's stream.
        checkpoint: The stream's.
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
        checkpoint.note_anew(stream.positions({str(partition): end for partition, end in ends.items()}))
        store.note_checkpoint(stream.stream_id, checkpoint.give_name())
    begin = stream.evaluated(store.committed_positions(stream.stream_id))
    offsets = {partition: place - stream.base for partition, place in begin.items() if place >= stream.base}
    return Position(-1, offsets)
