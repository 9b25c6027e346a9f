"""Tables, their records, and a log in memory with arbitrary batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from grouping.model.catalog import StreamColumn
from grouping.model.table import Table
from grouping.settings.settings import Settings

__all__ = ["SETTINGS", "MemoryLog", "Record", "batch_of", "table"]

SETTINGS = Settings()

Record = tuple[bytes | None, bytes | None]
"""Key and value."""


def table(*columns: str, key: Sequence[str], form: str = "json", schema: str | None = None) -> Table:
    """Return a table of columns such as ``"price DECIMAL(10,2)"``."""
    declared = tuple(StreamColumn(*column.split(" ", 1)) for column in columns)
    return Table("t_1", "profiles", declared, tuple(key), "profiles", form, "", schema)


def batch_of(records: Sequence[tuple[int, int, Record]]) -> pa.RecordBatch:
    """Return records (partition, offset, record) as the log gives them."""
    return pa.record_batch(
        {
            "key": pa.array([key for _, _, (key, _) in records], pa.binary()),
            "value": pa.array([value for _, _, (_, value) in records], pa.binary()),
            "partition": pa.array([partition for partition, _, _ in records], pa.int32()),
            "offset": pa.array([offset for _, offset, _ in records], pa.int64()),
        }
    )


@dataclass
class MemoryLog:
    """A topic: by partition its records by offset, with gaps. Partitions interleave as the seed has it."""

    partitions: list[dict[int, Record]]
    rng: random.Random = field(default_factory=random.Random)
    reads: list[dict[int, int]] = field(default_factory=list)
    """Where each reading began."""
    fails_after: int | None = None
    """After this number of batches the log cannot be read."""

    def append(self, partition: int, record: Record, gap: int = 0) -> int:
        """Write a record; return its offset."""
        known = self.partitions[partition]
        offset = max(known, default=-1) + 1 + gap
        known[offset] = record
        return offset

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """Yield the records in batches of any sizes."""
        self.reads.append(dict(starts))
        left = {
            number: [
                (number, offset, record)
                for offset, record in self.partitions[number].items()
                if starts.get(number, 0) <= offset < end
            ]
            for number, end in ends.items()
        }
        given = 0
        while any(left.values()):
            if given == self.fails_after:
                raise ConnectionError
            taken = []
            for _ in range(self.rng.randint(1, 12)):
                if numbers := [number for number, records in left.items() if records]:
                    taken.append(left[self.rng.choice(numbers)].pop(0))
            given += 1
            yield batch_of(taken)
