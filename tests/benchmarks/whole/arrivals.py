"""The first result of an event that is published now, which shows from when on events are matched."""

from __future__ import annotations

import time
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.benchmarks.material import quotes

__all__ = ["Arrivals"]

_RESULT_SECONDS = 180.0


class Arrivals:
    """Publishes events matched by CQs of `quotes.queries`, and reads their results."""

    def __init__(self, bootstrap: str) -> None:
        """Begin at the end of all results."""
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
        numbers = self._consumer.list_topics("cq.results").topics["cq.results"].partitions
        places = [TopicPartition("cq.results", number) for number in numbers]
        for place in places:
            place.offset = self._consumer.get_watermark_offsets(place)[1]
        self._consumer.assign(places)
        self._price = 0.0

    def __enter__(self) -> Arrivals:
        """Return this."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave."""
        self._consumer.close()

    def first_result(self) -> float:
        """Publish an event, and return when its first result was here, monotonic seconds.

        Raises:
            RuntimeError: None came for minutes.
        """
        self._price -= 1.0  # identifies its results among results of earlier events
        price = f"{self._price:.1f}".encode()
        self._producer.produce(
            quotes.TOPIC, f'{{"symbol": "{quotes.symbol(0)}", "price": {self._price:.1f}}}', partition=0
        )
        self._producer.flush()
        deadline = time.monotonic() + _RESULT_SECONDS
        while time.monotonic() < deadline:
            found = self._consumer.poll(1.0)
            if found is not None and found.error() is None and price in (found.value() or b""):
                return time.monotonic()
        raise RuntimeError("no result came")
