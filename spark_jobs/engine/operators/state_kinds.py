"""The class of the state of a computation, by the kinds of its nodes."""

from __future__ import annotations

from grouping.plan.computation import Computation
from spark_jobs.engine.operators.framed_states import FramedEdges, FramedSilences, FramedStays
from spark_jobs.engine.operators.frames.frame_rows import FrameRows
from spark_jobs.engine.operators.lasting.pending_rises import PendingRises
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.silence.latest_rows import LatestRows

__all__ = ["state_kind"]


def state_kind(computation: Computation) -> type[LogState] | None:
    """Return the class of the state; None for a computation without a state."""
    framed = computation.frames is not None
    if computation.before is not None:
        return FramedEdges if framed else LastRows
    if computation.silence is not None:
        return FramedSilences if framed else LatestRows
    if computation.lasting is not None:
        return FramedStays if framed else PendingRises
    return FrameRows if framed else None
