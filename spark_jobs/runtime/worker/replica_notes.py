"""What a worker tells of its replica of a table: how large it is, how far it goes, and whether a batch waits for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from grouping.store.notes import ReplicaNote
from grouping.store.table_store import TableStore
from spark_jobs.engine.operators.lookup_join.replica import Pin, Replica

__all__ = ["ReplicaNotes"]

_EVERY_MS = 2_000
_LONG = 10_000
"""Records that take so long to read that it is told that a batch waits for them."""


class ReplicaNotes:
    """Tells of one replica, every two seconds at most while it is in use."""

    def __init__(self, replica: Replica, clock: Callable[[], int], evaluator: str = "") -> None:
        """Begin with nothing told.

        Args:
            replica: The table's replica.
            clock: Epoch milliseconds.
            evaluator: The name of the evaluator whose worker this is.
        """
        self._replica = replica
        self._clock = clock
        self._evaluator = evaluator
        self._worker = f"{socket.gethostname()}/{os.getpid()}"  # not the module's: it is imported before the fork
        self._told_ms: int | None = None
        self._waiting = False

    def before(self, pin: Pin, store: TableStore) -> None:
        """Tell that a batch waits for many records.

        Raises:
            OperationalError: Redis did not answer.
        """
        waiting = self._waits_for(pin)
        if waiting >= _LONG:
            self._waiting = True
            self._tell(store, waiting)

    def during(self, pin: Pin, store: TableStore) -> None:
        """Tell it again, unless that was done lately: what was told long ago counts no more.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._waiting and not self._told_lately():
            self._tell(store, self._waits_for(pin))

    def blocked(self, pin: Pin, store: TableStore) -> None:
        """Tell that a batch waits for records that cannot be read yet.

        Raises:
            OperationalError: Redis did not answer.
        """
        self._waiting = True
        self._tell(store, self._waits_for(pin))

    def after(self, store: TableStore) -> None:
        """Tell how the replica is, unless that was told lately.

        Raises:
            OperationalError: Redis did not answer.
        """
        if self._waiting or not self._told_lately():
            self._waiting = False
            self._tell(store, 0)

    def _waits_for(self, pin: Pin) -> int:
        return sum(max(0, offset - self._replica.reached.get(each, 0)) for each, offset in pin.items())

    def _told_lately(self) -> bool:
        return self._told_ms is not None and 0 <= self._clock() - self._told_ms < _EVERY_MS

    def _tell(self, store: TableStore, waiting: int) -> None:
        replica, self._told_ms = self._replica, self._clock()
        note = ReplicaNote(
            self._told_ms, replica.count, replica.nbytes, dict(replica.reached), waiting, self._evaluator
        )
        store.tell_replica(replica.table.source_id, self._worker, note)
