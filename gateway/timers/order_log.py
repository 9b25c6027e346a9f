"""The log of orders: the open orders, and the answers of the job that carried them out."""

from __future__ import annotations

from collections import deque

import msgspec

from gateway.kafka import LogReader, OutgoingRecord, Topics
from gateway.state.commit import Commits
from grouping.digests.orders import ANSWERS, ORDERS, Order
from grouping.model.errors import InternalError
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.record_keys import ORDER, order_of

__all__ = ["OrderLog"]

_encode = msgspec.msgpack.encode
_AT_ONCE = 8
"""The number of records that are in memory together while the log is read; a record may have several megabytes."""


class OrderLog:
    """The open orders. The gateway closes them by ascending offset."""

    def __init__(self, settings: Settings, topics: Topics, commits: Commits) -> None:
        self._topics = topics
        self._commits = commits
        self._topic = settings.topics.orders
        self._reader = LogReader(settings)
        self.open: deque[int] = deque()
        """The offsets of the open orders."""

    def recover(self, closed: int) -> StreamId | None:
        """Find the open orders, and return their stream, which is the same for all; None if no order is open.

        Args:
            closed: The offset before which all orders are closed.
        """
        first = max(closed, self._topics.offsets.beginnings([(self._topic, ORDERS)])[self._topic, ORDERS])
        self.open.clear()
        stream_id = None
        for record in self._reader.since(self._topic, {ORDERS: first}, _AT_ONCE):
            if record.value is not None:
                stream_id = stream_id or _decode_order(record.value).stream_id
                self.open.append(record.offset)
        return stream_id

    def write(self, order: Order) -> None:
        """Write an order to Kafka."""
        record = OutgoingRecord(self._topic, ORDER, _encode(order), (), ORDERS)
        self.open.append(self._commits.write_records([record], {0})[0])

    def at(self, offset: int) -> Order:
        """Read an open order."""
        record = next(self._reader.since(self._topic, {ORDERS: offset}, 1), None)
        if record is None or record.value is None:
            raise InternalError("an open order is gone", detail=f"The order was at offset {offset} of {self._topic}.")
        return _decode_order(record.value)

    def answers_end(self) -> int:
        """Return the offset that the next answer will have."""
        return self._topics.offsets.ends([(self._topic, ANSWERS)])[self._topic, ANSWERS]

    def answers(self, since: int) -> dict[int, bytes]:
        """Return the answers from an offset on: offset of an order → its answer, not decoded."""
        found: dict[int, bytes] = {}
        for record in self._reader.since(self._topic, {ANSWERS: since}, _AT_ONCE):
            if record.key is not None and record.value is not None:
                found[order_of(record.key)] = record.value
        return found

    def trim(self) -> None:
        """Delete all orders and answers; all orders must be closed."""
        places = [(self._topic, ORDERS), (self._topic, ANSWERS)]
        ends = self._topics.offsets.ends(places, committed=True)
        self._topics.offsets.delete_before(
            self._topic, {partition: ends[self._topic, partition] for _, partition in places}
        )


_decode_order = msgspec.msgpack.Decoder(Order).decode
