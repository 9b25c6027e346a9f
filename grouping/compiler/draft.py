"""The result of the compiler so far: each stage fills in further fields."""

from __future__ import annotations

from typing import NamedTuple

from grouping.binding.bound import Bound, Constant
from grouping.binding.budget import Budget
from grouping.compiler.plan import BoundAggregation, BoundItem
from grouping.model.catalog import Catalog, Stream
from grouping.model.expression import Expression
from grouping.model.group import ConstantRow
from grouping.model.ids import StreamId
from grouping.model.query import Edge
from grouping.plan.computation import Computation
from grouping.plan.group import SelectItem
from grouping.plan.stay import Stay

__all__ = ["Draft"]

_NOT_PLANNED = Stream(StreamId(""), "", (), "", "", {}, "")


class Draft(NamedTuple):
    """A SELECT, and the results of the stages so far."""

    text: str
    catalog: Catalog
    budget: Budget
    stream: Stream = _NOT_PLANNED
    """The stage `plan` sets this field and the fields after it, up to `aggregation`."""
    where: Bound | None = None
    items: tuple[BoundItem, ...] = ()
    """The SELECT list; `normalize` also normalizes its expressions."""
    computation: Computation | None = None
    """The nodes between the stream and the group; None for a query that reads only a stream."""
    edge: Edge = ""
    """Which edges are results; "" if each match is a result."""
    snapshot: bool = False
    """Whether results begin with a snapshot of the table (WITH SNAPSHOT)."""
    reads: frozenset[str] = frozenset()
    """The views that the query reads, directly or through other views."""
    named: frozenset[str] = frozenset()
    """The folded names of the sources in the query's own text; the sender must have the right to read these sources."""
    until: tuple[Bound, ...] = ()
    """The condition of UNTIL, which `normalize` divides into conjuncts. Empty without UNTIL, and if the computation
    decides UNTIL.
    """
    aggregation: BoundAggregation | None = None
    """Keys and aggregates; None if each matching row is a result."""
    conjuncts: tuple[Bound, ...] = ()
    """The conjuncts of WHERE and QUALIFY with their constants, set by `normalize` and sorted by `order`."""
    having: tuple[Bound, ...] = ()
    """The conjuncts of HAVING, in the form of `conjuncts`."""
    ties: bool = False
    """Set by `order`: whether constants decided the order of the conjuncts."""
    expressions: tuple[Expression, ...] = ()
    """The conjuncts over slots; this and the following fields up to `select` are set by `lift`."""
    keys: tuple[Expression, ...] = ()
    """The keys of GROUP BY; their slots follow the slots of WHERE."""
    kept: tuple[Expression, ...] = ()
    """The conjuncts of HAVING; their slots come last."""
    stay: Stay | None = None
    """For UNTIL, the comparison with which a key enters and the comparison with which it leaves; None without UNTIL.
    The slot of UNTIL follows the slots of WHERE. If the computation decides UNTIL, the value is `SWITCH_STAY`, without
    slots.
    """
    row: ConstantRow = ConstantRow((), ())
    constants: tuple[Constant, ...] = ()
    """The constants that the row was made from, by slot."""
    select: tuple[SelectItem, ...] = ()
    """The SELECT list, whose constants are not lifted."""
    signature: str = ""
    """The signature, set by `render`."""
