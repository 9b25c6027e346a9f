"""Silences and stays over frames by several workers: as by one worker that never dies, without another result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Slot, Value
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.frame_value import FrameValue
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.plan.lasting import Height, LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.silence import SilentKeys
from grouping.store.constant_table import FRAMES
from tests.unit.matching.event_batches import header, stream
from tests.unit.matching.matching import Store, entry
from tests.unit.states.partition_workers import PARTITION, ClockDriver, PartitionTopic, PartitionWorker, befall, turns

STREAM = stream("k STRING", "n INT", "ok BOOLEAN")
K, N = Column("k", "STRING"), Column("n", "INT")
WHERE = Call("=", (Column("ok", "BOOLEAN"), Value(True, "BOOLEAN")), "BOOLEAN")
COUNT = FrameValue("count", (), "BIGINT", milliseconds=6_000).column
HIGHEST = FrameValue("max", (N,), "INT", rows=1).column
NODE_FRAMES = Frames.of([K], (WHERE,), (), shares=False)
READS = tuple(sorted((COUNT.stored, K.stored, HIGHEST.stored)))
SILENCE = SilentKeys.of([K], 8_000, (Call(">", (HIGHEST, Value(1, "INT")), "BOOLEAN"), PASSING), READS)
LASTING = LastingMatches((K,), (PASSING,), milliseconds=8_000, height=Height(HIGHEST), reads=READS)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "n": st.sampled_from([0, 2, 2, 5, None]),
            "ok": st.sampled_from([True, True, True, False]),
            "late": st.sampled_from([0, 0, 0, 1, 4, -6]),
        }
    ),
    min_size=8,
    max_size=24,
)
MARKS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1, max_size=2), max_size=4)
"""By turn, the marks before its batch: how far each is ahead of the events so far, in seconds."""


class _Store(Store):
    """The plan of the group, and a SELECT list with the values of the frames."""

    def __init__(self, *, lasting: bool) -> None:
        super().__init__()
        node: dict[str, Any] = {"lasting": LASTING} if lasting else {"silence": SILENCE}
        computation = Computation.of(StreamId("s_1"), (), frames=NODE_FRAMES, **node)
        where = (Call(">", (HIGHEST, Slot(0)), "BOOLEAN"),) if lasting else ()
        self.known_plans["g_1"] = GroupPlan("g_1", "s_1", "", where, computation)  # type: ignore[arg-type]
        self.lasting = lasting

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists."""
        items = (SelectItem("k", K), SelectItem("count", COUNT), SelectItem("highest", HIGHEST))
        return {name: SelectList(name, items) for name in ids}  # type: ignore[arg-type]

    def begin(self) -> Any:
        """Add the entries of the queries, all from the first event on."""
        since = (0,) * (PARTITION + 1)
        if not self.lasting:
            return self.commit((), [entry("all", (), (), edge=FRAMES, since=since)])
        constants = ((over, (("INT",), (over,))) for over in (-1, 1, 3))
        return self.commit((), [entry(over, *each, edge="both", since=since) for over, each in constants])


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, turns=turns(10, 5, 3, "lost"), gap=st.sampled_from([1, 3]), marks=MARKS, lasting=st.booleans())
def test_workers_and_replays_change_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    turns: list[tuple[int, int, int, str]],
    gap: int,
    marks: dict[int, list[int]],
    lasting: bool,
) -> None:
    """Each batch and each mark of the clock has the results that a single steady worker finds, under the same ids."""
    rows = [{**row, "at": 100 + 2 * place - row["late"]} for place, row in enumerate(rows)]
    topic, clock = PartitionTopic(STREAM, rows, gap), [0.0]
    folder = tmp_path_factory.mktemp("states")
    workers = [PartitionWorker(topic, folder, clock) for _ in range(2)]
    steady = PartitionWorker(topic, tmp_path_factory.mktemp("steady"), [0.0])
    drivers = [ClockDriver(each.settings, STREAM) for each in (workers[0], steady)]
    store = _Store(lasting=lasting)
    version, at = store.begin(), 0
    for number, (count, turn, pieces, fate) in enumerate(turns):
        first, last = at * gap, min(at + count, len(rows))
        befall(fate, workers, turn, topic, folder, clock)
        for ahead in (*marks.get(number, ()), None):
            watermark = (max((row["at"] for row in rows[:at]), default=100) + (ahead or 0)) * 1000
            own, other = (each.at(first) if ahead is None else each.mark(first, watermark) for each in drivers)
            run = (store, version, first, last * gap if ahead is None else first, pieces)
            if fate == "stopped" and ahead is None:
                workers[turn].run(*run, complete=False, clock=own)
            if fate == "again":
                workers[turn].run(*run, complete=True, clock=own)
            if fate == "elsewhere" and ahead is None:
                workers[1 - turn].run(*run, complete=False, clock=own)
            made = workers[turn].run(*run, complete=True, clock=own)
            wanted = steady.run(*run, complete=True, clock=other)
            assert sorted(map(_result_of, made)) == sorted(map(_result_of, wanted))
        at = last


def _result_of(row: dict[str, Any]) -> tuple[bytes, str, str, bytes]:
    return row["key"], header(row, "ce_id"), header(row, "cause"), row["value"]
