"""The aggregates of a query's matches: the keys of GROUP BY, and the values that aggregate functions make."""

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
    """The column of aggregates that has its value, as `Column.stored`."""
    expression: Expression

    @property
    def column(self) -> Column:
        """The column of aggregates."""
        return Column(self.stored, str(self.expression.type))  # type: ignore[union-attr]  # no slot stands below


class AggregateValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that an aggregate function makes of the matches with equal keys."""

    stored: str = msgspec.field(name="name")
    """The column of aggregates that has its value, as `Column.stored`: equal values have one column."""
    function: str
    """By its one name (`grouping.functions.aggregates`)."""
    args: tuple[Expression, ...]
    """None for ``count(*)``."""
    type_text: str = msgspec.field(name="type")
    distinct: bool = False
    condition: Expression | None = None
    """The condition of FILTER: only matches for which it is TRUE are aggregated."""

    @property
    def column(self) -> Column:
        """The column of aggregates."""
        return Column(self.stored, self.type_text)

    @property
    def type(self) -> SqlType:
        """The type of the value."""
        return SqlType.of(self.type_text)


class Aggregate(msgspec.Struct, frozen=True):
    """The node above a group that makes aggregates of the matches with equal keys."""

    keys: tuple[AggregateKey, ...]
    """In canonical order; none where all matches are one aggregate."""
    aggregates: tuple[AggregateValue, ...]
    """Each once."""

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
