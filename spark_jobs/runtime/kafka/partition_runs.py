"""Cuts the records of a task by source partition. A task can read several source partitions, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa

__all__ = ["EachPartition", "partition_runs"]


@dataclass(frozen=True, slots=True)
class EachPartition:
    """A function for all records of a task. The function calls `produce` for each source partition of the task."""

    produce: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    """The function that makes output from the records of a single source partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output for each source partition, in the order in which the task reads the partitions."""
        for records in partition_runs(batches):
            yield from self.produce(records)


def partition_runs(batches: Iterable[pa.RecordBatch]) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield the batches of each source partition, without empty batches.

    Args:
        batches: Records with a column `partition`. The records of a partition must follow each other.

    Yields:
        The batches of a partition. The caller must read all of them before it asks for the next partition.

    Example:
        >>> batches = [pa.record_batch({"partition": numbers}) for numbers in ([4, 4, 1], [1, 1], [7])]
        >>> [[batch.num_rows for batch in records] for records in partition_runs(batches)]
        [[2], [1, 2], [1]]
    """
    for _, records in groupby(_cut(batches), key=_partition):
        yield records


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut batches so that each has records of only one partition."""
    for batch in batches:
        changes = np.flatnonzero(np.diff(batch["partition"].to_numpy())) + 1
        for first, end in pairwise([0, *changes.tolist(), batch.num_rows]):
            if first < end:
                yield batch.slice(first, end - first)


def _partition(batch: pa.RecordBatch) -> int:
    return int(batch["partition"][0].as_py())
