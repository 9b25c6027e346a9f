"""Records of a source topic, in the form in which Spark's Kafka source gives them to a task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from spark_jobs.engine.rows.record_fields import HEADERS

__all__ = ["PlacedRecord", "source_batch"]


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """A record with all of Kafka's metadata."""

    value: bytes | None
    key: bytes | None
    time: datetime
    partition: int
    offset: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def source_batch(records: Iterable[PlacedRecord]) -> pa.RecordBatch:
    """Return records as a batch of Spark's Kafka source."""
    records = list(records)
    return pa.record_batch(
        {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "partition": pa.array([record.partition for record in records], pa.int32()),
            "offset": pa.array([record.offset for record in records], pa.int64()),
            "timestamp": pa.array([record.time for record in records], pa.timestamp("us", "UTC")),
            "headers": pa.array([_packed(record.headers) for record in records], HEADERS),
        }
    )


def _packed(headers: tuple[tuple[str, bytes | None], ...]) -> list[dict[str, object]]:
    return [{"key": name, "value": value} for name, value in headers]
