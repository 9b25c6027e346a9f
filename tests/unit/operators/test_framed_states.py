"""Silences and stays over frames: the same rows under any cutting, from undone steps, stored states and a fold."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Value
from grouping.plan.frame_value import FrameValue
from grouping.plan.frames import Frames
from grouping.plan.lasting import Height, LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.silence import SilentKeys
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.framed_states import FramedSilences, FramedState, FramedStays, fold_framed
from spark_jobs.engine.operators.frames.operator import FrameOperator
from spark_jobs.engine.operators.lasting.operator import LastingOperator
from spark_jobs.engine.operators.silence.operator import SilenceOperator
from spark_jobs.engine.operators.timed_operator import TimedOperator
from spark_jobs.engine.operators.timed_state import BEGINNING
from spark_jobs.engine.rows.silent_rows import SilentRows
from tests.unit.matching.event_batches import stream
from tests.unit.operators.cutting import pieces
from tests.unit.operators.timed_rows import timed_events

STREAM = stream("k STRING", "p DOUBLE", "b BOOLEAN")
K, P, B = (Column(column.name, str(column.type)) for column in STREAM.columns)
TRUE = Call("=", (B, Value(True, "BOOLEAN")), "BOOLEAN")
COUNT = FrameValue("count", (), "BIGINT", milliseconds=4_000)
HIGHEST = FrameValue("max", (P,), "DOUBLE", rows=1)
ABOVE = Call(">", (HIGHEST.column, Value(1.0, "DOUBLE")), "BOOLEAN")
FRAMES = FrameOperator(Frames.of((K,), (TRUE,)), (COUNT, HIGHEST), keeps_all=True)
READS = (COUNT.column, K, HIGHEST.column)
CLOCK = EventClock(delay_ms=1_000)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "p": st.sampled_from([0.5, 1.0, 2.0, 3.0, None]),
            "b": st.sampled_from([True, True, True, False]),
            "at": st.integers(100, 140),
        }
    ),
    max_size=30,
)


class Framed(NamedTuple):
    """The class of the state, and the operator above the frames."""

    kind: type[FramedState[Any]]
    operator: TimedOperator[Any, Any]

    def run(self, state: FramedState[Any], rows: list[dict[str, Any]], first: int) -> list[tuple[Any, ...]]:
        """Take rows into a state, and return the rows that are complete."""
        if not rows:
            return []
        _, [framed] = FRAMES.step(state.frames, timed_events(STREAM, rows, first))
        _, [made] = self.operator.step(state.above, framed)
        return shown(made)

    def fold(self, state: FramedState[Any], rows: list[dict[str, Any]]) -> None:
        """Take rows of the log into a state."""
        fold_framed(FRAMES, state, timed_events(STREAM, rows, 0), lambda each: self.operator.fold(state.above, each))
        state.position = len(rows)


SILENCES = Framed(FramedSilences, SilenceOperator(SilentKeys.of((K,), 5_000, (ABOVE, PASSING)), "j", READS, CLOCK))
STAYS = Framed(
    FramedStays,
    LastingOperator(
        LastingMatches.of((K,), 5_000, Height(HIGHEST.column), (PASSING,)), "j", (COUNT.column, K), CLOCK, exits=True
    ),
)


def shown(made: SilentRows) -> list[tuple[Any, ...]]:
    """Return rows with their positions, causes and columns."""
    columns = [made.column(each.reference).to_pylist() for each in (K, COUNT.column)]
    return list(zip(made.positions.tolist(), made.causes.tolist(), made.time_ms.tolist(), *columns, strict=True))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.lists(st.integers(0, 30), max_size=4), st.sampled_from([SILENCES, STAYS]), st.integers(0, 4))
def test_any_cutting_makes_the_same_rows(
    rows: list[dict[str, Any]], cuts: list[int], framed: Framed, folded: int
) -> None:
    """Each step is made twice, its changes are applied to a stored state, and a fold takes the place of some steps."""
    wanted = framed.run(framed.kind(), rows, 0)
    state, first, found = framed.kind(), 0, []
    for number, piece in enumerate(pieces(rows, cuts)):
        if number == folded:
            state = framed.kind()
            if first:
                framed.fold(state, rows[:first])
        earlier = state.stored()
        state.begin()
        made = framed.run(state, piece, first)
        state.undo()
        state.begin()
        assert framed.run(state, piece, first) == made
        first += len(piece)
        state.position = first
        changes, state = state.changes(), framed.kind.restored(earlier)
        assert state.put_changes(changes)
        # Changes have the keys with new rows only; rows of other keys may be complete by now.
        framed.operator.advance(state.above, BEGINNING, undoable=False)
        found += made
    assert sorted(found) == sorted(wanted)
