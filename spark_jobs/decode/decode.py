"""Records of a source topic → `Events` and dead letters.

What is a dead letter depends on the record and its stream, never on which CQs exist (docs/expressions.md): so every
column of every record is checked here, whatever is used later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream, StreamColumn
from grouping.settings.settings import Settings
from spark_jobs.batch.events import Events
from spark_jobs.batch.output import dead_letters
from spark_jobs.decode.avro_events import AvroReader
from spark_jobs.decode.json_events import JsonReader

__all__ = ["Events", "decode", "record_reader"]


def decode(batch: pa.RecordBatch, stream: Stream, settings: Settings) -> tuple[Events, pa.RecordBatch | None]:
    """Decode a batch of source records.

    Args:
        batch: Columns key, value, partition, offset and timestamp of Spark's Kafka source.
        stream: What the records should be.
        settings: For the topic of the dead letters.

    Returns:
        The good records, and one dead letter (code ``undecodable``) for each other one; None when there is none.
    """
    read, wrong = record_reader(stream.format, stream.columns, stream.avro_schema or "", stream.framing)(batch["value"])
    if not wrong:
        return Events(stream, batch, read), None
    good = np.ones(batch.num_rows, bool)
    good[list(wrong)] = False
    return Events(stream, batch.filter(pa.array(good)), read), dead_letters(
        batch, wrong, "undecodable", stream, settings
    )


Reader = Callable[[pa.Array], tuple[Callable[[StreamColumn], list[object]], dict[int, str]]]
"""Takes the values of a batch; gives what reads a column of the good ones, and by row what is wrong with the others."""


@lru_cache(maxsize=64)
def record_reader(form: str, columns: tuple[StreamColumn, ...], schema: str, framing: str) -> Reader:
    """Return what reads records of a form, made once for all that have it.

    Args:
        form: ``json`` or ``avro``.
        columns: What a record should have.
        schema: The writer's schema, for Avro.
        framing: For Avro: ``single-object``, ``confluent`` or ``raw``.
    """
    return JsonReader(columns) if form == "json" else AvroReader(columns, schema, framing)
