"""The conditions of ON: look-up equalities, which select the table's rows, and further conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from grouping.binding.bound import Bound, Constant, Term, nodes
from grouping.binding.constants import settle
from grouping.model.errors import InputError
from grouping.model.expression import Column, TableColumn
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BINARY, BOOLEAN, DOUBLE, FLOAT, SqlType
from grouping.model.table import Table
from grouping.plan.lookup_join import JoinKey

__all__ = ["divide", "find_keys", "split", "without_keys"]


def divide(rest: Sequence[Bound], prefix: str, *, outer: bool) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
    """Return the conditions that the join evaluates, and the conditions that groups evaluate.

    Groups evaluate conditions with constants, since the constants are lifted. Groups also evaluate a condition of an
    inner join that reads only earlier sources, because this condition is like a condition of WHERE.
    """
    own = [not _has_constants(part) and (outer or _reads(part, prefix)) for part in rest]
    pairs = list(zip(rest, own, strict=True))
    return tuple(part for part, is_own in pairs if is_own), tuple(part for part, is_own in pairs if not is_own)


def without_keys(conditions: Iterable[Bound], prefix: str, name: str) -> InputError:
    """Return the refusal of a join whose ON has no look-up equality; `name` is the name of the joined source."""
    for equality in filter(None, (_equality(condition, prefix) for condition in conditions)):
        return unsupported(
            f"a join of {equality.left.type} with {equality.column.type}",
            "Both sides of the equality must have the same type.",
            "CAST the stream's side.",
        )
    return unsupported(
        "a join without an equality",
        f'ON must compare a column of "{name}" for equality with an expression over the sources before it.',
    )


def split(
    conditions: Sequence[Bound], prefix: str, table: Table, outer: bool
) -> tuple[list[JoinKey], tuple[Bound, ...]]:
    """Split the conjuncts of ON into look-up equalities, in a canonical order, and the rest.

    Equalities with constants are used for the look-up only if all look-up equalities have constants. Otherwise the
    constants are lifted, so that queries with different constants share a join. In an inner join by the whole primary
    key, the look-up uses only the equalities of the primary key.
    """
    plain = [condition for condition in conditions if not _has_constants(condition)]
    keys, rest = find_keys(plain, prefix)
    if not outer and {*table.key} < {*keys}:
        rest += (keys.pop(column)[1] for column in {*keys} - {*table.key})
    if keys:
        rest += (condition for condition in conditions if _has_constants(condition))
    else:
        keys, rest = find_keys(conditions, prefix)
    return [keys[column][0] for column in sorted(keys)], tuple(rest)


def find_keys(conditions: Iterable[Bound], prefix: str) -> tuple[dict[str, tuple[JoinKey, Bound]], list[Bound]]:
    """Return the first look-up equality of each column, and the remaining conjuncts."""
    keys: dict[str, tuple[JoinKey, Bound]] = {}
    rest: list[Bound] = []
    for condition in conditions:
        equality = _equality(condition, prefix)
        if equality is None or equality.name in keys or not _comparable(equality.left.type, equality.column.type):
            rest.append(condition)
        else:
            keys[equality.name] = equality.key, condition
    return keys, rest


class _Equality(NamedTuple):
    """An equality of a table's column with an expression over earlier sources."""

    left: Bound
    column: Column
    name: str
    """The column's name in the table."""

    @property
    def key(self) -> JoinKey:
        return JoinKey(settle(self.left), self.name, self.column.type_text)


def _equality(condition: Bound, prefix: str) -> _Equality | None:
    """Return a conjunct as a look-up equality; None for any other conjunct."""
    match condition:
        case Term("=", (Term("hex", (one,)), Term("hex", (other,)))) if one.type == other.type == BINARY:
            # BINARY values are compared by their hexadecimal digits.
            return _equality(Term("=", (one, other), BOOLEAN), prefix)
        case Term("=", (one, other)):
            for mine, theirs in ((one, other), (other, one)):
                if not isinstance(mine, Column) or _reads(theirs, prefix):
                    continue
                match mine.reference:
                    case TableColumn(owner, name) if owner == prefix and _columns(theirs):
                        return _Equality(theirs, mine, name)
    return None


def _comparable(left: SqlType, column: SqlType) -> bool:
    """Tell whether values of a type can be looked up among values of a column's type."""
    exact = [sql_type for sql_type in (left, column) if sql_type.is_number and sql_type not in (DOUBLE, FLOAT)]
    return left == column or len(exact) == 2


def _columns(bound: Bound) -> list[Column]:
    return [node for node in nodes(bound) if isinstance(node, Column)]


def _reads(bound: Bound, prefix: str) -> bool:
    """Tell whether a condition reads the table."""
    found = (column.reference for column in _columns(bound))
    return any(isinstance(each, TableColumn) and each.prefix == prefix for each in found)


def _has_constants(bound: Bound) -> bool:
    return any(isinstance(node, Constant) for node in nodes(bound))
