"""The columns that the parts of a query read in the rows of its FROM."""

from __future__ import annotations

from collections.abc import Iterator

from grouping.model.expression import Column, Expression, walk
from grouping.plan.group import GroupPlan, SelectList

__all__ = ["reads_column"]


def reads_column(part: GroupPlan | SelectList, name: str) -> bool:
    """Tell whether a group's predicate and joins, or a SELECT list, read a column.

    Args:
        part: The plan or the SELECT list.
        name: The column, spelt as declared.

    Example:
        >>> from grouping.plan.group import SelectId, SelectItem
        >>> select = SelectList(SelectId("s_1"), (SelectItem("h", Column("_headers", "MAP<STRING, BINARY>")),))
        >>> reads_column(select, "_headers"), reads_column(select, "_value")
        (True, False)
    """
    expressions = _of_plan(part) if isinstance(part, GroupPlan) else _of_select(part)
    return any(isinstance(leaf, Column) and leaf.name == name for each in expressions for leaf in walk(each))


def _of_plan(plan: GroupPlan) -> Iterator[Expression]:
    yield from plan.conjuncts
    for node in plan.nodes:
        yield from node.expressions


def _of_select(select: SelectList) -> Iterator[Expression]:
    if select.aggregation is None:
        yield from (item.expression for item in select.items)
        return
    yield from (key.expression for key in select.aggregation.keys)
    for value in select.aggregation.aggregates:
        yield from value.args
        if value.condition is not None:
            yield value.condition
