"""From sqlglot's expressions to bound trees: what each kind of node means, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from grouping.compiler.bound import Bound, Constant, Term, check_size, too_large
from grouping.compiler.call import call, cast_type, function_name, refusal
from grouping.compiler.constants import number, string
from grouping.compiler.nested import element, field
from grouping.compiler.operands import (
    apply,
    arithmetic,
    boolean,
    cases,
    cast,
    comparable,
    negative,
    positive,
    unsupported,
)
from grouping.compiler.scope import Scope
from grouping.compiler.select_text import FUNCTION_MARK, MAX_DEPTH
from grouping.model.errors import InputError
from grouping.model.expression import Column
from grouping.model.sql_type import BOOLEAN, STRING

__all__ = ["Binder"]

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
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
}
_PATTERNED: dict[type[exp.Expr], str] = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}
_PREDICATES = (*_COMPARISONS, *_PATTERNED, exp.Is, exp.In, exp.Between, exp.Not, exp.Connector)


class Binder:
    """Binds the expressions of one SELECT."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._depth = 0
        self._copied = 0
        self._columns: dict[tuple[str, str], tuple[str, Bound]] = {}

    def bind(self, node: exp.Expr) -> Bound:
        """Return the bound tree of an expression.

        Raises:
            InputError: With the code that says what is wrong with it.
        """
        node = node.unnest()
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise too_large(f"it is nested deeper than {MAX_DEPTH} levels")
            return self._bind(node)
        finally:
            self._depth -= 1

    def finished(self, bound: Bound) -> Bound:
        """Return an expression of the SELECT list as the query has it."""
        return bound

    def _bind(self, node: exp.Expr) -> Bound:
        kind = type(node)
        if kind in _COMPARISONS:
            return self._comparison(node)
        if kind in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[kind], self.bind(node.this), self.bind(node.expression))
        method = self._METHODS.get(kind)
        if method is None:
            raise refusal(node)
        return method(self, node)

    def column(self, node: exp.Column) -> tuple[str, Bound]:
        """Return a column's name as its source shows it, and its bound tree; raises as `bind` does."""
        if not isinstance(node.this, exp.Identifier):
            self.check_qualifier(node)
            raise refusal(node.this)
        if (parts := self._fields(node)) is not None:
            return parts
        self.check_qualifier(node)
        key = (_qualifier(node), node.name)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = self.scope.resolve(*key, quoted=bool(node.this.quoted))
        if not isinstance(column[1], Column):
            self._copied = check_size(column[1], 1, self._copied)
        return column

    def _column(self, node: exp.Column) -> Bound:
        return self.column(node)[1]

    def _fields(self, node: exp.Column) -> tuple[str, Bound] | None:
        """Return the field that a chain of names leads to, None where the last name is a source's column."""
        names = [part.name for part in node.parts]
        for first in range(len(names) - 1):
            qualifier = ".".join(names[:first])
            if first and not self.scope.names(qualifier):
                continue
            if any(source.find(names[first].casefold()) for source in self.scope.named(qualifier)):
                if self.scope.names(".".join(names[:-1])):
                    continue
                shown, bound = self.scope.resolve(qualifier, names[first])
                for name in names[first + 1 :]:
                    bound = field(bound, name)
                    shown = name
                return shown, bound
        return None

    def _dot(self, node: exp.Expr) -> Bound:
        if not isinstance(node.expression, exp.Identifier):
            raise unsupported("a call behind a dot", "A field's name stands there.")
        return field(self.bind(node.this), node.expression.name)

    def _bracket(self, node: exp.Expr) -> Bound:
        if len(node.expressions) != 1:
            raise unsupported("several places in brackets", "There is one element at a place.")
        return element(self.bind(node.this), self.bind(node.expressions[0]))

    def check_qualifier(self, node: exp.Column) -> None:
        """Refuse a column whose qualifier is no source's name or alias."""
        qualifier = _qualifier(node)
        if not qualifier or self.scope.names(qualifier):
            return
        self.scope.resolve(qualifier, node.name)

    def _literal(self, node: exp.Expr) -> Constant:
        position = node.meta.get("start")
        return string(node.this, position) if node.is_string else number(node.this, position)

    def _boolean(self, node: exp.Expr) -> Constant:
        return Constant(bool(node.this), BOOLEAN)

    def _null(self, node: exp.Expr) -> Constant:
        return Constant(None, STRING)

    def _negative(self, node: exp.Expr) -> Bound:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number("-" + inner.this, inner.meta.get("start"))
        return negative(self.bind(inner))

    def _positive(self, node: exp.Expr) -> Bound:
        return positive(self.bind(node.this))

    def _connector(self, node: exp.Expr) -> Term:
        """Bind AND or OR; the chain is walked, not recursed into, for it may be of any length."""
        kind = type(node)
        operands: list[Bound] = []
        stack = [node]
        while stack:
            part = stack.pop()
            if type(part) is kind:
                stack += (part.expression, part.this)
            else:
                operands.append(boolean(self.bind(part), f"an operand of {kind.__name__.upper()}"))
        return Term(kind.__name__.lower(), tuple(operands), BOOLEAN)

    def _not(self, node: exp.Expr) -> Term:
        return Term("not", (boolean(self.bind(node.this), "what NOT stands before"),), BOOLEAN)

    def _comparison(self, node: exp.Expr) -> Term:
        for side in (node.this, node.expression):
            # Spark chains comparisons from left to right and sqlglot does not; it hides which parentheses were written.
            if isinstance(side.unnest(), _PREDICATES):
                raise unsupported("a comparison of comparisons", "Dialects read it differently.", "Use AND, OR, CASE.")
        term = Term(_COMPARISONS[type(node)], comparable((self.bind(node.this), self.bind(node.expression))), BOOLEAN)
        return Term("not", (term,), BOOLEAN) if isinstance(node, exp.NullSafeNEQ) else term

    def _between(self, node: exp.Expr) -> Term:
        if node.args.get("symmetric"):
            raise unsupported("BETWEEN SYMMETRIC", "Spark has only the plain one.")
        needle, low, high = (self.bind(part) for part in (node.this, node.args["low"], node.args["high"]))
        self._copied = check_size(needle, 1, self._copied)
        # As Spark has it: each bound meets the operand in a type of their own, whatever the other bound is.
        sides = (Term(op, comparable((needle, bound)), BOOLEAN) for op, bound in ((">=", low), ("<=", high)))
        return Term("and", tuple(sides), BOOLEAN)

    def _in(self, node: exp.Expr) -> Term:
        if node.args.get("query") or node.args.get("unnest"):
            raise unsupported("a subquery", "IN takes a list of values.")
        if not node.expressions:
            raise InputError("the list after IN is empty", code="syntax-error", detail="It needs a value at least.")
        parts = (node.this, *node.expressions)
        return Term("in", comparable(tuple(self.bind(part) for part in parts), among=True), BOOLEAN)

    def _is(self, node: exp.Expr) -> Term:
        operand = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return Term("is_null", (operand,), BOOLEAN)
        if isinstance(node.expression, exp.Boolean):
            truth = Constant(bool(node.expression.this), BOOLEAN)
            return Term("<=>", (boolean(operand, "what IS stands behind"), truth), BOOLEAN)
        raise unsupported("IS with anything but NULL, TRUE and FALSE", "It is no predicate of Spark's.")

    def _like(self, node: exp.Expr, *escape: Bound) -> Bound:
        """Bind LIKE, ILIKE or RLIKE, of one pattern or of ANY or ALL of several."""
        name = _PATTERNED[type(node)]
        texts, negated = self.bind(node.this), bool(node.args.get("negate"))
        patterns = node.expression.unnest()
        if not isinstance(patterns, exp.Any | exp.All):
            return self._matched(name, texts, patterns, *escape, negated=negated)
        if name == "rlike" or escape:
            raise unsupported(f"{name.upper()} ANY and {name.upper()} ALL here", "It takes one pattern.")
        listed = patterns.this.unnest()
        each = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        self._copied = check_size(texts, len(each), self._copied)
        # NOT LIKE ANY asks for one that is not met, NOT LIKE ALL for none that is.
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
            raise unsupported("ESCAPE", "It belongs to LIKE.")
        return self._like(inner, self.bind(node.expression))

    def _concat(self, node: exp.Expr) -> Bound:
        parts: list[exp.Expr] = []
        while isinstance(node, exp.DPipe):
            parts.append(node.expression)
            node = node.this
        return apply("concat", [self.bind(part) for part in (node, *reversed(parts))])

    def _side_by_side(self, node: exp.Expr) -> Bound:
        raise InputError(
            "two strings stand side by side",
            code="syntax-error",
            detail="An operator is missing.",
            hint="Use || or ''.",
        )

    def _case(self, node: exp.Expr) -> Term:
        subject = self.bind(node.this) if node.args.get("this") else None
        conditions: list[Bound] = []
        results: list[Bound] = []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            if subject is not None:
                conditions.append(Term("=", comparable((subject, condition)), BOOLEAN))
            else:
                conditions.append(boolean(condition, "a condition of CASE"))
            results.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        if default is not None:
            results.append(self.bind(default))
        return cases(conditions, results)

    def _cast(self, node: exp.Expr) -> Bound:
        if node.args.get("format") or node.args.get("default"):
            raise unsupported("CAST with a format", "CAST takes a type only.")
        operand = self.bind(node.this)
        return cast(operand, cast_type(node.args["to"]))

    def _trim(self, node: exp.Expr) -> Bound:
        side = (node.args.get("position") or "").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
        characters = node.args.get("expression")
        return apply(name, [self.bind(part) for part in (node.this, characters) if part is not None])

    def _substring(self, node: exp.Expr) -> Bound:
        parts = (node.this, node.args.get("start"), node.args.get("length"))
        return apply("substring", [self.bind(part) for part in parts if part is not None])

    def _position(self, node: exp.Expr) -> Bound:
        return apply("locate", [self.bind(part) for part in (node.args["substr"], node.this)])

    def _function(self, node: exp.Expr) -> Bound:
        name = function_name(str(node.this).removeprefix(FUNCTION_MARK))
        return call(name, [self.bind(argument) for argument in node.expressions])

    _METHODS: ClassVar[dict[type[exp.Expr], Callable[..., Bound]]] = {
        exp.Column: _column,
        exp.Dot: _dot,
        exp.Bracket: _bracket,
        exp.Literal: _literal,
        exp.Boolean: _boolean,
        exp.Null: _null,
        exp.Neg: _negative,
        exp.Sqrt: _positive,  # as `select_text` hands it over
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
        exp.DPipe: _concat,
        exp.Concat: _side_by_side,
        exp.Case: _case,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Trim: _trim,
        exp.Substring: _substring,
        exp.StrPosition: _position,
        exp.Anonymous: _function,
    }
    """How each kind of node is bound, besides comparisons and arithmetic."""


def _qualifier(node: exp.Column) -> str:
    """Return what stands before a column's last dot."""
    return ".".join(part.name for part in node.parts[:-1])
