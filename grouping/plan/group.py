"""Groups as plans: the selection over a stream's rows, the SELECT list, and the compiled query of both."""

from __future__ import annotations

import msgspec

from grouping.model.expression import Expression
from grouping.model.group import ConstantRow
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.model.query import Edge
from grouping.plan.aggregate import Aggregate
from grouping.plan.computation import Computation, Node
from grouping.plan.frame_value import frame_values
from grouping.plan.frames import Frames
from grouping.plan.lasting import LastingMatches
from grouping.plan.passing import PASSING
from grouping.plan.row_before import RowBefore
from grouping.plan.silence import SilentKeys
from grouping.plan.stay import Stay
from grouping.plan.switch import SWITCH_STAY

__all__ = ["OF_COMPUTATIONS", "AggregateFilter", "CompiledQuery", "GroupPlan", "SelectItem", "SelectList"]


class AggregateFilter(msgspec.Struct, frozen=True):
    """HAVING of an aggregate query: at a tick, its conjuncts decide which aggregates are results."""

    having: tuple[Expression, ...]
    """Conjuncts over the columns of aggregates, in canonical order; their slots follow those of WHERE and GROUP BY."""
    slots: int
    """The number of constants of WHERE. These constants come first in a row, and only they decide where matches are
    stored.
    """


OF_COMPUTATIONS = (SWITCH_STAY.begin.conjunct, PASSING)
"""The conjuncts over columns that a computation makes of conditions of WHERE."""


class GroupPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The plan that Spark runs for a group: the signature's predicate over slots."""

    group_id: GroupId
    stream_id: StreamId
    signature: str
    conjuncts: tuple[Expression, ...]
    """The conjuncts of WHERE and QUALIFY that the group decides, in canonical order; a row matches if all are TRUE."""
    computation: Computation | None = None
    """The nodes between the stream and the group; None if the rows are the stream's events."""
    kept: AggregateFilter | None = None
    """HAVING, for aggregate queries; None for other queries.

    An aggregate query without GROUP BY and HAVING has the same signature as a plain query. So a group may have queries
    of both kinds, and its plan is the plan of its first query. Only `SelectList.aggregation` tells the kinds apart.
    """
    stay: Stay | None = None
    """The bounds of a group with UNTIL; None without UNTIL."""

    def ending(self) -> GroupPlan:
        """Return the plan of a group with UNTIL, with the bound of UNTIL in place of the bound of WHERE."""
        assert self.stay is not None, "a group with UNTIL"
        begin, end = self.stay.begin.conjunct, self.stay.end.conjunct
        conjuncts = tuple(end if conjunct == begin else conjunct for conjunct in self.conjuncts)
        return msgspec.structs.replace(self, conjuncts=conjuncts)

    @property
    def where(self) -> tuple[Expression, ...]:
        """The conditions of the query's WHERE, including the conditions that the computation of edges decides.

        With edges over frames, these are the conditions of WHERE and QUALIFY.
        """
        if self.computation is None:
            return self.conjuncts
        enters = self.computation.switch.enters if self.computation.switch else ()
        below = tuple(each for each in enters if each != PASSING)
        if self.frames is not None and (self.before is not None or self.timed is not None):
            below = (*below, *self.frames.where)
        above = (each for each in self.conjuncts if each not in OF_COMPUTATIONS)
        return (*above, *below, *self.of_from)

    @property
    def of_from(self) -> tuple[Expression, ...]:
        """The conditions of FROM with which `where` ends; empty without edges."""
        return self.computation.of_from if self.computation else ()

    @property
    def computation_id(self) -> str:
        """The computation's id; "" without a computation."""
        return self.computation.computation_id if self.computation else ""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The joining nodes between the stream and the group; empty if there are none."""
        return self.computation.nodes if self.computation else ()

    @property
    def before(self) -> RowBefore | None:
        """The node that pairs each row with the previous row of its key; None for a group without edges."""
        return self.computation.before if self.computation else None

    @property
    def frames(self) -> Frames | None:
        """The node that adds columns of frames; None without frames."""
        return self.computation.frames if self.computation else None

    @property
    def silence(self) -> SilentKeys | None:
        """The node of EMIT ON SILENCE; None for other queries."""
        return self.computation.silence if self.computation else None

    @property
    def lasting(self) -> LastingMatches | None:
        """The node of EMIT with FOR; None for other queries."""
        return self.computation.lasting if self.computation else None

    @property
    def timed(self) -> SilentKeys | LastingMatches | None:
        """The node whose rows wait for the watermark; None without such a node."""
        return self.computation.timed if self.computation else None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of the nodes and of the group, which decide which rows match."""
        nodes = [node for node in (*self.nodes, self.before, self.frames, self.timed) if node is not None]
        return _with_frames((*self.where, *(each for node in nodes for each in node.expressions)))

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The tables that are joined with the stream; empty without joins."""
        return self.computation.table_ids if self.computation else ()


class SelectItem(msgspec.Struct, frozen=True):
    """An output column."""

    name: str
    expression: Expression


class SelectList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The published columns of a match or of an aggregate; `*` is written out."""

    select_id: SelectId
    items: tuple[SelectItem, ...]
    aggregation: Aggregate | None = msgspec.field(name="grouping", default=None)
    """The aggregates of an aggregate query, whose columns the items read; None if each match is a result."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows of FROM."""
        if self.aggregation is not None:
            return self.aggregation.expressions
        return _with_frames(tuple(item.expression for item in self.items))


class CompiledQuery(msgspec.Struct, frozen=True):
    """A SELECT after compiling: its group, its row and its SELECT list."""

    plan: GroupPlan
    row: ConstantRow
    select: SelectList
    views: tuple[str, ...] = ()
    """The views read by the query, directly or through other views."""
    edge: Edge = ""
    """The edges that are results, or `changes` or `silence`; "" if each match is a result."""
    snapshot: bool = False
    """Whether results begin with a snapshot of the table (WITH SNAPSHOT)."""


def _with_frames(expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return expressions, with the expressions of the frame values that they read."""
    return (*expressions, *(each for value in frame_values(expressions) for each in value.expressions))
