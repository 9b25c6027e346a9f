"""The computations that live CQs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from gateway.registry.computations import Computations
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.ids import GroupId, StreamId
from grouping.plan.computation import Computation
from grouping.plan.frame_value import FrameValue
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan
from grouping.plan.lookup_join import LookupJoin
from grouping.plan.row_before import RowBefore
from grouping.settings.limit_settings import LimitSettings

_STREAM = StreamId("s_1")


class _Working:
    """The working copy, and the inventory, of a stream without CQs at first."""

    def __init__(self) -> None:
        self.inventory = self
        self.streams = {_STREAM: Stream(_STREAM, "s", (), "t", "json", {"0": 0}, "")}
        self.live: dict[GroupId, int] = {}
        self.looks = 0

    def groups(self, stream_id: StreamId) -> Mapping[GroupId, int]:
        """Return the live groups of a stream, and count that somebody looks."""
        self.looks += 1
        return self.live if stream_id == _STREAM else {}

    def plans(self, _: StreamId, group_ids: Iterable[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return none."""
        assert not list(group_ids)
        return {}


def test_what_no_cq_uses_is_forgotten() -> None:
    """Joins that come and go cost nothing afterwards, neither memory nor time at the next CREATE."""
    working = _Working()
    computations = Computations(working)  # type: ignore[arg-type]
    for number in range(500):
        computation = Computation(f"j_{number}", (LookupJoin("t_1", "p", ()),))
        plan = GroupPlan(GroupId(f"g_{number}"), _STREAM, "", (), computation)
        working.looks = 0
        computations.check(plan, LimitSettings(joins_per_stream=10))
        assert working.looks <= 20
        computations.add(plan)
        working.live[plan.group_id] = 1
        if number >= 5:
            del working.live[plan.group_id]
    assert computations.cqs("t_1") == 5


def test_states_are_limited() -> None:
    """A further key of edges is refused beyond the limit; a known key, and a join without a state, are not."""
    working = _Working()
    computations, limits = Computations(working), LimitSettings(computations=2)  # type: ignore[arg-type]

    def plan(*by: str) -> GroupPlan:
        before = RowBefore.of(frozenset(Column(each, "INT") for each in by)) if by else None
        computation = Computation.of(_STREAM, () if by else (LookupJoin("t_1", "p", ()),), before)
        return GroupPlan(GroupId(f"g_{by}"), _STREAM, "", (), computation)

    for known in (plan("a"), plan("b")):
        computations.check(known, limits)
        computations.add(known)
        working.live[known.group_id] = 1
    computations.check(plan("a"), limits)
    computations.check(plan(), limits)
    with pytest.raises(InputError, match="computations with a state") as refused:
        computations.check(plan("a", "b"), limits)
    assert "quota-exceeded" == refused.value.code
    working.live.pop(plan("b").group_id)
    computations.check(plan("a", "b"), limits)


def test_the_rows_of_frames_are_limited() -> None:
    """Queries of a stream share one limit of the rows that frames read for an event."""
    working = _Working()
    computations, limits = Computations(working), LimitSettings(residual_micros=400)  # type: ignore[arg-type]

    def plan(name: str, function: str, rows: int) -> GroupPlan:
        value = FrameValue(function, (Column(name, "DOUBLE"),), "DOUBLE", rows=rows)
        frames = Frames.of([Column("k", "STRING")], (), [value])
        return GroupPlan(GroupId(f"g_{name}"), _STREAM, "", (), Computation.of(_STREAM, (), frames=frames))

    long = plan("a", "max", 10_000)
    computations.check(long, limits)
    computations.add(long)
    working.live[long.group_id] = 1
    for name, function, rows in (("b", "max", 10), ("c", "count", 10_000), ("d", "lag", 10), ("a", "max", 10_000)):
        computations.check(plan(name, function, rows), limits)
    with pytest.raises(InputError, match="read too many rows") as refused:
        computations.check(plan("b", "min", 10_000), limits)
    assert "quota-exceeded" == refused.value.code
    del working.live[long.group_id]
    computations.check(plan("b", "min", 10_000), limits)


def test_the_time_of_a_stream_counts_each_join() -> None:
    """A computation of two joins takes as long as two computations of one; joins of other streams do not count."""
    computations = Computations(_Working())  # type: ignore[arg-type]
    assert not list(computations.live())
    one = LookupJoin("t_1", "p", ())
    nodes: dict[str, tuple[LookupJoin, ...]] = {"g_1": (one,), "g_2": (one, LookupJoin("t_2", "o", ()))}
    for group, joins in nodes.items():
        computations.add(GroupPlan(GroupId(group), _STREAM, "", (), Computation.of(_STREAM, joins)))
    computations.add(GroupPlan(GroupId("g_3"), StreamId("s_2"), "", (), Computation.of(StreamId("s_2"), (one,))))
    assert 3 * LookupJoin.batch_micros == computations.batch_micros(_STREAM)
