"""The computations that live CQs use, by id. The first use reads the computations from the plans of all groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError
from grouping.model.ids import GroupId, StreamId
from grouping.model.wording import are, counted
from grouping.plan.computation import Computation
from grouping.plan.frames import Frames
from grouping.plan.group import GroupPlan
from grouping.plan.table_changes import changes_id
from grouping.settings.limit_settings import LimitSettings

__all__ = ["Computations", "LiveComputation"]


@dataclass(frozen=True, slots=True)
class LiveComputation:
    """A computation and the groups over its rows."""

    computation: Computation
    stream_id: StreamId
    groups: dict[GroupId, int]
    """The live groups, each with its number of CQs."""

    @property
    def cqs(self) -> int:
        """The number of CQs that use the computation."""
        return sum(self.groups.values())


@dataclass(slots=True)
class _SharedComputation:
    computation: Computation
    stream_id: StreamId
    groups: set[GroupId] = field(default_factory=set)
    """The groups over the computation. Ended groups may be among them until `find` removes them."""


class Computations:
    """The computations by id."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self._known: dict[str, _SharedComputation] | None = None
        """Id → computation; None before the first use."""

    def add(self, plan: GroupPlan) -> None:
        """Note the plan of a new group."""
        if self._known is not None and (computation := plan.computation) is not None:
            known = self._known.setdefault(computation.computation_id, _SharedComputation(computation, plan.stream_id))
            known.groups.add(plan.group_id)

    def live(self) -> Iterator[LiveComputation]:
        """Yield the computations that CQs use, in the order of their ids."""
        return (found for each in sorted(self._read()) if (found := self.find(each)) is not None)

    def find(self, computation_id: str) -> LiveComputation | None:
        """Return a computation with its groups; if no CQ uses the computation, forget it and return None."""
        known = self._read().get(computation_id)
        if known is None:
            return None
        counts = self._working.inventory.groups(known.stream_id)
        groups = {each: counts[each] for each in known.groups if each in counts}
        known.groups.intersection_update(groups)
        if not groups:
            del self._read()[computation_id]
            return None
        return LiveComputation(known.computation, known.stream_id, groups)

    def check(self, plan: GroupPlan, limits: LimitSettings) -> None:
        """Check the limits on computations. A computation costs a look-up per event, and memory for its state.

        Args:
            plan: The plan of a new query.
            limits: The limits on computations of a stream, and on computations with a state.

        Raises:
            InputError: ``quota-exceeded``.
        """
        computation = plan.computation
        if computation is None or self.find(computation.computation_id) is not None:
            return
        known, most = self._read(), limits.joins_per_stream
        count = self._live([each for each in known if known[each].stream_id == plan.stream_id], most)
        if count >= most:
            raise InputError(
                "the queries of the stream have too many different joins, keys of edges and frames",
                code="quota-exceeded",
                detail=f"There {are(count)} {counted(count, 'computation')}, and the limit is {most}.",
                hint="Queries share no computation if they differ in constants of their joins or, with frames, in "
                "constants of WHERE outside of equalities. Write constants of joins in WHERE, and constants of WHERE "
                "in QUALIFY.",
            )
        if not computation.has_state:
            return
        if computation.frames is not None:
            self._check_frames(computation.frames, plan.stream_id, limits.residual_micros)
        count = self._live([each for each in known if known[each].computation.has_state], limits.computations)
        if count >= limits.computations:
            raise InputError(
                "the queries of all streams have too many computations with a state",
                code="quota-exceeded",
                detail=f"There {are(count)} {counted(count, 'computation')}, and the limit is {limits.computations}.",
                hint="CQs over a stream share a computation when they have the same BY, or the same frames.",
            )

    def _check_frames(self, frames: Frames, stream_id: StreamId, limit: float) -> None:
        """Check the time per event that the stream's computations and the new computation take to read frames."""
        own = frames.event_micros
        if not own:
            return
        live = (self.find(name) for name, each in [*self._read().items()] if each.stream_id == stream_id)
        others = (each.computation.frames for each in live if each is not None)
        total = own + sum(each.event_micros for each in others if each is not None)
        if total > limit:
            raise InputError(
                "the frames of the stream's queries read too many rows",
                code="quota-exceeded",
                detail=f"With this query, reading the frames would take {total:,.0f} µs per event. The limit is "
                f"{limit:,.0f} µs.",
                hint="Shorten the frames. Counts, and sums and averages of whole numbers and DECIMALs, read no rows.",
            )

    def _live(self, names: Sequence[str], limit: int) -> int:
        """Return how many of these computations are in use.

        If there are fewer than the limit, ended computations are counted too, which saves their look-up.
        """
        return len(names) if len(names) < limit else sum(self.find(each) is not None for each in names)

    def batch_micros(self, stream_id: StreamId) -> float:
        """Return the expected time of a stream's computations in each micro-batch, in microseconds.

        Computations that ended recently may still be included.
        """
        known = (self._known or {}).values()
        return sum(each.computation.batch_micros for each in known if each.stream_id == stream_id)

    def cqs(self, table_id: str) -> int:
        """Return how many CQs join a table, or read its changes."""
        changes = sum(self._working.inventory.groups(changes_id(table_id)).values())
        return changes + sum(each.cqs for each in self.live() if table_id in each.computation.table_ids)

    def _read(self) -> dict[str, _SharedComputation]:
        if self._known is None:
            self._known = {}
            inventory = self._working.inventory
            for stream_id in inventory.streams:
                for plan in self._working.plans(stream_id, inventory.groups(stream_id)).values():
                    self.add(plan)
        return self._known
