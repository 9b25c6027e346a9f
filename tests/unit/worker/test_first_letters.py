"""Dead letters among the first records of a stream: the workers' counts, and the warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.ids import StreamId
from grouping.store.first_records import FIRST_RECORDS, FirstRecords
from spark_jobs.engine.decode.decode import decode
from spark_jobs.runtime.worker.first_letters import FirstLetters
from tests.unit.matching.event_batches import SETTINGS, batch, stream

_STREAM = stream("n INT")
_BAD = b'{"n": "x"}'


class _Counts:
    """The counts of all workers, in memory."""

    def __init__(self) -> None:
        self.records = 0
        self.letters: list[str] = []

    def count(self, _stream_id: StreamId) -> int:
        return self.records

    def add(self, _stream_id: StreamId, records: int, details: Sequence[str]) -> int:
        self.records += records
        self.letters += details
        return self.records


def _task(first: FirstLetters, batches: Sequence[Sequence[bytes]], begin: int) -> int:
    for values in batches:
        first.take(*decode(batch(values, first=begin), _STREAM, SETTINGS))
        begin += len(values)
    first.report()
    return begin


@given(
    st.lists(st.lists(st.lists(st.booleans(), min_size=1, max_size=60), max_size=3), max_size=4),
    st.integers(1, 3),
)
def test_the_first_hundred_records_count(tasks: list[list[list[bool]]], workers: int) -> None:
    """Records count in the order of their offsets, whichever worker has a task and however long its batches are."""
    counts = _Counts()
    watches = [FirstLetters(_STREAM.stream_id, counts) for _ in range(workers)]  # type: ignore[arg-type]
    offset = 0
    for number, task in enumerate(tasks):
        values = [[b"{}" if good else _BAD for good in goods] for goods in task]
        offset = _task(watches[number % workers], values, offset)
    flat = [good for task in tasks for goods in task for good in goods][:FIRST_RECORDS]
    assert (len(flat), flat.count(False)) == (counts.records, len(counts.letters))
    assert set(counts.letters) <= {'Column "n" of type INT cannot hold the value: a string is no number.'}


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({}, None),
        ({b"records": b"100", b"letters": b"49", b"reason:A.": b"49"}, None),
        (
            {b"records": b"100", b"letters": b"50", b"reason:A.": b"9", b"reason:B.": b"41"},
            "50 of the first 100 records are dead letters, mostly for this reason: B.",
        ),
        (
            {b"records": b"1", b"letters": b"1", b"reason:A.": b"1"},
            "1 of the first 1 record is a dead letter, mostly for this reason: A.",
        ),
    ],
)
def test_half_of_the_first_records_are_told(fields: dict[bytes, bytes], warning: str | None) -> None:
    """The warning names the commonest reason."""
    assert warning == FirstRecords.unpack(fields).warning


def test_a_long_batch_counts_its_first_records_only() -> None:
    """Bad records behind the first hundred of a batch are no warning."""
    counts = _Counts()
    _task(FirstLetters(_STREAM.stream_id, counts), [[b"{}"] * 99 + [_BAD] * 900], 0)  # type: ignore[arg-type]
    assert Counter({"records": 100, "letters": 1}) == Counter(records=counts.records, letters=len(counts.letters))
