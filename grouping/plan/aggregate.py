"""The plan of GROUP BY: its keys, and the values of aggregate functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from grouping.model.expression import Column, Expression
from grouping.model.sql_type import SqlType
from grouping.plan.expression_text import all_of, render_part

__all__ = ["Aggregate", "AggregateKey", "AggregateValue", "render_aggregate"]


class AggregateKey(msgspec.Struct, frozen=True):
    """An expression of GROUP BY."""

    stored: str = msgspec.field(name="name")
    """The reference of the column with the key's values, as `Column.stored`."""
    expression: Expression

    @property
    def column(self) -> Column:
        """The column with the values of the key."""
        return Column(self.stored, str(self.expression.type))  # type: ignore[union-attr]  # no slot stands below


class AggregateValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of an aggregate function over the matches with equal keys."""

    stored: str = msgspec.field(name="name")
    """The reference of the column with the value, as `Column.stored`; equal values share a column."""
    function: str
    """The canonical name of the function (`grouping.functions.aggregates`)."""
    args: tuple[Expression, ...]
    """Empty for ``count(*)``."""
    type_text: str = msgspec.field(name="type")
    distinct: bool = False
    condition: Expression | None = None
    """The condition of FILTER: only matches for which this condition is TRUE are aggregated."""

    @property
    def column(self) -> Column:
        """The column with the value."""
        return Column(self.stored, self.type_text)

    @property
    def type(self) -> SqlType:
        """The type of the value."""
        return SqlType.of(self.type_text)


class Aggregate(msgspec.Struct, frozen=True):
    """The node above a group that aggregates the matches with equal keys."""

    keys: tuple[AggregateKey, ...]
    """The keys in canonical order; empty if all matches form a single aggregate."""
    aggregates: tuple[AggregateValue, ...]
    """The values, without repetitions."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions over the rows of FROM."""
        conditions = (value.condition for value in self.aggregates if value.condition is not None)
        args = (each for value in self.aggregates for each in value.args)
        return (*(key.expression for key in self.keys), *args, *conditions)


def render_aggregate(keys: Iterable[Expression], having: Sequence[Expression]) -> str:
    """Return GROUP BY and HAVING of a signature.

    Example:
        >>> render_aggregate([Column("venue", "STRING")], [])
        ' GROUP BY venue'
    """
    names = list(map(render_part, keys))
    text = f" GROUP BY {', '.join(names)}" if names else ""
    return text if (condition := all_of(having)) is None else f"{text} HAVING {render_part(condition)}"
