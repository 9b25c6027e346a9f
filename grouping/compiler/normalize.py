"""The normal form of predicates: NOT is pushed inwards, constants stand on the right, ORs of equalities become sets.

Each step is exact in three-valued logic. An OR is never expanded, so the result is no larger than the predicate, with
one exception: IN repeats its left operand, as ``a + 1 IN (b, c)`` becomes ``a + 1 = b OR a + 1 = c``. The number of
these copies is limited.
"""

from __future__ import annotations

from collections.abc import Iterable

from grouping.binding.bound import Bound, Constant, Term, check_size
from grouping.binding.constants import as_decimal, set_of
from grouping.functions.results import common_type
from grouping.model.expression import Column
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BIGINT, BOOLEAN, NUMERIC

__all__ = ["conjuncts_of", "normalize", "normalize_value"]

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED = {"=": "=", "<>": "<>", "<=>": "<=>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LOGIC = frozenset((*_TURNED, "and", "or", "not", "in", "is_null", "like"))


def normalize(where: Bound | None) -> tuple[Bound, ...]:
    """Return the conjuncts of a WHERE, in no particular order; empty without WHERE."""
    if where is None:
        return ()
    predicate = _Normalizer().predicate(where, negated=False)
    if isinstance(predicate, Term) and predicate.op == "and":
        return predicate.args
    return (predicate,)


def conjuncts_of(conditions: Iterable[Bound]) -> list[Bound]:
    """Return the conjuncts of several conditions, in the order of the conditions."""
    return [part for condition in conditions for part in normalize(condition)]


def normalize_value(value: Bound) -> Bound:
    """Return an expression of a SELECT list in normal form; a bare column stays unchanged."""
    return _Normalizer().value(value)


class _Normalizer:
    def __init__(self) -> None:
        self._spent = 0

    def predicate(self, bound: Bound, *, negated: bool) -> Bound:
        """Return a predicate, or its negation, in normal form."""
        if isinstance(bound, Constant):
            # NOT of a constant is folded to a constant, which takes the same slot.
            return Constant(not bound.value, BOOLEAN) if negated and bound.value is not None else bound
        if isinstance(bound, Column):
            return Term("=", (bound, Constant(not negated, BOOLEAN)), BOOLEAN)
        if (truth := _compared_with_truth(bound)) is not None:
            operand, holds = truth
            return self.predicate(operand, negated=negated == holds)
        match bound:
            # Comparisons are tested first, since a predicate may have thousands of them.
            case Term(op, (left, right)) if op in _OPPOSITE:
                op = _OPPOSITE[op] if negated else op
                return _turned(op, self.value(left), self.value(right))
            case Term("not", (inner,)):
                return self.predicate(inner, negated=not negated)
            case Term("and" | "or", parts):
                op = bound.op if not negated else "or" if bound.op == "and" else "and"
                return _joined(op, [self.predicate(part, negated=negated) for part in parts])
            case Term("in", (needle, *members)):
                return self._in(self.value(needle), members, negated=negated)
            case Term("<=>", (left, right)):
                return _negated(_turned("<=>", self.value(left), self.value(right)), negated)
        return _negated(self.value(bound), negated)

    def value(self, bound: Bound) -> Bound:
        """Return an expression with its parts in normal form."""
        if not isinstance(bound, Term):
            return bound
        match bound:
            case Term("case", parts):
                last = len(parts) - 1
                return Term(
                    "case",
                    tuple(
                        self.value(part) if i % 2 or i == last else self.predicate(part, negated=False)
                        for i, part in enumerate(parts)
                    ),
                    bound.type,
                )
            case Term("is_null" | "like"):
                pass
            case Term(op) if op in _LOGIC:
                return self.predicate(bound, negated=False)
        return Term(bound.op, tuple(map(self.value, bound.args)), bound.type)

    def _in(self, needle: Bound, members: list[Bound], *, negated: bool) -> Bound:
        """Return IN as a set of its constants, and comparisons with its other members."""
        members = [member if isinstance(member, Constant) else self.value(member) for member in members]
        constants = [member for member in members if isinstance(member, Constant)]
        others = [member for member in members if not isinstance(member, Constant)]
        self._spent = check_size(needle, len(others), self._spent)
        if needle.type != NUMERIC:  # a NUMERIC needle is a constant, and its comparison with a column is exact
            for member in others:
                _check_common(needle, member)
        parts = [_turned("<>" if negated else "=", needle, member) for member in others]
        if constants:
            parts.append(_member(needle, set_of(constants), negated=negated))
        return _joined("and" if negated else "or", parts)


def _compared_with_truth(bound: Bound) -> tuple[Term, bool] | None:
    """Return the operand of a comparison with TRUE or FALSE, and the value that it must have; None for any other tree.

    Comparisons of columns are excluded: `flag = TRUE` is the normal form of `flag`, and its constant is lifted.
    """
    match bound:
        case Term("=" | "<>" as op, (Term() as operand, Constant(bool() as value))) | Term(
            "=" | "<>" as op, (Constant(bool() as value), Term() as operand)
        ):
            return operand, value == (op == "=")
    return None


def _negated(bound: Bound, negated: bool) -> Bound:
    return Term("not", (bound,), BOOLEAN) if negated else bound


def _member(needle: Bound, constants: Constant, *, negated: bool) -> Bound:
    if not constants.type.is_set:
        if constants.type in (NUMERIC, BIGINT) and not isinstance(needle, Column):
            # A BIGINT gets the reader of DECIMALs too: another text of the template may have a DECIMAL in its place.
            constants = as_decimal(constants)
            _check_common(needle, constants)
        return _turned("<>" if negated else "=", needle, constants)
    return _negated(Term("in", (needle, constants), BOOLEAN), negated)


def _check_common(one: Bound, other: Bound) -> None:
    if common_type((one.type, other.type)) is None:
        raise unsupported("a comparison of numbers this wide", "No DECIMAL holds both sides.", "CAST one to DOUBLE.")


def _turned(op: str, left: Bound, right: Bound) -> Bound:
    """Return a comparison with its constant on the right; `order.py` sorts two non-constant operands."""
    if isinstance(left, Constant) and not isinstance(right, Constant):
        op, left, right = _TURNED[op], right, left
    if op == "<>" and isinstance(left, Column) and left.type == BOOLEAN and isinstance(right, Constant):
        # `flag <> TRUE` is `NOT flag`, which is `flag = FALSE`.
        value = None if right.value is None else not right.value
        return Term("=", (left, Constant(value, BOOLEAN)), BOOLEAN)
    return Term(op, (left, right), BOOLEAN)


def _joined(op: str, parts: Iterable[Bound]) -> Bound:
    """Return AND or OR of parts; parts with the same operator are flattened."""
    flat: list[Bound] = []
    for part in parts:
        if isinstance(part, Term) and part.op == op:
            flat += part.args
        else:
            flat.append(part)
    if op == "or":
        flat = _sets(flat)
    return flat[0] if len(flat) == 1 else Term(op, tuple(flat), BOOLEAN)


def _sets(branches: list[Bound]) -> list[Bound]:
    """Return the branches of an OR, with the equalities and INs of each column merged into one set."""
    others: list[Bound] = []
    by_column: dict[Column, list[Constant]] = {}
    for branch in branches:
        match branch:
            case Term("=" | "in", (Column() as column, Constant() as constant)):
                by_column.setdefault(column, []).append(constant)
            case _:
                others.append(branch)
    for column, constants in by_column.items():
        kind = constants if len(constants) == 1 else [set_of(constants)]
        others.append(_member(column, kind[0], negated=False))
    return others
