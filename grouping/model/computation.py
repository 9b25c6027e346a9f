"""Computations: joins of a stream with tables, made once for all queries over them, whatever their constants."""

from __future__ import annotations

import hashlib

import msgspec

from grouping.model.expression import Expression
from grouping.model.ids import StreamId
from grouping.model.sql_type import SqlType

__all__ = ["Computation", "Join", "JoinKey", "computation_id"]


class JoinKey(msgspec.Struct, frozen=True):
    """One equality of ON."""

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
    """One table, joined with the sources left of it."""

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
    """Whether they are so together with equalities that have constants, which groups decide: a row meets several, and
    one of them at most by the constants of any query."""
    undecided: bool = False
    """LEFT JOIN whose ON has constants, which groups decide (`grouping.model.expression.LEFT_ON`): every row is joined
    with NULLs too, behind its rows in the table."""


class Computation(msgspec.Struct, frozen=True):
    """A stream and the tables that are joined with it, in their order."""

    computation_id: str
    joins: tuple[Join, ...]

    @property
    def single(self) -> bool:
        """Whether an event becomes one row at most, which then has the event's own id."""
        return all(join.single for join in self.joins)

    def joins_table(self, table_id: str) -> bool:
        """Tell whether one of the tables is this."""
        return any(join.table_id == table_id for join in self.joins)


_encode = msgspec.json.Encoder().encode


def computation_id(stream_id: StreamId, joins: tuple[Join, ...]) -> str:
    """Return the id of a computation: a function of what is computed, tables made anew included."""
    content = [stream_id, [_content(join) for join in joins]]
    return "j_" + hashlib.blake2b(_encode(content), digest_size=12).hexdigest()


def _content(join: Join) -> dict[str, object]:
    """Return what an id is made from: a join without the later fields has the id that it had before there were any."""
    fields = msgspec.structs.asdict(join)
    return {name: value for name, value in fields.items() if value or name not in ("unique", "undecided")}
