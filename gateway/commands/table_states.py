"""The state of tables for DESCRIBE TABLE and `cq status`: their rows in the workers, and changes not yet read."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.registry.replicas import ReplicaFigures, Replicas
from gateway.topics.topic_desk import TopicQuestions
from grouping.model.table import Table

__all__ = ["TableStates"]

_SPLIT_KEYS = (
    "A key is in several partitions of the table's topic. Changes in different partitions have no order, so the row in "
    "the highest partition is used. The likely cause is a producer whose partitioner differs from the other producers' "
    "(librdkafka's default is not Java's; set partitioner = murmur2_random), or a topic that got more partitions."
)


class TableStates:
    """Compares replicas in the workers with the topics of their tables."""

    def __init__(self, topics: TopicQuestions, replicas: Replicas) -> None:
        self._topics = topics
        self._replicas = replicas

    def of(self, tables: Iterable[Table], now_ms: int) -> dict[str, dict[str, object]]:
        """Return table name → state; Kafka is asked about all tables together.

        `state` is ``topic-lost`` if the topic was deleted; ``unread`` if no worker holds the table, because no event
        was joined with it recently; ``loading`` if a micro-batch waits for the first read of the table; ``lagging`` if
        a micro-batch waits for many changes; otherwise ``ready``. `bytes` is the memory in each worker, and `lag` the
        number of changes that the next micro-batch must read first. `rows`, `bytes` and `lag` are None if unknown.
        `warnings` is present if a key was found in two partitions.

        Raises:
            OperationalError: A server does not answer.
        """
        listed = list(tables)
        forms = self._topics.forms(table.topic for table in listed)
        there = {
            table.topic: forms[table.topic].partitions
            for table in listed
            if table.topic in forms and table.topic_id in ("", forms[table.topic].topic_id)
        }
        places = [(topic, number) for topic, count in there.items() for number in range(count)]
        # A micro-batch also waits for the changes of open transactions, so the ends include uncommitted records.
        ends = self._topics.offsets.known_ends(places, committed=False)
        states: dict[str, dict[str, object]] = {}
        for table in listed:
            figures = self._replicas.of(table, now_ms)
            states[table.name] = {
                "state": _state(figures, lost=table.topic not in there),
                "rows": None if figures is None else figures.rows,
                "bytes": None if figures is None else figures.nbytes,
                "workers": 0 if figures is None else figures.workers,
                "lag": None if figures is None or table.topic not in there else _lag(table, figures, ends),
                **({"warnings": [_SPLIT_KEYS]} if figures is not None and figures.split_keys else {}),
            }
        return states


def _state(figures: ReplicaFigures | None, *, lost: bool) -> str:
    if lost:
        return "topic-lost"
    if figures is None:
        return "unread"
    if figures.waiting:
        return "lagging" if figures.reached else "loading"
    return "ready"


def _lag(table: Table, figures: ReplicaFigures, ends: dict[tuple[str, int], int]) -> int:
    """Return how many offsets no replica has read; offsets without a change (markers, compacted records) count too."""
    own = {number: end for (topic, number), end in ends.items() if topic == table.topic}
    return sum(max(0, end - figures.reached.get(number, 0)) for number, end in own.items())
