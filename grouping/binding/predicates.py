"""Binding of predicates: comparisons, IN, BETWEEN, IS, LIKE, and AND, OR and NOT."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.calls.arguments import apply
from grouping.binding.calls.refused import no_in_query
from grouping.binding.listed import comparable_among, equal_rows, equalities, is_row
from grouping.binding.operands import boolean, comparable
from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BOOLEAN
from grouping.statements.literal_runs import run_before

__all__ = ["PredicateBinder"]

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
}
_PATTERNED: dict[type[exp.Expr], str] = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}
_NODES_OF_EQUALITY = 3
_PREDICATES = (*_COMPARISONS, *_PATTERNED, exp.Is, exp.In, exp.Between, exp.Not, exp.Connector)


class PredicateBinder(ABC):
    """Binds the predicates of one SELECT."""

    @abstractmethod
    def bind(self, node: exp.Expr) -> Bound:
        """Return the bound tree of an expression; raises InputError."""

    @abstractmethod
    def note_literals(self, nodes: int) -> None:
        """Count expressions for the budget that are bound together as a list, and not one by one with `bind`."""

    def _connector(self, node: exp.Expr) -> Term:
        """Bind a chain of AND or OR by a loop instead of recursion, since a chain may have any length."""
        kind = type(node)
        operands: list[Bound] = []
        stack = [node]
        while stack:
            part = stack.pop()
            if type(part) is kind:
                stack += (part.expression, part.this)
            else:
                operands += self._equalities(part)
                operands.append(boolean(self.bind(part), f"an operand of {kind.__name__.upper()}"))
        return Term(kind.__name__.lower(), tuple(operands), BOOLEAN)

    def _equalities(self, last: exp.Expr) -> Iterator[Term]:
        """Yield the equalities that `literal_runs` has cut out of an OR before the operand `last`."""
        if (run := run_before(last)) is not None:
            compared, literals = self.bind(last.this), run.literals
            self.note_literals(len(literals) * _NODES_OF_EQUALITY)
            yield from equalities(compared, literals)

    def _listed(self, values: Iterable[exp.Expr]) -> Iterator[Bound | list[str]]:
        """Yield the members of an IN list; literals cut out by `literal_runs` come as lists of texts."""
        for value in values:
            if (run := run_before(value)) is not None:
                literals = run.literals
                self.note_literals(len(literals))
                yield literals
            yield self.bind(value)

    def _not(self, node: exp.Expr) -> Term:
        return Term("not", (boolean(self.bind(node.this), "the operand of NOT"),), BOOLEAN)

    def _row(self, node: exp.Expr) -> list[Bound]:
        return [self.bind(value) for value in node.unnest().expressions]

    def _comparison(self, node: exp.Expr) -> Bound:
        sides: tuple[exp.Expr, ...] = (node.this, node.expression)
        for side in sides:
            # Spark evaluates chained comparisons from left to right; sqlglot parses them differently.
            if isinstance(side, _PREDICATES):
                raise unsupported(
                    "a comparison of comparisons",
                    "SQL dialects read a chain of comparisons differently.",
                    "|| joins texts: write OR."
                    if side.find(exp.DPipe)
                    else "Join comparisons with AND or OR, as in 1 < a AND a < 5, or put one in parentheses.",
                )
        if isinstance(node, exp.EQ | exp.NEQ) and all(map(is_row, sides)):
            rows = equal_rows(*(self._row(side) for side in sides))
            return rows if isinstance(node, exp.EQ) else Term("not", (rows,), BOOLEAN)
        term = Term(_COMPARISONS[type(node)], comparable([self.bind(side) for side in sides]), BOOLEAN)
        return Term("not", (term,), BOOLEAN) if isinstance(node, exp.NullSafeNEQ) else term

    def _between(self, node: exp.Expr) -> Term:
        if node.args.get("symmetric"):
            raise unsupported("BETWEEN SYMMETRIC", "Spark has no SYMMETRIC.", "Write BETWEEN low AND high.")
        needle, low, high = (self.bind(part) for part in (node.this, node.args["low"], node.args["high"]))
        # As in Spark, each bound has its own common type with the operand, independent of the other bound.
        sides = (Term(op, comparable((needle, bound)), BOOLEAN) for op, bound in ((">=", low), ("<=", high)))
        return Term("and", tuple(sides), BOOLEAN)

    def _in(self, node: exp.Expr) -> Bound:
        if node.args.get("query") or node.args.get("unnest"):
            raise no_in_query(node)
        if node.args.get("field"):
            raise InputError(
                "the list after IN has no parentheses",
                code="syntax-error",
                detail="IN takes values.",
                hint="Write IN ('A', 'B'); array_contains(tags, 'a') looks into an ARRAY.",
            )
        if not node.expressions:
            raise InputError("the list after IN is empty", code="syntax-error", detail="IN needs at least one value.")
        if is_row(node.this) and all(map(is_row, node.expressions)):
            row = self._row(node.this)
            terms = tuple(equal_rows(row, self._row(other)) for other in node.expressions)
            return terms[0] if len(terms) == 1 else Term("or", terms, BOOLEAN)
        return Term("in", comparable_among(self.bind(node.this), self._listed(node.expressions)), BOOLEAN)

    def _is(self, node: exp.Expr) -> Term:
        operand = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return Term("is_null", (operand,), BOOLEAN)
        if isinstance(node.expression, exp.Boolean):
            truth = Constant(bool(node.expression.this), BOOLEAN)
            return Term("<=>", (boolean(operand, "the operand of IS"), truth), BOOLEAN)
        raise unsupported("IS with anything but NULL, TRUE and FALSE", "Spark has no such predicate.", "Write = or <>.")

    def _like(self, node: exp.Expr, *escape: Bound) -> Bound:
        """Bind LIKE, ILIKE or RLIKE with one pattern, or with ANY or ALL of several patterns."""
        name = _PATTERNED[type(node)]
        texts, negated = self.bind(node.this), bool(node.args.get("negate"))
        patterns = node.expression.unnest()
        if not isinstance(patterns, exp.Any | exp.All):
            return self._matched(name, texts, patterns, *escape, negated=negated)
        if name == "rlike" or escape:
            raise unsupported(
                f"{name.upper()} ANY or {name.upper()} ALL here",
                f"{name.upper()} takes one pattern.",
                "Join several with OR or AND.",
            )
        listed = patterns.this.unnest()
        each = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        if not each:
            raise InputError(
                f"the list after {name.upper()} is empty", code="syntax-error", detail="At least one pattern is needed."
            )
        # NOT LIKE ANY is TRUE if at least one pattern does not match, NOT LIKE ALL if no pattern matches.
        terms = tuple(self._matched(name, texts, pattern, negated=negated) for pattern in each)
        if len(terms) == 1:
            return terms[0]
        return Term("or" if isinstance(patterns, exp.Any) else "and", terms, BOOLEAN)

    def _matched(self, name: str, texts: Bound, pattern: exp.Expr, *escape: Bound, negated: bool) -> Bound:
        term = apply(name, [texts, self.bind(pattern), *escape])
        return Term("not", (term,), BOOLEAN) if negated else term

    def _escape(self, node: exp.Expr) -> Bound:
        inner = node.this
        if not isinstance(inner, exp.Like | exp.ILike):
            raise unsupported("ESCAPE here", "Only LIKE and ILIKE have ESCAPE.", "Write LIKE 'a!%' ESCAPE '!'.")
        return self._like(inner, self.bind(node.expression))

    METHODS: ClassVar[dict[type[exp.Expr], Callable[..., Bound]]] = {
        **dict.fromkeys(_COMPARISONS, _comparison),
        exp.And: _connector,
        exp.Or: _connector,
        exp.Not: _not,
        exp.Between: _between,
        exp.In: _in,
        exp.Is: _is,
        exp.Like: _like,
        exp.ILike: _like,
        exp.RegexpLike: _like,
        exp.Escape: _escape,
    }
    """The method that binds each kind of predicate."""
