"""How far the evaluator is, as it noted that in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.state.working_copy import WorkingCopy
from grouping.store.notes import CommittedNote
from grouping.store.redis_store import mapped

__all__ = ["committed_notes"]


def committed_notes(working: WorkingCopy, stream_ids: Sequence[str]) -> dict[str, CommittedNote]:
    """Return what the evaluator noted of those streams, except for those of which it noted nothing.

    Raises:
        StoreUnavailable: Redis did not answer.
    """
    if not stream_ids:
        return {}
    with mapped():
        bodies = working.redis.mget([working.keys.committed(stream_id) for stream_id in stream_ids])
    found = zip(stream_ids, bodies, strict=True)
    return {stream_id: CommittedNote.unpack(body) for stream_id, body in found if body is not None}
