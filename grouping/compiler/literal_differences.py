"""Compares two compiled forms of one query: they may differ in literals, or only in their canonical form.

Another release of the compiler may give a query another canonical form, and so another group id; the literals are then
the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from grouping.model.expression import Call, Column, Computed, Expression, Slot, Value, walk
from grouping.plan.group import CompiledQuery

__all__ = ["differ_in_literals"]


def differ_in_literals(first: CompiledQuery, second: CompiledQuery) -> bool:
    """Return whether two compiled forms of one text have different literals or constants.

    If both forms have the same tree, literals are compared one by one. Otherwise the numbers of aggregates are
    compared, and literals as sets: the set of literals in the SELECT list and its aggregates, and the set of all other
    literals and constants.
    """
    if _trees(first) == _trees(second):
        return _literals(first) != _literals(second) or first.row.values != second.row.values
    return _aggregates(first) != _aggregates(second) or _literal_sets(first) != _literal_sets(second)


def _aggregates(query: CompiledQuery) -> int:
    return 0 if query.select.aggregation is None else len(query.select.aggregation.aggregates)


def _trees(query: CompiledQuery) -> list[object]:
    return [_tree(each) for each in (*_predicates(query), *_shown(query))]


def _literals(query: CompiledQuery) -> list[object]:
    return [value for each in (*_predicates(query), *_shown(query)) for value in _values(each)]


def _literal_sets(query: CompiledQuery) -> tuple[set[str], set[str]]:
    shown = {str(value) for each in _shown(query) for value in _values(each)}
    others = {str(value) for each in _predicates(query) for value in _values(each)}
    for constant in query.row.values:
        others |= set(map(str, constant)) if isinstance(constant, tuple) else {str(constant)}
    return shown, others


def _predicates(query: CompiledQuery) -> tuple[Expression, ...]:
    """Return the expressions of the plan: of its predicate, its joins and HAVING."""
    return (*query.plan.expressions, *(query.plan.kept.having if query.plan.kept else ()))


def _shown(query: CompiledQuery) -> tuple[Expression, ...]:
    """Return the expressions of the SELECT list, with its aggregates' expressions."""
    items = (item.expression for item in query.select.items)
    return (*items, *(query.select.aggregation.expressions if query.select.aggregation else ()))


def _values(expression: Expression) -> Iterator[object]:
    return (node.value for node in walk(expression) if isinstance(node, Value))


def _tree(expression: Expression) -> object:
    """Return an expression without its literals and types."""
    match expression:
        case Call(op, args):
            return (op, *map(_tree, args))
        case Column():
            reference = expression.reference
            return Computed if isinstance(reference, Computed) else reference
        case Slot(index):
            return index
        case _:
            return None
