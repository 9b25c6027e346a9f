"""Computations: joins of a stream with tables, made once for all queries over them, whatever their constants."""

from __future__ import annotations

import hashlib

import msgspec

from grouping.model.expression import Expression
from grouping.model.ids import StreamId
from grouping.model.sql_type import SqlType

__all__ = ["Computation", "Join", "JoinKey", "computation_id"]


class JoinKey(msgspec.Struct, frozen=True):
    """An equality of ON."""

    left: Expression
    """Over the columns of the sources left of the table."""
    column: str
    """The table's column, spelt as declared."""
    type_text: str = msgspec.field(name="type")

    @property
    def type(self) -> SqlType:
        """The column's type, to which values of `left` are brought before they are looked up."""
        return SqlType.of(self.type_text)


class Join(msgspec.Struct, frozen=True):
    """A table, joined with the sources left of it."""

    table_id: str
    prefix: str
    """The qualifier of the table's columns within the computation."""
    keys: tuple[JoinKey, ...]
    outer: bool = False
    """LEFT JOIN: a row without a row in the table is joined with NULLs."""
    rest: tuple[Expression, ...] = ()
    """The further conditions of ON, over the columns of both sides, without constants of queries."""
    single: bool = True
    """Whether the keys are the whole primary key: a row meets one row at most."""
    unique: bool = False
    """Whether the keys are the whole primary key together with equalities with constants, which groups decide: a row
    meets several, but at most one for the constants of any query."""
    undecided: bool = False
    """A LEFT JOIN with constants in ON, which groups decide (`grouping.model.expression.LEFT_ON`): every row is joined
    with NULLs too, behind its rows in the table."""


class Computation(msgspec.Struct, frozen=True):
    """A stream and the tables joined with it, in their order."""

    computation_id: str
    joins: tuple[Join, ...]

    @property
    def single(self) -> bool:
        """Whether an event becomes one row at most, with the event's own id."""
        return all(join.single for join in self.joins)

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The tables, in their order; a table that is joined twice comes twice."""
        return tuple(join.table_id for join in self.joins)


_encode = msgspec.json.Encoder().encode


def computation_id(stream_id: StreamId, joins: tuple[Join, ...]) -> str:
    """Return the id of a computation: a function of its joins, tables made anew included."""
    content = [stream_id, [_content(join) for join in joins]]
    return "j_" + hashlib.blake2b(_encode(content), digest_size=12).hexdigest()


def _content(join: Join) -> dict[str, object]:
    """Return the fields that make an id: a join without the newer fields keeps its id from earlier versions."""
    fields = msgspec.structs.asdict(join)
    return {name: value for name, value in fields.items() if value or name not in ("unique", "undecided")}
