"""Binding: turns sqlglot's expressions into bound trees, and refuses unsupported kinds of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from sqlglot import exp

from grouping.binding.arithmetic import arithmetic, bitwise, negative, positive, typed_literal
from grouping.binding.arrays import name_in_struct, zipped
from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.calls.arguments import apply
from grouping.binding.calls.call import call, function_name
from grouping.binding.calls.refused import PATHS, no_path, refusal, unparenthesized
from grouping.binding.calls.spelled import SPELLED, spelled_call
from grouping.binding.cast_types import cast_type
from grouping.binding.constants import number, string
from grouping.binding.intervals import interval_literal
from grouping.binding.lambdas import elements_of, lambda_call, reduction, reduction_columns, variables_of
from grouping.binding.nested import element, field
from grouping.binding.operands import boolean, cases, cast, comparable
from grouping.binding.predicates import PredicateBinder
from grouping.binding.scope import Scope
from grouping.binding.time_units import UNIT_CALLS, field_of, unit_call
from grouping.functions.functions import LAMBDAS
from grouping.model.errors import InputError
from grouping.model.refusals import MAX_DEPTH, mismatch, too_deep, unsupported
from grouping.model.sql_type import BINARY, BOOLEAN, STRING, SqlType
from grouping.statements.respelled_tokens import INTERVAL_LITERAL, TYPED_LITERAL
from grouping.statements.select_text import FUNCTION_MARK

__all__ = ["Binder"]

_BITWISE: dict[type[exp.Expr], tuple[str, int]] = {
    exp.BitwiseLeftShift: ("shiftleft", 4),
    exp.BitwiseRightShift: ("shiftright", 4),
    exp.Coalesce: ("shiftrightunsigned", 4),  # `respelled_tokens` rewrites >>> to this node
    exp.BitwiseAnd: ("&", 3),
    exp.BitwiseXor: ("^", 2),
    exp.BitwiseOr: ("|", 1),
}
"""By node: the operator, and its precedence in Spark (4 binds tightest). In sqlglot all have equal precedence."""
_REDUCING = frozenset(("aggregate", "reduce"))
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
}


class Binder(PredicateBinder):
    """Binds the expressions of one SELECT."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._depth = 0
        self._variables: dict[str, Bound] = {}
        """The variables of the enclosing lambdas, by name in lower case."""
        self._columns: dict[tuple[str, str], tuple[str, Bound]] = {}

    def bind(self, node: exp.Expr) -> Bound:
        """Return the bound tree of an expression.

        Raises:
            InputError: The expression is wrong; docs/commands.md lists the codes.
        """
        node = node.unnest()
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise too_deep()
            bound = self._bind(node)
        finally:
            self._depth -= 1
        self.scope.budget.note(bound)
        if not self._depth:
            self.scope.budget.spend(bound)
        return bound

    def finished(self, bound: Bound) -> Bound:
        """Return an expression of the SELECT list in its final form; `AggregateBinder` overrides this method."""
        return bound

    def _bind(self, node: exp.Expr) -> Bound:
        kind = type(node)
        if kind in _ARITHMETIC:
            return arithmetic(_ARITHMETIC[kind], self.bind(node.this), self.bind(node.expression))
        method = self.METHODS.get(kind)
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
        if not self._depth:
            self.scope.budget.spend(column[1])
        return column

    def _column(self, node: exp.Column) -> Bound:
        return self.column(node)[1]

    def _variable(self, node: exp.Expr) -> Bound:
        """Bind the variable of a lambda; sqlglot parses it as a bare identifier."""
        found = self._variables.get(node.name.casefold())
        if found is None:
            raise refusal(node)
        return found

    def star(self, qualifier: str) -> Iterator[tuple[str, Bound]]:
        """Yield the columns that `*` stands for; raises as `bind` does."""
        for name, bound in self.scope.star(qualifier):
            self.scope.budget.spend(bound)
            yield name, self.finished(bound)

    def _fields(self, node: exp.Column) -> tuple[str, Bound] | None:
        """Return the field of a nested value that a dotted name means; None if the name means a source's column."""
        names = [part.name for part in node.parts]
        if (bound := self._variables.get(names[0].casefold())) is not None:
            for name in names[1:]:
                bound = field(bound, name)
            return names[-1], bound
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
            raise unsupported("a call after a dot", "A dot is followed by the name of a field.")
        return field(self.bind(node.this), node.expression.name)

    def _bracket(self, node: exp.Expr) -> Bound:
        if len(node.expressions) != 1:
            raise unsupported("several indexes in brackets", "Brackets take one index.")
        return element(self.bind(node.this), self.bind(node.expressions[0]))

    def check_qualifier(self, node: exp.Column) -> None:
        """Refuse a column with a qualifier that is not the name or alias of a source."""
        qualifier = _qualifier(node)
        if not qualifier or self.scope.names(qualifier):
            return
        self.scope.resolve(qualifier, node.name)

    def _literal(self, node: exp.Expr) -> Constant:
        position = node.meta.get("start")
        return string(node.this, position) if node.is_string else number(node.this, position)

    def note_literals(self, nodes: int) -> None:
        """Count expressions for the budget that are bound together as a list, and not one by one with `bind`."""
        self.scope.budget.note_small(nodes)

    def _boolean(self, node: exp.Expr) -> Constant:
        return Constant(bool(node.this), BOOLEAN)

    def _binary(self, node: exp.Expr) -> Term:
        return Term("unhex", (Constant(str(node.this), STRING),), BINARY)

    def _null(self, node: exp.Expr) -> Constant:
        return Constant(None, STRING)

    def _negative(self, node: exp.Expr) -> Bound:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number("-" + inner.this, inner.meta.get("start"))
        return negative(self.bind(inner))

    def _positive(self, node: exp.Expr) -> Bound:
        return positive(self.bind(node.this))

    def _concat(self, node: exp.Expr) -> Bound:
        parts: list[exp.Expr] = []
        while isinstance(node, exp.DPipe):
            parts.append(node.expression)
            node = node.this
        return apply("concat", [self.bind(part) for part in (node, *reversed(parts))])

    def _side_by_side(self, node: exp.Expr) -> Bound:
        detail = "An operator between the strings is missing."
        raise InputError("two strings follow each other", code="syntax-error", detail=detail, hint="Use || or ''.")

    def _case(self, node: exp.Expr) -> Term:
        subject = self.bind(node.this) if node.args.get("this") else None
        conditions: list[Bound] = []
        results: list[Bound] = []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            if subject is not None:
                conditions.append(Term("=", comparable((subject, condition)), BOOLEAN))
            else:
                if is_null(condition) and condition.type != BOOLEAN:
                    raise mismatch("a condition of CASE is NULL", "A condition must be BOOLEAN.", "CAST the NULL.")
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

    def _spelled(self, node: exp.Expr) -> Bound:
        name, arguments = spelled_call(node)
        return apply(name, [self.bind(argument) for argument in arguments])

    def _function(self, node: exp.Expr) -> Bound:
        if node.this == INTERVAL_LITERAL:
            return _interval(*node.expressions)
        if node.this == TYPED_LITERAL:
            number, kind = node.expressions
            return typed_literal(self.bind(number), SqlType.of(kind.name))
        name = function_name(str(node.this).removeprefix(FUNCTION_MARK))
        if name in LAMBDAS and any(isinstance(argument, exp.Lambda) for argument in node.expressions):
            return self._reduce(node.expressions) if name in _REDUCING else self._lambda(name, *node.expressions)
        if name in UNIT_CALLS and len(node.expressions) == 3:
            unit, *others = node.expressions
            return unit_call(name, unit, [self.bind(argument) for argument in others])
        if name == "struct":
            return call("named_struct", self._named(node.expressions))
        if name == "arrays_zip":
            return zipped(node.expressions, [self.bind(argument) for argument in node.expressions])
        bound = call(name, [self.bind(argument) for argument in node.expressions])
        if name == "sequence" and isinstance(bound, Term):
            self.scope.budget.make(len(bound.args))
        return bound

    def _named(self, values: Sequence[exp.Expr]) -> list[Bound]:
        """Bind the names and values of a STRUCT, which alternate."""
        named: list[Bound] = []
        for place, value in enumerate(values, 1):
            named += (Constant(name_in_struct(value, place), STRING), self.bind(value.unalias()))
        return named

    def _bitwise(self, node: exp.Expr) -> Bound:
        name, strength = _BITWISE[type(node)]
        if _BITWISE.get(type(node.this), ("", strength))[1] < strength:
            raise unparenthesized(_BITWISE[type(node.this)][0], name)
        parts = (node.this, *(node.expressions or (node.expression,)))
        if None in parts:
            detail = "The operator shifts bits by a number."
            raise InputError('an operand is missing after ">>>"', code="syntax-error", detail=detail)
        operands = [self.bind(part) for part in parts]
        return bitwise(name, *operands) if len(name) == 1 else apply(name, operands)

    def _path(self, node: exp.Expr) -> Bound:
        raise no_path(node, self.bind(node.this))

    def _bits_turned(self, node: exp.Expr) -> Bound:
        return bitwise("~", self.bind(node.this))

    def _extract(self, node: exp.Expr) -> Bound:
        return field_of(node.name, self.bind(node.expression))

    def _lambda(self, name: str, *arguments: exp.Expr) -> Bound:
        *collections, function = arguments
        if not isinstance(function, exp.Lambda):
            raise unsupported(f'"{name}" without a lambda at the end', "The last argument must be the lambda.")
        variables = len(function.expressions)
        bound = [self.bind(collection) for collection in collections]
        elements = elements_of(name, bound, variables)
        element, parts = variables_of(elements, len(self._variables), variables)
        return lambda_call(name, elements, element, self._body(function, parts), bound[0])

    def _reduce(self, arguments: Sequence[exp.Expr]) -> Bound:
        lambdas = [argument for argument in arguments[2:] if isinstance(argument, exp.Lambda)]
        if not 1 <= len(lambdas) == len(arguments) - 2 <= 2:
            detail = "The second lambda takes the accumulated value."
            raise mismatch("reduce takes an ARRAY, a start, and one lambda or two", detail)
        array, start = (self.bind(argument) for argument in arguments[:2])
        columns = reduction_columns(array, start, len(self._variables))
        made = reduction(array, start, columns, self._body(lambdas[0], columns))
        return made if len(lambdas) == 1 else self._body(lambdas[1], [made])

    def _body(self, function: exp.Lambda, parts: Sequence[Bound]) -> Bound:
        """Bind the body of a lambda, with `parts` in place of its variables, in order."""
        names = [variable.name.casefold() for variable in function.expressions]
        if len(names) != len(parts) or len({*names, *self._variables}) < len(names) + len(self._variables):
            raise unsupported(f"the variable list ({', '.join(names)})", "Each variable needs a name of its own.")
        self._variables.update(zip(names, parts, strict=True))
        try:
            return self.bind(function.this)
        finally:
            for name in names:
                del self._variables[name]

    METHODS: ClassVar[dict[type[exp.Expr], Callable[..., Bound]]] = {
        **PredicateBinder.METHODS,
        exp.Column: _column,
        exp.Identifier: _variable,
        exp.Dot: _dot,
        exp.Bracket: _bracket,
        exp.Literal: _literal,
        exp.Boolean: _boolean,
        exp.HexString: _binary,
        exp.Null: _null,
        exp.Neg: _negative,
        exp.Sqrt: _positive,  # `respelled_tokens` rewrites unary plus to this node
        exp.DPipe: _concat,
        exp.Concat: _side_by_side,
        exp.Case: _case,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        **dict.fromkeys(SPELLED, _spelled),
        **dict.fromkeys(_BITWISE, _bitwise),
        **dict.fromkeys(PATHS, _path),
        exp.BitwiseNot: _bits_turned,
        exp.Extract: _extract,
        exp.Anonymous: _function,
    }
    """The method that binds each kind of node, except arithmetic."""


def _interval(literal: exp.Expr, *units: exp.Expr) -> Bound:
    """Return the interval of a literal that `respelled_tokens` has rewritten to a call."""
    sign = "-" if isinstance(literal, exp.Neg) else ""
    number = literal.this if sign else literal
    first, last = (*(unit.name for unit in units), "", "")[:2]
    position = number.meta.get("start")
    return interval_literal(sign + number.this, is_string=number.is_string, position=position, first=first, last=last)


def _qualifier(node: exp.Column) -> str:
    """Return the qualifier: the text before a column's last dot."""
    return ".".join(part.name for part in node.parts[:-1])
