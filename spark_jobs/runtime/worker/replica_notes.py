"""A worker's report on its replica of a table: its size, its offsets, and whether a batch waits for it."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable

from grouping.store.notes import ReplicaNote
from grouping.store.table_store import TableStore
from spark_jobs.engine.operators.lookup_join.replica import Replica, TablePin

__all__ = ["ReplicaNotes"]

log = logging.getLogger(__name__)

_EVERY_MS = 2_000
_LONG = 10_000
"""If a batch must wait until at least this number of records is read, the replica reports that a batch is waiting."""


class ReplicaNotes:
    """Reports on one replica, at most every two seconds while it is in use."""

    def __init__(self, replica: Replica, clock: Callable[[], int], evaluator: str = "") -> None:
        """Start without a report.

        Args:
            replica: The table's replica.
            clock: Epoch milliseconds.
            evaluator: The name of the evaluator whose worker this is.
        """
        self._replica = replica
        self._clock = clock
        self._evaluator = evaluator
        self._worker = f"{socket.gethostname()}/{os.getpid()}"  # not at the import, which happens before the fork
        self._reported_ms: int | None = None
        self._waiting = False
        self._logged = False

    def before(self, pin: TablePin, store: TableStore) -> None:
        """Report that a batch is waiting, if the replica must first read many records.

        Raises:
            OperationalError: Redis did not answer.
        """
        waiting = self._waits_for(pin)
        if waiting >= _LONG:
            self._waiting = True
            self._tell(store, waiting)

    def during(self, pin: TablePin, store: TableStore) -> None:
        """Report again that a batch is waiting, unless the last report is recent. Readers ignore old reports.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._waiting and not self._is_recent():
            self._tell(store, self._waits_for(pin))

    def blocked(self, pin: TablePin, store: TableStore) -> None:
        """Report that a batch waits for records that cannot be read yet.

        Raises:
            OperationalError: Redis did not answer.
        """
        self._waiting = True
        self._tell(store, self._waits_for(pin))

    def after(self, store: TableStore) -> None:
        """Report the state of the replica, unless the last report is recent.

        If a key has had rows in two partitions, log a warning once.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._replica.split_keys and not self._logged:
            self._logged = True
            table = self._replica.table
            log.warning(
                "a key of a table is in several partitions; producers may have different partitioners",
                extra={"table": table.name, "topic": table.topic},
            )
        if self._waiting or not self._is_recent():
            self._waiting = False
            self._tell(store, 0)

    def _waits_for(self, pin: TablePin) -> int:
        return sum(max(0, offset - self._replica.reached.get(each, 0)) for each, offset in pin.items())

    def _is_recent(self) -> bool:
        return self._reported_ms is not None and 0 <= self._clock() - self._reported_ms < _EVERY_MS

    def _tell(self, store: TableStore, waiting: int) -> None:
        replica, self._reported_ms = self._replica, self._clock()
        note = ReplicaNote(
            self._reported_ms,
            replica.count,
            replica.nbytes,
            dict(replica.reached),
            waiting,
            self._evaluator,
            replica.split_keys,
        )
        store.tell_replica(replica.table.source_id, self._worker, note)
