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
from grouping.plan.row_before import RowBefore
from grouping.plan.silence import SilentKeys
from grouping.plan.stay import Stay

__all__ = ["AggregateFilter", "CompiledQuery", "GroupPlan", "SelectItem", "SelectList"]


class AggregateFilter(msgspec.Struct, frozen=True):
    """HAVING of an aggregate query: the conjuncts decide at the tick which groups are results."""

    having: tuple[Expression, ...]
    """Conjuncts over the columns of groups, all of which must be TRUE; in canonical order, with slots behind WHERE's.
    """
    slots: int
    """How many constants WHERE has: they come first, and decide alone where matches are stored."""


class GroupPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The plan that Spark runs for a group: the signature's predicate, its constants lifted out."""

    group_id: GroupId
    stream_id: StreamId
    signature: str
    conjuncts: tuple[Expression, ...]
    """A row matches when every one is TRUE; none for a query without WHERE. In canonical order."""
    computation: Computation | None = None
    """The nodes between the stream and the group: joins, and the row before; None where the rows are the events."""
    kept: AggregateFilter | None = None
    """None of a query whose matches are results. An aggregate query without GROUP BY and HAVING has the same signature
    as a plain query, and the plan of a group is its first query's: `SelectList.aggregation` tells the two apart."""
    stay: Stay | None = None
    """The bounds of a group with UNTIL; None where a key leaves with its first row that is no match."""

    def ending(self) -> GroupPlan:
        """Return the plan of a group with UNTIL in which the bound of UNTIL stands in place of WHERE's bound."""
        assert self.stay is not None, "a group with UNTIL"
        begin, end = self.stay.begin.conjunct, self.stay.end.conjunct
        conjuncts = tuple(end if conjunct == begin else conjunct for conjunct in self.conjuncts)
        return msgspec.structs.replace(self, conjuncts=conjuncts)

    @property
    def computation_id(self) -> str:
        """The computation's id, "" where there is none."""
        return self.computation.computation_id if self.computation else ""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes between the stream and the group; none where the rows are the events."""
        return self.computation.nodes if self.computation else ()

    @property
    def before(self) -> RowBefore | None:
        """The node that gives each row the row before it; None of a group whose results are no edges."""
        return self.computation.before if self.computation else None

    @property
    def frames(self) -> Frames | None:
        """The node that adds columns of frames; None where rows have none."""
        return self.computation.frames if self.computation else None

    @property
    def silence(self) -> SilentKeys | None:
        """The node that makes rows of silent keys; None where rows are of events."""
        return self.computation.silence if self.computation else None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that decide which rows of FROM match: of the nodes and of the group."""
        nodes = [node for node in (*self.nodes, self.before, self.frames, self.silence) if node is not None]
        return (*_with_frames(self.conjuncts), *(each for node in nodes for each in node.expressions))

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The tables whose rows are joined with the stream's events; none where the rows are the events."""
        return self.computation.table_ids if self.computation else ()


class SelectItem(msgspec.Struct, frozen=True):
    """An output column."""

    name: str
    expression: Expression


class SelectList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The columns of a matching event, or of a group, that are published; `*` is written out."""

    select_id: SelectId
    items: tuple[SelectItem, ...]
    aggregation: Aggregate | None = msgspec.field(name="grouping", default=None)
    """How matches become groups, over whose columns the items are then; None where each match is a result."""

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
    """The edges that are results, or `silence`; "" where each match is a result."""
    snapshot: bool = False
    """Whether the rows of the table come before its changes."""


def _with_frames(expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return expressions, and those that values over frames are computed of."""
    return (*expressions, *(each for value in frame_values(expressions) for each in value.expressions))
