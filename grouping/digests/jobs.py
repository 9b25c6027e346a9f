"""Requests for Spark jobs that carry out orders.

A key in Redis has the present request; gateway and evaluator change the key by compare-and-set. The evaluator takes a
request, or the gateway withdraws it, never both. If Redis loses the key, the gateway makes the request again from the
orders on Kafka.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.keys import RedisKeys, role_title
from grouping.store.ownership import Owner

__all__ = ["DigestJobs", "Job"]

# KEYS: job. ARGV: the expected value, the new value (empty: the key is deleted).
_CHANGE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
"""


class Job(msgspec.Struct, frozen=True):
    """A request for a Spark job over a range of orders."""

    job_id: str
    evaluator: str
    """The token of the evaluator's lease; only this evaluator may take the request."""
    first: int
    """Offset of the first order."""
    end: int
    """The offset after the last order."""
    answers_from: int
    """The offset of the first answer."""
    state: Literal["asked", "taken", "done"] = "asked"
    name: str = ""
    """The evaluator's name."""
    of_rows: bool = False
    """Whether some orders are for digests of a table's rows. A single task then reads the table for all of them."""


_encode = msgspec.json.encode


class DigestJobs:
    """Access to the present request, for gateway and evaluator. Use one instance per thread."""

    def __init__(self, settings: Settings) -> None:
        self._redis = connect(settings)
        self._keys = RedisKeys.of(settings)
        self._key = self._keys.digest_job

    def leader(self, stream_id: StreamId) -> Owner | None:
        """Return the evaluator of a stream; None if no evaluator has it, or if the evaluator has lost its lease."""
        with mapped():
            owner = Owner.unpack(self._redis.get(self._keys.owner(stream_id)))
        return owner if owner is not None and self._leads(owner) else None

    def has_evaluator(self, job: Job) -> bool:
        """Tell whether the evaluator of a request still holds its lease."""
        return self._leads(Owner(job.name, job.evaluator))

    def _leads(self, owner: Owner) -> bool:
        with mapped():
            holder = self._redis.get(self._keys.lease(role_title("evaluator", owner.name)))
        return bool(holder == owner.token.encode())

    def look(self) -> Job | None:
        """Return the present request; None without one."""
        with mapped():
            body = self._redis.get(self._key)
        return msgspec.json.decode(body, type=Job) if body else None

    def ask(self, job: Job) -> str:
        """Write a request in place of any present one; return the run id of the Redis server."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.set(self._key, _encode(job))
            pipeline.info("server")
            return str(pipeline.execute()[-1]["run_id"])

    def withdraw(self, job: Job) -> str | None:
        """Withdraw a request; return the run id of the Redis server, or None if an evaluator took the request."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.eval(_CHANGE, 1, self._key, _encode(job), b"")
            pipeline.info("server")
            gone, server = pipeline.execute()
        return str(server["run_id"]) if gone else None

    def change(self, job: Job, state: Literal["taken", "done"]) -> Job | None:
        """Set the state of a request and return the new request; None if the request was changed in the meantime."""
        after = msgspec.structs.replace(job, state=state)
        with mapped():
            changed = self._redis.eval(_CHANGE, 1, self._key, _encode(job), _encode(after))
        return after if changed else None

    def forget(self) -> None:
        """Delete the request."""
        with mapped():
            self._redis.delete(self._key)
