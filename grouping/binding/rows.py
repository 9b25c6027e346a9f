"""Rows of values beside one another: ``(a, b) = (1, 2)`` and ``(a, b) IN ((1, 2), (3, 4))``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from grouping.binding.bound import Bound, Term
from grouping.binding.implicit import of_shape
from grouping.binding.operands import comparable, is_null
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN
from grouping.model.wording import counted

__all__ = ["equal_rows", "is_row"]


def is_row(node: exp.Expr) -> bool:
    """Tell whether an expression is a row of several values."""
    return isinstance(node.unnest(), exp.Tuple)


def equal_rows(row: Sequence[Bound], other: Sequence[Bound]) -> Bound:
    """Return whether two rows are equal; never NULL, for within rows Spark takes two NULLs for equal.

    Raises:
        InputError: ``type-mismatch`` for rows of different lengths, ``unsupported-query`` for types that differ.
    """
    if len(row) != len(other):
        raise mismatch("rows of different lengths are compared", f"One has {counted(len(row), 'value')}.")
    terms = []
    for left, right in zip(row, other, strict=True):
        if is_null(left) or is_null(right) or left.type != right.type:
            raise unsupported(
                f"{left.type} beside {right.type} in a row of values",
                "Values that stand at one place of rows are of one type.",
                "CAST one, or compare them one by one, with AND.",
            )
        pair = comparable((left, right))
        terms.append(Term("<=>", tuple(map(of_shape, pair)), BOOLEAN))  # a literal of another type is refused
    return Term("and", tuple(terms), BOOLEAN)
