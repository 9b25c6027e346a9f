"""Output rows to Kafka, never skipping one."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from grouping.settings import Settings
from spark_jobs.source import kafka_options

__all__ = ["OUTPUT_SCHEMA", "PRODUCER", "checkpoint_location", "write_stream"]

OUTPUT_SCHEMA = (
    "key binary, value binary, topic string, partition int, headers array<struct<key: string, value: binary>>"
)
"""`spark_jobs.output.OUTPUT` as Spark writes it."""

PRODUCER = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    # Spark writes what follows a record that expired; its replay would then lie below the reader's mark (design §6).
    "kafka.delivery.timeout.ms": str(2**31 - 1),
    "kafka.max.block.ms": str(2**31 - 1),
    "kafka.compression.type": "lz4",
    # A task's end flushes whatever lingers, so this costs no latency.
    "kafka.linger.ms": "20",
    "kafka.batch.size": str(256 * 1024),
    "kafka.buffer.memory": str(64 * 1024 * 1024),
}


def checkpoint_location(stream_id: str, settings: Settings) -> str:
    """Return where the query of a stream keeps its position; the stream's id, never its name."""
    base = str(settings.data)
    return f"{base if '://' in base else settings.data.absolute()}/checkpoints/{stream_id}"


def write_stream(rows: DataFrame, stream_id: str, settings: Settings) -> StreamingQuery:
    """Start the query that writes the rows (`OUTPUT_SCHEMA`) to the topics and partitions that they name."""
    return (
        rows.writeStream.format("kafka")
        .queryName(stream_id)
        .options(**(kafka_options(settings) | PRODUCER))
        .option("checkpointLocation", checkpoint_location(stream_id, settings))
        .start()
    )
