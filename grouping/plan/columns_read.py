"""The columns of FROM that the parts of a query read."""

from __future__ import annotations

from grouping.model.expression import Column, Expression, walk
from grouping.plan.group import GroupPlan, SelectList

__all__ = ["read_columns", "reads_column"]


def read_columns(expression: Expression) -> frozenset[str]:
    """Return the stored texts of the columns that an expression reads."""
    return frozenset(leaf.stored for leaf in walk(expression) if isinstance(leaf, Column))


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
    read = (leaf.reference for each in part.expressions for leaf in walk(each) if isinstance(leaf, Column))
    return name in read
