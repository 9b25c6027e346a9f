"""The node that joins each row with the rows of a table by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from grouping.model.expression import Call, Column, Expression, TableColumn, Value, walk
from grouping.model.sql_type import SqlType
from grouping.model.table import Table
from grouping.plan.expression_text import HIDDEN, render_name, render_part, render_reference, without_values

__all__ = ["JoinKey", "LookupJoin", "table_columns"]


class JoinKey(msgspec.Struct, frozen=True):
    """An equality of ON."""

    left: Expression
    """The expression over the columns of the nodes below."""
    column: str
    """The table's column, spelt as declared."""
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The column's type, to which values of `left` are converted before the look-up."""
        return SqlType.of(self.type_text)


class LookupJoin(msgspec.Struct, frozen=True):
    """The join of the rows below with a table.

    A row keeps the position and the time of its event. Unless every join is `single`, the rows of an event are
    numbered.
    """

    batch_micros: ClassVar[float] = 1_500.0
    """Fixed time in each micro-batch, in microseconds, from the benchmark ``fixed``."""

    table_id: str
    prefix: str
    """The qualifier of the table's columns within the computation."""
    keys: tuple[JoinKey, ...]
    outer: bool = False
    """Whether the join is a LEFT JOIN: a row without a partner in the table is joined with NULLs."""
    rest: tuple[Expression, ...] = ()
    """The further conditions of ON, over the columns of both sides, without lifted constants."""
    single: bool = True
    """Whether the keys are the whole primary key, so each row has at most one partner."""
    unique: bool = False
    """Whether ON compares all columns of the primary key, some of them with constants. Groups evaluate the comparisons
    with constants, so a row may have several partners in the join, but at most one partner for each query.
    """
    undecided: bool = False
    """Whether ON of a LEFT JOIN has conditions with constants. Groups evaluate these conditions
    (`grouping.model.expression.LEFT_ON`). Every row is then also joined with NULLs, after its partners in the table.
    """

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that are hashed to an id. Without `unique` and `undecided`, the id is as in earlier versions."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if value or name not in ("unique", "undecided")}

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that decide the partners of a row."""
        return (*(key.left for key in self.keys), *self.rest)

    @property
    def condition(self) -> str:
        """ON as text, with `?` in place of constants."""
        equalities = (self._equality(key, without_values(key.left), HIDDEN) for key in self.keys)
        return " AND ".join([*equalities, *(render_part(without_values(part), HIDDEN) for part in self.rest)])

    def signature(self, lifted: Mapping[str, Expression]) -> str:
        """Return the join as SQL, in which the prefix stands for an alias.

        Args:
            lifted: Prefix → the condition of ON with constants, which a group decides.
        """
        text = f" {'LEFT ' * self.outer}JOIN {render_name(self.prefix)} ON {self.condition}"
        if (condition := lifted.get(self.prefix)) is None:
            return text
        shown = render_part(condition)
        return f"{text} AND " + (f"({shown})" if isinstance(condition, Call) and condition.op == "or" else shown)

    def literals(self) -> Iterator[tuple[str, str]]:
        """Yield the conditions with constants that stay in the join, each with the part of the join that decides it."""
        for key in self.keys:
            if _has_values(key.left):
                yield self._equality(key, key.left), "look-up"
        for part in self.rest:
            if _has_values(part):
                yield render_part(part), "join"

    def _equality(self, key: JoinKey, left: Expression, constants: Sequence[str] = ()) -> str:
        return f"{render_part(left, constants)} = {render_reference(TableColumn(self.prefix, key.column))}"


def table_columns(table: Table, prefix: str) -> tuple[Column, ...]:
    """Return the columns, under a prefix, that a join with a table adds."""
    return tuple(Column.of(TableColumn(prefix, column.name), column.type_text) for column in table.columns)


def _has_values(expression: Expression) -> bool:
    return any(isinstance(each, Value) for each in walk(expression))
