"""Which conjuncts of a group are looked up in an index, and which are checked afterwards.

The evaluator and EXPLAIN call the same function, so that what is shown is what runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from grouping.expression import Call, Column, Expression, Slot, walk

__all__ = ["AccessPath", "choose_index"]

Kind = Literal["hash", "ordered", "composite", "interval", "scan"]

_LOWER = frozenset((">", ">="))
_UPPER = frozenset(("<", "<="))


class AccessPath(msgspec.Struct, frozen=True):
    """How candidates of a group are found; numbers are positions in the plan's conjuncts, each in exactly one place."""

    kind: Kind
    """``hash``: the keys in `equal`, or those of the set in `set_member`. ``composite``: `equal`, then one bound or
    both within them. ``ordered``: one bound. ``interval``: both bounds. ``scan``: every row is a candidate."""
    equal: tuple[int, ...] = ()
    """``column = :c`` conjuncts."""
    set_member: int | None = None
    """The ``column IN :c`` conjunct."""
    lower: int | None = None
    """The ``column > :c`` or ``column >= :c`` conjunct."""
    upper: int | None = None
    """The ``column < :c`` or ``column <= :c`` conjunct, on the column of `lower` if there is one."""
    filters: tuple[int, ...] = ()
    """Conjuncts without constants: they select events before any lookup."""
    residual: tuple[int, ...] = ()
    """What is left, checked on candidate pairs."""


def choose_index(conjuncts: Sequence[Expression]) -> AccessPath:
    """Choose how to look a group's constants up, from the predicate's shape alone.

    Every ``=`` is a key, with the bounds on one further column beside them; else one IN; else the two bounds of a
    column; else one bound.

    Example:
        >>> price = Column("price", "DOUBLE")
        >>> choose_index([Call(">", (price, Slot(0)), "BOOLEAN")]).kind
        'ordered'
    """
    filters = tuple(i for i, conjunct in enumerate(conjuncts) if not _slotted(conjunct))
    plain = {i: found for i, conjunct in enumerate(conjuncts) if (found := _plain_comparison(conjunct))}
    equal = tuple(i for i, (op, _) in plain.items() if op == "=")
    members = [i for i, (op, _) in plain.items() if op == "in"]
    keyed = {plain[i][1] for i in equal}
    lower, upper = (None, None) if members and not equal else _bounds(plain, keyed)
    if equal:
        kind: Kind = "hash" if lower is None and upper is None else "composite"
    elif members:
        kind = "hash"
    elif lower is None and upper is None:
        kind = "scan"
    else:
        kind = "ordered" if lower is None or upper is None else "interval"
    set_member = members[0] if members and not equal else None
    taken = {*filters, *equal, set_member, lower, upper}
    residual = tuple(i for i in range(len(conjuncts)) if i not in taken)
    return AccessPath(kind, equal, set_member, lower, upper, filters, residual)


def _slotted(conjunct: Expression) -> bool:
    return any(isinstance(node, Slot) for node in walk(conjunct))


def _plain_comparison(conjunct: Expression) -> tuple[str, str] | None:
    """Return the operator and the column of ``column op :c``, or None for anything else."""
    match conjunct:
        case Call(op, (Column(name), Slot())) if op in {"=", "in"} | _LOWER | _UPPER:
            return op, name
    return None


def _bounds(plain: dict[int, tuple[str, str]], keyed: set[str]) -> tuple[int | None, int | None]:
    """Return the two bounds of the first column that has both, else the first bound there is."""
    lowers: dict[str, int] = {}
    uppers: dict[str, int] = {}
    for i, (op, column) in plain.items():
        if column not in keyed and op in _LOWER | _UPPER:
            (lowers if op in _LOWER else uppers).setdefault(column, i)
    for column, i in lowers.items():
        if column in uppers:
            return i, uppers[column]
    if lowers:
        return next(iter(lowers.values())), None
    return None, next(iter(uppers.values()), None)
