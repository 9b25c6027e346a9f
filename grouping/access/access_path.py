"""Access paths: the conjuncts of a group that an index looks up, and the residual that is checked afterwards.

The evaluator and EXPLAIN call the same function, so EXPLAIN shows the index that the evaluator uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from grouping.functions.functions import FUNCTIONS
from grouping.model.expression import Call, Column, Expression, Reference, Slot, lookup_key, walk
from grouping.model.sql_type import UNKNOWN

__all__ = ["AccessPath", "IndexKind", "access_paths", "branches_of", "choose_index"]

IndexKind = Literal["hash", "ordered", "composite", "interval", "prefix", "elements", "union", "scan"]

_MOST_PATHS = 12
"""The largest number of access paths of a group that are compared."""
_MOST_BRANCHES = 8
"""The largest number of branches of an OR that gets an access path for each branch."""

_LOWER = frozenset((">", ">="))
_UPPER = frozenset(("<", "<="))


class AccessPath(msgspec.Struct, frozen=True):
    """The way in which candidates of a group are found. Conjuncts are named by their positions in the plan."""

    kind: IndexKind
    """The kind of the lookup. ``hash``: the keys in `equal`, or the values of the set in `set_member`. ``composite``:
    the same, then one or both bounds among the rows found. ``ordered``: one bound. ``interval``: both bounds.
    ``prefix``: the beginning or a part of a text, for LIKE, startswith, endswith and contains. ``elements``: each
    element of an event's array. ``union``: each branch of an OR, by a path of its own. ``scan``: no lookup, so every
    row is a candidate.
    """
    equal: tuple[int, ...] = ()
    """``column = :c`` conjuncts."""
    set_member: int | None = None
    """The ``column IN :c`` conjunct."""
    lower: int | None = None
    """The ``column > :c`` or ``column >= :c`` conjunct."""
    upper: int | None = None
    """The ``column < :c`` or ``column <= :c`` conjunct, on the column of `lower` if there is one."""
    prefix: int | None = None
    """The conjunct ``column LIKE :c``, startswith, endswith or contains. The residual checks this conjunct too."""
    element: int | None = None
    """The conjunct ``array_contains(column, :c)``. The index looks up each element of an event's array."""
    filters: tuple[int, ...] = ()
    """The conjuncts without constants. They select events before the lookup."""
    residual: tuple[int, ...] = ()
    """The other conjuncts. They are checked for each candidate pair of an event and a constant row."""
    union_of: int | None = None
    """For ``union``, the conjunct with the OR."""
    branches: tuple[AccessPath, ...] = ()
    """For ``union``, the path of each branch. The numbers in a branch's path are positions in the conjuncts of this
    branch (`branches_of`).
    """

    @property
    def keys(self) -> tuple[int, ...]:
        """The conjuncts that are looked up."""
        found = (*self.equal, self.set_member, self.lower, self.upper, self.prefix, self.element, self.union_of)
        return tuple(position for position in found if position is not None)


def choose_index(conjuncts: Sequence[Expression], cost: Callable[[AccessPath], float] | None = None) -> AccessPath:
    """Choose the access path of a group.

    Args:
        conjuncts: The conjuncts of the group.
        cost: Returns the expected number of candidates of a path. Without this function, only the form of the conjuncts
            decides.

    Example:
        >>> price = Column("price", "DOUBLE")
        >>> choose_index([Call(">", (price, Slot(0)), "BOOLEAN")]).kind
        'ordered'
    """
    paths = access_paths(conjuncts)
    return paths[0] if cost is None or len(paths) == 1 else min(paths, key=cost)


def access_paths(conjuncts: Sequence[Expression]) -> list[AccessPath]:
    """Return the possible access paths of a group, at least one. The first path is the best by the form of conjuncts.

    The paths are: all ``=`` as keys, perhaps with bounds on one further column; one IN, perhaps with bounds on another
    column; an OR with an access path for each branch; both bounds of a column; one bound; the beginning or a part of a
    text; an element of an array; and a scan if there is no other path.
    """
    filters = tuple(i for i, conjunct in enumerate(conjuncts) if not _slotted(conjunct))
    plain = {i: found for i, conjunct in enumerate(conjuncts) if (found := _plain_comparison(conjunct))}
    return [_completed(path, filters, len(conjuncts)) for path in _ranked(conjuncts, plain)][:_MOST_PATHS]


def branches_of(disjunction: Expression) -> list[tuple[Expression, ...]]:
    """Return the conjuncts of each branch of an OR."""
    assert isinstance(disjunction, Call), "an OR"
    return [part.args if isinstance(part, Call) and part.op == "and" else (part,) for part in disjunction.args]


