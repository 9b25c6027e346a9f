"""Dead letters of a table's records: every worker finds them, and one writes them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.runtime.worker.table_letters import TableLetters
from tests.unit.replica.table_records import SETTINGS, MemoryLog, table

_TABLE = table("symbol STRING", key=["symbol"])


class _Store:
    """The notes of `grouping.store.table_store.TableStore` about dead letters, in memory."""

    def __init__(self) -> None:
        self.writer = ""
        self.written: dict[int, int] = {}

    def letters_of(self, _table_id: str) -> dict[int, int]:
        return dict(self.written)

    def letters_written(self, _table_id: str, offsets: Mapping[int, int]) -> None:
        self.written.update(offsets)

    def writes_letters(self, _table_id: str, worker: str) -> bool:
        self.writer = self.writer or worker
        return self.writer == worker


def _worker(log: MemoryLog) -> TableLetters:
    """Return the letters that a worker has found in the whole topic."""
    letters = TableLetters(_TABLE.table_id)
    Replica(_TABLE, log, SETTINGS, letters.add).at({0: max(log.partitions[0]) + 1})
    return letters


def _due(letters: TableLetters, store: _Store) -> int:
    batches: list[pa.RecordBatch] = list(letters.due(store))  # type: ignore[arg-type]
    return sum(batch.num_rows for batch in batches)


def test_one_of_several_workers_writes_the_letters() -> None:
    """The first worker that asks writes them; another does only after the first is gone, and only unwritten ones."""
    log, store = MemoryLog([{}]), _Store()
    for value in (b"no json", b'{"symbol": "a"}', b"{}"):
        log.append(0, (None, value))
    first, second = _worker(log), _worker(log)
    assert (_due(first, store), _due(second, store)) == (2, 0)

    assert _due(first, store) == 0  # its task has ended: Kafka has them
    store.writer = ""
    log.append(0, (None, b"no json"))
    assert _due(_worker(log), store) == 1
    assert _due(second, store) == 0
