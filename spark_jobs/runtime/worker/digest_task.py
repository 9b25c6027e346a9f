"""A task of a digest job, which carries out orders with the same code as the gateway (`grouping/digests/orders.py`)."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import starmap

import msgspec
import pyarrow as pa

from grouping.digests.orders import (
    ANSWERS,
    DigestOutcome,
    MadeDigest,
    Order,
    OrderOutcome,
    carry_out,
    ordered_parts,
)
from grouping.digests.pending_log import PendingLog
from grouping.settings.settings import Settings
from grouping.store.record_keys import answer_key
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.stored_matches import StoredMatches
from spark_jobs.runtime.worker.garbage import GarbagePolicy

__all__ = ["MEMORY", "DigestTask", "JobMemory", "OrderRecords"]

_BATCH_BYTES = 4 << 20
_IDLE_SECONDS = 10.0
_KEPT_BYTES = 32 << 20
"""The largest number of bytes of packed pending matches that a worker keeps for the next orders."""

_decode = msgspec.msgpack.Decoder(Order).decode


class JobMemory:
    """The records that a worker process keeps between tasks, because the orders of a job mostly read the same ones."""

    def __init__(self, task_done: Callable[[], None] | None = None) -> None:
        self._logs: dict[str, tuple[PendingLog, float]] = {}
        """By prefix: the log, and the time of its last use in monotonic seconds."""
        self.task_done = task_done or GarbagePolicy().task_done

    def log(self, settings: Settings) -> PendingLog:
        """Return the log of pending matches that orders read."""
        known = self._logs.get(settings.prefix)
        log = known[0] if known else PendingLog(StoredMatches(settings).span, most_bytes=_KEPT_BYTES, keeping=True)
        self._logs[settings.prefix] = (log, time.monotonic())
        return log

    def forget_idle(self, now: float) -> None:
        """Forget the records of jobs that are over."""
        for prefix in [prefix for prefix, (_, used_at) in self._logs.items() if now - used_at > _IDLE_SECONDS]:
            del self._logs[prefix]


MEMORY = JobMemory()
"""The memory of this worker process."""


@dataclass(frozen=True, slots=True)
class DigestTask:
    """The function that `mapInArrow` runs over records of `cq.orders`: columns ``offset`` and ``value``."""

    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""

    @classmethod
    def of(cls, settings: Settings) -> DigestTask:
        """Return the task of a job under some settings."""
        return cls(pickle.dumps(settings))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Carry out the orders of a task; yield for each order its digests, and then its answer."""
        settings: Settings = pickle.loads(self.settings)
        log = MEMORY.log(settings)
        for batch in batches:
            for offset, body in zip(batch["offset"].to_pylist(), batch["value"], strict=True):
                records = OrderRecords(offset, _decode(body.as_py()), settings)
                yield from records.of_pending(log)
                yield records.answer()
        MEMORY.task_done()


class OrderRecords:
    """The records of an order: digests, their dead letters, and the answer, in batches of a bounded size."""

    def __init__(self, offset: int, order: Order, settings: Settings) -> None:
        """Begin without a record.

        Args:
            offset: The offset of the order.
            order: The order.
            settings: The evaluator's settings.
        """
        self._offset = offset
        self._order = order
        self._topics = settings.topics
        self._outcomes: list[DigestOutcome] = []
        self._clear()

    def _clear(self) -> None:
        self._size = 0
        self._rows: list[tuple[bytes | None, bytes | None, str, int | None, bytes]] = []

    def of_pending(self, log: PendingLog) -> Iterator[pa.RecordBatch]:
        """Add the records of the order's digests of pending matches; yield batches that are full."""
        yield from self.of_digests(starmap(MadeDigest, carry_out(log, self._order.only(of_rows=False))))

    def of_digests(self, some: Iterable[MadeDigest]) -> Iterator[pa.RecordBatch]:
        """Add the records of digests; yield batches that are full."""
        for made in some:
            yield from self.of_digest(made)

    def of_digest(self, made: MadeDigest) -> Iterator[pa.RecordBatch]:
        """Add the records of a digest; yield batches that are full."""
        each, digest, outcome, fault = made
        self._outcomes.append(outcome)
        if fault is not None:
            source = f"{each.destination_id}/{each.tick_ms}/1"
            letter = (("code", fault.code.encode()), ("detail", fault.detail.encode()), ("source", source.encode()))
            self._add(None, None, self._topics.deadletters, None, letter)
        for body, headers in () if digest is None else ordered_parts(self._order, each, digest):
            self._add(each.destination_id.encode(), body, each.topic, each.partition, headers)
            if self._size > _BATCH_BYTES:
                yield self._taken()

    def answer(self) -> pa.RecordBatch:
        """Return the last batch, with the answer to the order as its last record."""
        outcome = OrderOutcome(self._order.stream_id, self._order.fired_ms, tuple(self._outcomes))
        self._add(answer_key(self._offset), msgspec.msgpack.encode(outcome), self._topics.orders, ANSWERS, ())
        return self._taken()

    def _add(
        self,
        key: bytes | None,
        value: bytes | None,
        topic: str,
        partition: int | None,
        headers: Iterable[tuple[str, bytes]],
    ) -> None:
        self._rows.append((key, value, topic, partition, packed_headers(headers)))
        self._size += len(value or b"")

    def _taken(self) -> pa.RecordBatch:
        arrays = [
            pa.array(column, kind) for column, kind in zip(zip(*self._rows, strict=True), OUTPUT.types, strict=True)
        ]
        self._clear()
        return pa.record_batch(arrays, schema=OUTPUT)
