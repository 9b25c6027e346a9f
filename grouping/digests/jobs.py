"""How the gateway asks the evaluator for a Spark job that carries out orders: one key in Redis, changed by comparison.

So a request is either taken by the evaluator that it was made to, or withdrawn, never both. The key says nothing that
is not on Kafka too: where Redis loses it, the gateway asks anew.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from grouping.settings import Settings
from grouping.store.connection import connect, mapped
from grouping.store.keys import RedisKeys

__all__ = ["DigestJobs", "Job"]

# KEYS: job. ARGV: what it must be, what it becomes (nothing: it goes).
_CHANGE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
"""


class Job(msgspec.Struct, frozen=True):
    """A range of orders that are to be carried out by one Spark job."""

    job_id: str
    evaluator: str
    """The holder of the evaluator's lease that is asked, and nobody else."""
    first: int
    """Offset of the first order."""
    end: int
    """Offset after the last one."""
    answers_from: int
    """Where the answers begin."""
    state: Literal["asked", "taken", "done"] = "asked"


_encode = msgspec.json.encode


class DigestJobs:
    """The request that is under way, if one is; for both sides, one instance per thread."""

    def __init__(self, settings: Settings) -> None:
        self._redis = connect(settings)
        keys = RedisKeys.of(settings)
        self._key = keys.digest_job
        self._lease = keys.lease("evaluator")

    def leader(self) -> str | None:
        """Return who holds the evaluator's lease."""
        with mapped():
            holder = self._redis.get(self._lease)
        return holder.decode() if holder else None

    def look(self) -> tuple[Job | None, str | None]:
        """Return the request, and who holds the evaluator's lease."""
        with mapped():
            body, holder = self._redis.mget(self._key, self._lease)
        return (msgspec.json.decode(body, type=Job) if body else None), (holder.decode() if holder else None)

    def ask(self, job: Job) -> str:
        """Make a request, in the place of one before, and return the run id of the server that has it."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.set(self._key, _encode(job))
            pipeline.info("server")
            return str(pipeline.execute()[-1]["run_id"])

    def withdraw(self, job: Job) -> str | None:
        """Take back a request that nobody has taken; return the run id of the server that had it, None if it was."""
        with mapped():
            pipeline = self._redis.pipeline(transaction=True)
            pipeline.eval(_CHANGE, 1, self._key, _encode(job), b"")
            pipeline.info("server")
            gone, server = pipeline.execute()
        return str(server["run_id"]) if gone else None

    def change(self, job: Job, state: Literal["taken", "done"]) -> Job | None:
        """Move a request on, and return it as it is then; None when it is not what it was."""
        after = msgspec.structs.replace(job, state=state)
        with mapped():
            changed = self._redis.eval(_CHANGE, 1, self._key, _encode(job), _encode(after))
        return after if changed else None

    def forget(self) -> None:
        """Remove what is there."""
        with mapped():
            self._redis.delete(self._key)
