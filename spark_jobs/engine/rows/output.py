"""The rows that a task writes to Kafka, and the dead letters among them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.settings.settings import Settings
from spark_jobs.engine.rows.headers import packed_headers

__all__ = ["MAX_RECORD_BYTES", "OUTPUT", "dead_letter_code", "dead_letters", "no_record", "record_bytes"]

OUTPUT = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),  # if NULL, the hash of the key chooses the partition
        "headers": pa.binary(),  # `headers.packed_headers`
    }
)
"""The columns that the evaluator's tasks write."""

MAX_RECORD_BYTES = 1_000_000
"""The largest number of bytes of a record's key and value together.

Kafka's default limit is 1 MiB for a batch, of which headers and framing take a part. The evaluator checks this limit
itself, since the broker would also refuse the other records of the batch.
"""

_CODE = b"code"

_DETAIL_CHARACTERS = 1_000
"""The largest number of characters of a detail, since a detail may quote a value of a megabyte."""


def dead_letters(
    source: pa.RecordBatch, details: Mapping[int, str], code: str, stream: Stream | Table, settings: Settings
) -> pa.RecordBatch:
    """Return the dead letters of some rows of the source, as docs/results.md describes them.

    Args:
        source: Records as Spark's Kafka source gives them.
        details: By row of the source, a sentence that says what is wrong with the record.
        code: The header ``code``.
        stream: The stream or the table of the records; the header ``source`` has the name of its topic.
        settings: Names the topic of dead letters.

    Returns:
        Rows of `OUTPUT`. If a record is too large to be repeated, its dead letter has no key and no value, and only
        names the record.
    """
    if pa.types.is_dictionary(source.schema.field("value").type):
        # Several rows may be elements of one record; the record gets one dead letter.
        records = source["value"].indices.to_pylist()
        firsts = {records[row]: row for row in sorted(details, reverse=True)}
        details = {row: details[row] for row in sorted(firsts.values())}
    rows = source.select(["key", "value", "partition", "offset"]).take(pa.array(details, pa.int64()))
    keys, values, headers = [], [], []
    for record, detail in zip(rows.to_pylist(), details.values(), strict=True):
        size = len(record["key"] or b"") + len(record["value"] or b"")
        fits = size <= MAX_RECORD_BYTES
        keys.append(record["key"] if fits else None)
        values.append(record["value"] if fits else None)
        text = detail if fits else f"The record has {size} bytes, too many to be repeated here. {detail}"
        headers.append(
            packed_headers(
                (
                    ("code", code.encode()),
                    ("detail", text[:_DETAIL_CHARACTERS].encode("utf-8", "backslashreplace")),
                    ("source", f"{stream.topic}/{record['partition']}/{record['offset']}".encode()),
                )
            )
        )
    count = len(details)
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.repeat(pa.scalar(settings.topics.deadletters), count),
            pa.nulls(count, pa.int32()),
            pa.array(headers, pa.binary()),
        ],
        schema=OUTPUT.with_metadata({_CODE: code}),
    )


def no_record(partition: int, offset: int) -> pa.RecordBatch:
    """Return a row of the source with NULL as key and value, for a dead letter that stands for several events."""
    columns = {
        "key": pa.nulls(1, pa.binary()),
        "value": pa.nulls(1, pa.binary()),
        "partition": pa.array([partition], pa.int32()),
        "offset": pa.array([offset], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def dead_letter_code(rows: pa.RecordBatch) -> str | None:
    """Return the code of dead letters; None for other rows. A batch never has both."""
    code = (rows.schema.metadata or {}).get(_CODE)
    return None if code is None else code.decode()


def record_bytes(rows: pa.RecordBatch) -> int:
    """Return the bytes of the records' keys, values and headers."""
    columns = (rows.column(name) for name in ("key", "value", "headers"))
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)
