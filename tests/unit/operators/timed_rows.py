"""Rows with times of their own, as the events of a source partition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.evaluation.records import PlacedRecord, source_batch
from grouping.model.catalog import Stream
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.rows.events import Events
from tests.unit.matching.event_batches import SETTINGS

__all__ = ["timed_events"]


def timed_events(stream: Stream, rows: Sequence[dict[str, Any]], first: int) -> Events:
    """Return rows as the events of partition 3, from an offset on; `at` is the time in seconds."""
    records = [
        PlacedRecord(json.dumps(row).encode(), b"k", datetime.fromtimestamp(row["at"], UTC), 3, first + place, ())
        for place, row in enumerate(rows)
    ]
    events, letters = decode(source_batch(records), stream, SETTINGS)
    assert letters is None
    return events
