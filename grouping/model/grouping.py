"""The grouping of a query's matches: the keys of the groups, and the aggregates kept of each group."""

from __future__ import annotations

import msgspec

from grouping.model.expression import Column, Expression
from grouping.model.sql_type import SqlType

__all__ = ["Aggregate", "GroupKey", "Grouping"]


class GroupKey(msgspec.Struct, frozen=True):
    """An expression of GROUP BY."""

    name: str
    """The column of groups that has its value."""
    expression: Expression

    @property
    def column(self) -> Column:
        """The column of groups."""
        return Column(self.name, str(self.expression.type))  # type: ignore[union-attr]  # no slot stands below


class Aggregate(msgspec.Struct, frozen=True, omit_defaults=True):
    """An aggregate over the matches of a group."""

    name: str
    """The column of groups that has its value: equal aggregates have one name."""
    function: str
    """By its one name (`grouping.functions.aggregates`)."""
    args: tuple[Expression, ...]
    """None for ``count(*)``."""
    type_text: str = msgspec.field(name="type")
    distinct: bool = False
    condition: Expression | None = None
    """The condition of FILTER: only matches for which it is TRUE are aggregated."""

    @property
    def type(self) -> SqlType:
        """The type of the value."""
        return SqlType.of(self.type_text)


class Grouping(msgspec.Struct, frozen=True):
    """How matches become groups."""

    keys: tuple[GroupKey, ...]
    """In canonical order; none where all matches are one group."""
    aggregates: tuple[Aggregate, ...]
    """Each once."""
