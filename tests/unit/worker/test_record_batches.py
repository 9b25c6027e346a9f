"""Output rows as Kafka's record batches, read back by aiokafka's own reader."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

import pyarrow as pa
from aiokafka.record import MemoryRecords
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grouping.settings.settings import Codec
from spark_jobs.engine.rows.headers import packed_headers
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.record_batches import record_batches

Row = tuple[bytes | None, bytes | None, str, int, tuple[tuple[str, bytes], ...]]

_BYTES = st.binary(max_size=200)
_ROWS = st.lists(
    st.tuples(
        st.none() | _BYTES,
        st.none() | _BYTES | st.just(b"v" * 9_000),
        st.sampled_from(["cq.results", "cq.results.d_1", "größe"]),
        st.integers(0, 3),
        st.lists(st.tuples(st.text(max_size=70), _BYTES), max_size=3).map(tuple),
    ),
    max_size=40,
)


def _output(rows: list[Row]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * 5
    columns[4] = [packed_headers(headers) for headers in columns[4]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, OUTPUT.types, strict=True)]
    return pa.record_batch(arrays, schema=OUTPUT)


def _read(rows: pa.RecordBatch, codec: Codec = "lz4") -> dict[tuple[str, int], list[list[tuple[object, ...]]]]:
    """Return the batches of each partition, with key, value and headers of their records."""
    found = defaultdict(list)
    for laid in record_batches(rows, codec):
        memory = MemoryRecords(laid.encode(7, 1, 5, 1_700_000_000_123))
        batch = memory.next_batch()
        assert batch.validate_crc() and not memory.has_next()
        assert {"none": 0, "gzip": 1, "lz4": 3}[codec] == batch.compression_type
        assert (7, 1, 5, 1_700_000_000_123) == (
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.max_timestamp,
        )
        records = list(batch)
        assert list(range(laid.count)) == [record.offset for record in records]
        found[laid.topic, laid.partition].append(
            [(record.key, record.value, tuple(record.headers)) for record in records]
        )
    return found


@settings(max_examples=200, deadline=None)
@given(_ROWS, st.sampled_from(["lz4", "gzip", "none"]))
@example([(None, None, "t", 0, ()), (b"", b"", "t", 0, (("", b""),))], "lz4")
def test_a_partition_gets_its_records_in_their_order(rows: list[Row], codec: Codec) -> None:
    """Whatever keys, values and headers hold, the read records equal the written ones."""
    expected = defaultdict(list)
    for key, value, topic, partition, headers in rows:
        expected[topic, partition].append((key, value, headers))
    read = _read(_output(rows), codec)
    assert dict(expected) == {place: list(chain.from_iterable(batches)) for place, batches in read.items()}


def test_a_slice_is_read_as_what_it_shows() -> None:
    """Rows before and behind a slice are none of its batches' concern."""
    rows: list[Row] = [(b"k", str(number).encode(), "t", number % 2, ()) for number in range(10)]
    assert {("t", 1): [[(b"k", b"3", ())]], ("t", 0): [[(b"k", b"4", ())]]} == _read(_output(rows).slice(3, 2))


def test_batches_are_small_enough_for_a_broker() -> None:
    """Many records are cut into several batches; one that is large has a batch of its own."""
    sizes = [1_000] * 2_000 + [1_000_000] + [1_000] * 3
    rows: list[Row] = [(b"k", bytes([number % 256]) * size, "t", 0, ()) for number, size in enumerate(sizes)]
    [batches] = _read(_output(rows)).values()
    assert sum(map(len, batches)) == len(rows)
    assert all(len(batch) == 1 or sum(len(value) for _, value, _ in batch) < 600_000 for batch in batches)
    assert 5 <= len(batches) <= 7
