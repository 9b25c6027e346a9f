"""A task of the lane takes the source partitions of its records one after the other."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.runtime.worker.lane_task import by_source_partition

_SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])


@given(
    st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), st.integers(1, 6), max_size=6),
    st.integers(1, 7),
)
def test_each_source_partition_is_whole(counts: dict[tuple[str, int], int], size: int) -> None:
    """Wherever Spark has cut the records into batches, each partition comes once, with all its records in order."""
    rows = [(*place, offset) for place, count in counts.items() for offset in range(count)]
    batches = [
        pa.record_batch([list(column) for column in zip(*rows[at : at + size], strict=True)], schema=_SCHEMA)
        for at in range(0, len(rows), size)
    ]
    found = [
        (topic, pa.Table.from_batches(records).to_pylist())
        for topic, records in by_source_partition([pa.record_batch([[], [], []], schema=_SCHEMA), *batches])
    ]
    expected = [
        (topic, [{"partition": partition, "offset": offset} for offset in range(count)])
        for (topic, partition), count in counts.items()
    ]
    assert expected == found
