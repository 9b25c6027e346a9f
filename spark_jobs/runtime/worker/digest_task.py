"""A task of a digest job: it carries out orders, with the same code as the gateway (`grouping/digests/orders.py`)."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, starmap

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

__all__ = ["MEMORY", "DigestTask", "JobMemory", "carried_out"]

_BATCH_BYTES = 4 << 20
_IDLE_SECONDS = 10.0
_KEPT_BYTES = 32 << 20
"""Bytes of pending matches that a worker keeps for the next order; unpacked they take some more."""

_decode = msgspec.msgpack.Decoder(Order).decode


class JobMemory:
    """The records that a worker process keeps between tasks of a digest job: its orders read the same records."""

    def __init__(self, task_done: Callable[[], None] | None = None) -> None:
        self._logs: dict[str, tuple[PendingLog, float]] = {}
        """By prefix: the log, and when it was last used, monotonic seconds."""
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
        """Yield the digests of each of a task's orders, and then the answer to the order."""
        settings: Settings = pickle.loads(self.settings)
        log = MEMORY.log(settings)
        for batch in batches:
            for offset, body in zip(batch["offset"].to_pylist(), batch["value"], strict=True):
                yield from carried_out(log, offset, _decode(body.as_py()), settings)
        MEMORY.task_done()


def carried_out(
    log: PendingLog, offset: int, order: Order, settings: Settings, of_rows: Iterable[MadeDigest] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the digests of an order, and then the answer.

    Args:
        log: The log of pending matches.
        offset: The offset of the order.
        order: The order.
        settings: The evaluator's settings.
        of_rows: The order's digests of a table's rows.
    """
    records, topics = _OutputRows(), settings.topics
    answered: list[DigestOutcome] = []
    for each, digest, told, fault in chain(starmap(MadeDigest, carry_out(log, order.only(of_rows=False))), of_rows):
        answered.append(told)
        if fault is not None:
            source = f"{each.destination_id}/{each.tick_ms}/1"
            letter = (("code", fault.code.encode()), ("detail", fault.detail.encode()), ("source", source.encode()))
            records.add(None, None, topics.deadletters, None, letter)
        for body, headers in () if digest is None else ordered_parts(order, each, digest):
            records.add(each.destination_id.encode(), body, each.topic, each.partition, headers)
            if records.size > _BATCH_BYTES:
                yield records.taken()
    answer = msgspec.msgpack.encode(OrderOutcome(order.stream_id, order.fired_ms, tuple(answered)))
    records.add(answer_key(offset), answer, topics.orders, ANSWERS, ())
    yield records.taken()


class _OutputRows:
    """Rows of `spark_jobs.engine.rows.output.OUTPUT`, gathered for a batch."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._rows: list[tuple[bytes | None, bytes | None, str, int | None, bytes]] = []

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        topic: str,
        partition: int | None,
        headers: Iterable[tuple[str, bytes]],
    ) -> None:
        self._rows.append((key, value, topic, partition, packed_headers(headers)))
        self.size += len(value or b"")

    def taken(self) -> pa.RecordBatch:
        """Return the rows as a batch, and begin an empty one."""
        arrays = [
            pa.array(column, kind) for column, kind in zip(zip(*self._rows, strict=True), OUTPUT.types, strict=True)
        ]
        self._clear()
        return pa.record_batch(arrays, schema=OUTPUT)
