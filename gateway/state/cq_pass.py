"""A pass over all CQs in Redis, a few thousand at a time, after the compiler has changed.

Redis has the mark of the last finished pass: the revision of the compiler.
"""

from __future__ import annotations

from collections import deque

from gateway.model.stored_form import StoredCq, decode_cq
from gateway.model.unit import CqKey
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import CqName, Subscriber
from grouping.store.connection import mapped

__all__ = ["CqPass"]

_AT_ONCE = 2_000
"""Approximate number of CQs in a step."""


class CqPass:
    """Reads the CQs of all subscribers, between units of work, once for each revision of the compiler."""

    def __init__(self, working: WorkingCopy, revision: int) -> None:
        """Prepare a pass.

        Args:
            working: The working copy.
            revision: The compiler's revision; the pass is due unless Redis has the mark of this revision.
        """
        self._connection = working.connection
        self._revision = revision
        self._left: deque[tuple[Subscriber, int, int]] = deque()
        """Subscribers to be read, with the cursor of the scan in Redis and the number of their CQs."""
        self.is_due = False
        """Whether CQs are still to be read, or the mark of the pass is still to be written."""

    def reload(self) -> None:
        """Begin the pass from the start, unless Redis has its mark.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        redis, keys = self._connection.redis, self._connection.keys
        with mapped():
            mark, counts = redis.get(keys.compiled), redis.hgetall(keys.subscribers)
        self.is_due = int(mark or 0) < self._revision
        counted = ((name.decode("utf-8", "surrogatepass"), int(count)) for name, count in counts.items())
        self._left = deque((Subscriber(name), 0, count) for name, count in counted if self.is_due)

    def next(self) -> list[tuple[CqKey, StoredCq]]:
        """Return the next CQs; the list is empty at the end. A CQ may be returned more than once.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        redis, keys = self._connection.redis, self._connection.keys
        found: list[tuple[CqKey, StoredCq]] = []
        while self._left and len(found) < _AT_ONCE:
            some, wanted = [], len(found)
            while self._left and wanted < _AT_ONCE:
                some.append(self._left.popleft())
                wanted += some[-1][2] + 1
            with mapped():
                pipeline = redis.pipeline(transaction=False)
                for name, cursor, _ in some:
                    pipeline.hscan(keys.cqs(name), cursor, count=_AT_ONCE)
                answers = pipeline.execute()
            for (name, _, count), (cursor, bodies) in zip(some, answers, strict=True):
                for field, body in bodies.items():
                    key = CqKey(name, CqName(field.decode("utf-8", "surrogatepass")))
                    found.append((key, decode_cq(body)))
                if cursor:
                    self._left.appendleft((name, int(cursor), count))
        return found

    def finish(self) -> None:
        """Mark the pass as finished.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        with self._connection.writing() as pipeline:
            pipeline.set(self._connection.keys.compiled, self._revision)
        self.is_due = False
