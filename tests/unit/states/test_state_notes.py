"""Reports of a worker on the states of a stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.expression import Column
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.row_before import RowBefore
from grouping.store.notes import PartitionStates
from spark_jobs.engine.operators.row_before.key_numbers import key_columns
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.runtime.states.state_notes import StateNotes

_KEYED = Stream(StreamId("s_1"), "s", (), "t", "json", {"0": 0}, "", partition_key=("b",))


def _computation(*by: str) -> Computation:
    return Computation.of(StreamId("s_1"), (), RowBefore.of(frozenset(Column(name, "STRING") for name in by)))


def _add(state: LastRows, *columns: list[str]) -> None:
    numbers = state.keys.of(key_columns([pa.array(column) for column in columns]))
    minutes = np.zeros(numbers.size, np.int32)
    state.put(numbers, np.arange(numbers.size), minutes, {}, state.clock, undoable=False)


def test_reports_are_sent_now_and_then() -> None:
    """A report has the sizes of all states; a sample of keys is sent when it has changed, or after a minute."""
    now = [100.0]
    notes = StateNotes(lambda: now[0])
    pair, other = _computation("a", "b"), _computation("a")
    states = {pair.computation_id: LastRows(), other.computation_id: LastRows()}
    _add(states[pair.computation_id], ["x", "y"], ["k", "k"])
    _add(states[other.computation_id], ["x"])
    states[other.computation_id].restore_seconds = 1.5

    def report() -> tuple[PartitionStates, bytes | None] | None:
        return notes.report(_KEYED, (pair, other), 7, states)

    made = report()
    assert made is not None
    assert made[0] == PartitionStates.unpack(made[0].pack())
    assert 100_000 == made[0].at_ms
    assert {pair.computation_id: (2, 0.0), other.computation_id: (1, 1.5)} == {
        name: (note.keys, note.restore_seconds) for name, note in made[0].states.items()
    }
    assert made[1] is not None and 8 == len(made[1])
    assert report() is None
    now[0] += 2
    again = report()
    assert again is not None and again[1] is None
    _add(states[pair.computation_id], ["x"], ["l"])
    now[0] += 2
    grown = report()
    assert grown is not None and grown[1] is not None and made[1] in grown[1] and 16 == len(grown[1])
    now[0] += 61
    assert grown[1] == (report() or grown)[1]


def test_without_the_partition_key_there_is_no_sample() -> None:
    """A key without a column of PARTITION KEY may be in several partitions."""
    notes, by = StateNotes(lambda: 0.0), _computation("a")
    state = LastRows()
    _add(state, ["x"])
    made = notes.report(_KEYED, (by,), 0, {by.computation_id: state})
    assert made is not None and made.sample is None
