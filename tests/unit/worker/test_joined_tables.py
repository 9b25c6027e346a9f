"""The tables that a worker keeps for the streams that join them, over a log in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from grouping.model.computation import Computation, Join, JoinKey
from grouping.model.expression import Column
from grouping.model.table import Table
from grouping.store.table_store import TablePins
from spark_jobs.worker.joined_tables import JoinedTables
from tests.unit.replica.table_records import SETTINGS, MemoryLog, table

_TABLE = table("symbol STRING", "n INT", key=["symbol"])
_JOIN = Computation("j_1", (Join("t_1", "t_1", (JoinKey(Column("symbol", "STRING"), "symbol", "STRING"),)),))  # type: ignore[arg-type]


class _Log(MemoryLog):
    """One topic, which tells where it ends."""

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        ends = {number: max(records, default=-1) + 1 for number, records in enumerate(self.partitions)}
        return dict.fromkeys(topics, ends)

    def put(self, count: int, n: int) -> None:
        for number in range(count):
            self.append(0, (None, json.dumps({"symbol": str(number), "n": n}).encode()))


class _Store:
    """Tables and pins of `grouping.store.table_store.TableStore`, in memory."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, int], TablePins] = {}

    def tables(self, ids: Sequence[str]) -> dict[str, Table]:
        return dict.fromkeys(ids, _TABLE)

    def pin_tables(self, stream_id: str, batch: int, ends: Callable[[], TablePins]) -> TablePins:
        return self._pins.setdefault((stream_id, batch), ends())


def _joined(log: _Log, now: list[float]) -> tuple[JoinedTables, Callable[[str, int], int]]:
    """Return the tables, and how many rows a stream's batch sees."""
    tables, store = JoinedTables(SETTINGS, lambda _: log, lambda: now[0]), _Store()  # type: ignore[arg-type, return-value]
    return tables, lambda stream_id, batch: tables.views(stream_id, batch, [_JOIN], store)["t_1"].count  # type: ignore[arg-type]


def test_a_table_that_no_stream_joins_any_more_goes() -> None:
    """After the time that is asked for, and not while any stream joins it; joined again, it is read again."""
    log, now = _Log([{}]), [0.0]
    tables, count = _joined(log, now)
    log.put(3, 1)
    assert (3, 3) == (count("s_1", 0), count("s_2", 0))
    now[0] = 6
    assert count("s_2", 1) == 3
    now[0] = 11
    tables.forget_idle(10)
    assert tables.nbytes and len(log.reads) == 1
    now[0] = 17
    tables.forget_idle(10)
    assert not tables.nbytes
    assert (3, 2) == (count("s_1", 1), len(log.reads))


def test_rows_that_no_batch_under_way_sees_go() -> None:
    """A stream's next batch tells that those before it are committed; another one's are waited for."""
    log, now = _Log([{}]), [0.0]
    tables, count = _joined(log, now)
    log.put(300, 0)
    assert (300, 300) == (count("slow", 0), count("s_1", 0))
    for batch in range(1, 9):
        log.put(300, batch)
        assert count("s_1", batch) == 300
    held = tables.nbytes
    assert count("slow", 1) == 300
    for batch in range(9, 12):
        log.put(300, batch)
        assert (300, 300) == (count("s_1", batch), count("slow", batch))
    assert tables.nbytes < held / 4
    assert log.reads.count({}) == 1, "one replica is loaded, from the topic's beginning"
