"""A query on its way through the compiler's stages: each of them fills in more."""

from __future__ import annotations

from typing import NamedTuple

from grouping.binding.bound import Bound, Constant
from grouping.binding.budget import Budget
from grouping.compiler.plan import BoundAggregation, BoundItem
from grouping.model.catalog import Catalog, Stream
from grouping.model.expression import Expression
from grouping.model.group import ConstantRow
from grouping.model.ids import StreamId
from grouping.plan.computation import Computation
from grouping.plan.group import SelectItem

__all__ = ["Draft"]

_NOT_PLANNED = Stream(StreamId(""), "", (), "", "", {}, "")


class Draft(NamedTuple):
    """A SELECT, and the results of the stages so far."""

    text: str
    catalog: Catalog
    budget: Budget
    stream: Stream = _NOT_PLANNED
    """From here on by `plan`."""
    where: Bound | None = None
    items: tuple[BoundItem, ...] = ()
    """The SELECT list; `normalize` brings it into the canonical form too."""
    computation: Computation | None = None
    """The joins of tables with the stream; None for a stream alone."""
    reads: frozenset[str] = frozenset()
    """The views that the query names, and the views that these read."""
    named: frozenset[str] = frozenset()
    """The folded names of the sources that the query's own text names: its sender must be able to read them."""
    aggregation: BoundAggregation | None = None
    """The groups of the rows; None where each matching row is a result."""
    conjuncts: tuple[Bound, ...] = ()
    """By `normalize`, constants in place; put in order by `order`."""
    having: tuple[Bound, ...] = ()
    """The conjuncts of HAVING, in the form of `conjuncts`."""
    ties: bool = False
    """By `order`: whether constants decided the order of the conjuncts."""
    expressions: tuple[Expression, ...] = ()
    """From here on by `lift`: the conjuncts over slots."""
    keys: tuple[Expression, ...] = ()
    """The keys of GROUP BY; their slots follow the slots of WHERE."""
    kept: tuple[Expression, ...] = ()
    """The conjuncts of HAVING; their slots come last."""
    row: ConstantRow = ConstantRow((), ())
    constants: tuple[Constant, ...] = ()
    """The constants that the row was made from, by slot."""
    select: tuple[SelectItem, ...] = ()
    """The SELECT list, whose constants stay in place."""
    signature: str = ""
    """By `render`."""