def _ranked(conjuncts: Sequence[Expression], plain: dict[int, tuple[str, Reference]]) -> Iterator[AccessPath]:
    equal = tuple(i for i, (op, _) in plain.items() if op == "=")
    bounds = _bounds(plain, {plain[i][1] for i in equal})
    if equal:
        yield from (AccessPath("composite", equal, lower=lower, upper=upper) for lower, upper in bounds)
        if not bounds:
            yield AccessPath("hash", equal)
    members = [i for i, (op, _) in plain.items() if op == "in"]
    yield from (AccessPath("hash", set_member=i) for i in members)
    for i in members:
        others = ((lower, upper) for lower, upper in bounds if plain[i][1] not in _columns(plain, lower, upper))
        yield from (AccessPath("composite", set_member=i, lower=lower, upper=upper) for lower, upper in others)
    unions = list(_unions(conjuncts))
    exact = [path for path in unions if all(branch.kind in ("hash", "composite") for branch in path.branches)]
    yield from exact
    if not equal:
        for lower, upper in bounds:
            yield AccessPath("ordered" if lower is None or upper is None else "interval", lower=lower, upper=upper)
    yield from (path for path in unions if path not in exact)
    prefixes = [i for i, conjunct in enumerate(conjuncts) if _index_of(conjunct) == "prefix"]
    yield from (AccessPath("prefix", prefix=i) for i in prefixes)
    elements = [i for i, conjunct in enumerate(conjuncts) if _index_of(conjunct) == "elements"]
    yield from (AccessPath("elements", element=i) for i in elements)
    if not (equal or members or bounds or unions or prefixes or elements):
        yield AccessPath("scan")


def _unions(conjuncts: Sequence[Expression]) -> Iterator[AccessPath]:
    """Yield a path for each OR with an index for every branch."""
    for i, conjunct in enumerate(conjuncts):
        if not isinstance(conjunct, Call) or conjunct.op != "or" or len(conjunct.args) > _MOST_BRANCHES:
            continue
        branches = tuple(access_paths(branch)[0] for branch in branches_of(conjunct))
        if all(branch.kind not in ("scan", "union") for branch in branches):
            yield AccessPath("union", union_of=i, branches=branches)


def _completed(path: AccessPath, filters: tuple[int, ...], count: int) -> AccessPath:
    """Return a path with its filters, and with all conjuncts in the residual that the index does not decide.

    The index does not decide an OR if a branch has a residual or filters. The index also does not decide a LIKE, since
    the index has only the beginning or a part of the texts.
    """
    covered = path.prefix is None and all(not branch.residual and not branch.filters for branch in path.branches)
    taken = {*filters, *(path.keys if covered else ())}
    residual = tuple(i for i in range(count) if i not in taken)
    return msgspec.structs.replace(path, filters=filters, residual=residual)


def _slotted(conjunct: Expression) -> bool:
    return any(isinstance(node, Slot) for node in walk(conjunct))


def _plain_comparison(conjunct: Expression) -> tuple[str, Reference] | None:
    """Return the operator and the key's name of ``key op :c``; None for any other conjunct."""
    match conjunct:
        case Call(op, (left, Slot())) if op in {"=", "in"} | _LOWER | _UPPER and _is_key(left):
            return op, lookup_key(left).reference
    return None


@lru_cache(maxsize=65_536)
def _is_key(expression: Expression) -> bool:
    """Tell whether an expression can be a key: a column, or a value computed from columns only."""
    if not isinstance(expression, Call):
        return isinstance(expression, Column)
    parts = list(walk(expression))
    if any(isinstance(part, Slot) for part in parts) or not any(isinstance(part, Column) for part in parts):
        return False
    return expression.type != UNKNOWN


def _index_of(conjunct: Expression) -> str | None:
    """Return the kind of index that serves a function as a predicate; None for any other conjunct."""
    match conjunct:
        case Call(op, (left, Slot())) if op in FUNCTIONS and _is_key(left):
            return FUNCTIONS[op].index
    return None


def _columns(plain: dict[int, tuple[str, Reference]], *positions: int | None) -> set[Reference]:
    return {plain[i][1] for i in positions if i is not None}


def _bounds(plain: dict[int, tuple[str, Reference]], keyed: set[Reference]) -> list[tuple[int | None, int | None]]:
    """Return the bounds of each column that is no key: first pairs, then single lower, then single upper bounds."""
    lowers: dict[Reference, int] = {}
    uppers: dict[Reference, int] = {}
    for i, (op, column) in plain.items():
        if column not in keyed and op in _LOWER | _UPPER:
            (lowers if op in _LOWER else uppers).setdefault(column, i)
    found = [(i, uppers.get(column)) for column, i in lowers.items()]
    found.sort(key=lambda bounds: bounds[1] is None)
    return [*found, *((None, i) for column, i in uppers.items() if column not in lowers)]
