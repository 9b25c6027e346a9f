"""Binding of an aggregate query: keys of GROUP BY, aggregates, and the expressions of SELECT and HAVING over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlglot import exp

from grouping.binding.bind import Binder
from grouping.binding.bound import Bound, Constant, Term, without_positions
from grouping.binding.constants import lift, settle
from grouping.binding.operands import boolean
from grouping.binding.scope import Scope
from grouping.compiler.aggregate_call import AggregateCall, aggregate_call, aggregate_name
from grouping.compiler.aggregate_texts import LiftedKey, aggregate_text, in_parentheses, lifted_key, marked
from grouping.compiler.normalize import normalize, normalize_value
from grouping.compiler.order import commuted, order
from grouping.functions.functions import AGGREGATES, aggregate_type
from grouping.functions.params import PARAMS
from grouping.model.errors import InputError
from grouping.model.expression import Column, Computed, Expression, Value, Variable, stored_reference
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from grouping.model.wording import are, counted
from grouping.plan.aggregate import AggregateKey, AggregateValue
from grouping.plan.expression_text import AGGREGATE, all_of, render_part
from grouping.statements.select_text import FUNCTION_MARK

__all__ = ["BoundKey", "AggregateBinder", "bind_keys", "has_aggregates"]

_CONSTANTS = {
    "PERCENTAGE": (0, 1, "a number from 0 to 1"),
    "ACCURACY": (1, 2**31 - 1, "a whole number above 0"),
}
"""Kind of a parameter → its least and greatest constant, and this range in words."""
_SETS = frozenset(FUNCTION_MARK + name for name in ("rollup", "cube"))
_PLACE = "Aggregates are allowed in the SELECT list and in HAVING, but not within other aggregates."


def has_aggregates(tree: exp.Select) -> bool:
    """Tell whether a SELECT aggregates: by GROUP BY, HAVING, or aggregates in the SELECT list."""
    if tree.args.get("group") or tree.args.get("having"):
        return True
    return any(
        aggregate_name(node) is not None and not isinstance(node.parent, exp.Window)
        for item in tree.expressions
        for node in item.walk(prune=lambda below: isinstance(below, exp.Subquery | exp.Window))
    )


class BoundKey(NamedTuple):
    """A key of GROUP BY, and its bound tree, whose constants are not lifted yet."""

    key: AggregateKey
    bound: Bound


def bind_keys(tree: exp.Select, binder: Binder) -> tuple[BoundKey, ...]:
    """Return the keys of GROUP BY in canonical order, without repetitions.

    As in Spark, a number n means the n-th item of the SELECT list. An alias means its item if no column has this name.

    Raises:
        InputError: ``unsupported-query`` for ROLLUP, CUBE and GROUPING SETS, or the refusal of an expression.
    """
    group = tree.args.get("group")
    if group is None:
        return ()
    for name, value in group.args.items():
        if value and name != "expressions":
            raise unsupported(f"GROUP BY {name.upper()}", "GROUP BY takes expressions.", "Write the keys out.")
    bound = (_key(node, tree.expressions, binder) for node in group.expressions)
    keys = {each.key.stored: each for each in bound}
    return tuple(keys[name] for name in sorted(keys, key=lambda name: (_shape(keys[name]), name)))


def _shape(key: BoundKey) -> str:
    """Return a key's name, with placeholders in the places of its constants."""
    (lifted,), _, constants = lift((key.bound,))
    return stored_reference(Computed(in_parentheses(lifted))) if constants else key.key.stored


def _key(node: exp.Expr, items: Sequence[exp.Expr], binder: Binder) -> BoundKey:
    if isinstance(node, exp.GroupingSets) or (isinstance(node, exp.Anonymous) and node.name.casefold() in _SETS):
        raise unsupported("GROUP BY with sets of keys", "GROUP BY takes expressions.", "Write the keys out.")
    bound = without_positions(normalize_value(binder.bind(_meant(node, items, binder))))
    if isinstance(bound, Constant):
        raise unsupported("a constant in GROUP BY", "A constant forms no groups.", "Leave it out.")
    if not bound.type.is_ordered:
        detail = f"Values of type {bound.type} cannot be compared for equality."
        raise unsupported(f"GROUP BY of {bound.type}", detail, "Group by a field or an element.")
    ((canonical,), _) = order((bound,))
    expression = settle(canonical)
    own = expression.reference if isinstance(expression, Column) else Computed(in_parentheses(expression))
    return BoundKey(AggregateKey(stored_reference(own), expression), canonical)


def _meant(node: exp.Expr, items: Sequence[exp.Expr], binder: Binder) -> exp.Expr:
    """Return the expression that a number or an alias in GROUP BY means; any other node is returned unchanged."""
    meant = node
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this) if node.this.isdecimal() else 0
        if not 1 <= number <= len(items):
            raise unsupported(
                f"GROUP BY {node.this}", f"The SELECT list has {counted(len(items), 'item')}.", "Name the key."
            )
        meant = items[number - 1].unalias()
    elif isinstance(node, exp.Column) and not node.table:
        named = [
            item for item in items if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold()
        ]
        if named and not any(source.find(node.name.casefold()) for source in binder.scope.sources):
            meant = named[0].this
    if aggregate_call(meant) is not None:
        raise unsupported("an aggregate in GROUP BY", _PLACE)
    return meant


class AggregateBinder(Binder):
    """Binds the SELECT list and HAVING of an aggregate query."""

    def __init__(self, scope: Scope, keys: Sequence[AggregateKey]) -> None:
        super().__init__(scope)
        self._plain = Binder(scope)
        self._keys = {commuted(key.expression): key for key in keys}
        self._aliases: Mapping[str, Bound] = {}
        self._shadowed: frozenset[str] = frozenset()
        """The aliases that are also names of columns."""
        self.aggregates: dict[str, AggregateValue] = {}
        """The aggregates by the names of their columns, in the order of first use."""
        self._lifted: dict[str, Term] = {}
        """Column of an aggregate with constants → the aggregate's term for HAVING, with the constants as operands."""

    def having(self, node: exp.Expr, aliases: Mapping[str, Bound]) -> Bound:
        """Return the condition of HAVING, which may name items of the SELECT list by their aliases.

        As in Spark, if a name is both a column and an alias, it means the column within an aggregate or a key, and the
        alias in all other places.
        """
        self._aliases = aliases
        self._shadowed = frozenset(
            name for name in aliases if any(source.find(name) is not None for source in self.scope.sources)
        )
        return self._with_constants(self.finished(boolean(self.bind(node), "HAVING")))

    def _with_constants(self, bound: Bound) -> Bound:
        """Return HAVING in which the constants of each aggregate are operands, for `lift` to move them into the row."""
        if isinstance(bound, Term):
            return Term(bound.op, tuple(map(self._with_constants, bound.args)), bound.type)
        return self._lifted.get(bound.stored, bound) if isinstance(bound, Column) else bound

    @property
    def lifted(self) -> dict[LiftedKey, AggregateValue]:
        """The aggregates with constants, by their `LiftedKey`."""
        return {lifted_key(term): self.aggregates[name] for name, term in self._lifted.items()}

    def _bind(self, node: exp.Expr) -> Bound:
        if (called := aggregate_call(node)) is not None:
            return self._aggregate(called)
        if self._shadowed and (key := self._key_of(node)) is not None:
            return key.column
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in self._aliases:
            return self._aliases[node.name.casefold()]
        return super()._bind(node)

    def _key_of(self, node: exp.Expr) -> AggregateKey | None:
        """Return the key that equals an expression of HAVING in which all names are read as columns, not as aliases.

        The result is None if there is no such key, or if no name in the expression has both meanings.
        """
        names = {below.name.casefold() for below in node.find_all(exp.Column) if not below.table}
        if names.isdisjoint(self._shadowed):
            return None
        try:
            return self._key(self._plain.bind(node))
        except InputError:  # the expression has an aggregate, or is valid only with the types of the aliases
            return None

    def _key(self, bound: Bound) -> AggregateKey | None:
        canonical = _canonical(bound) if self._keys else None
        return self._keys.get(commuted(canonical)) if canonical is not None else None

    def _aggregate(self, called: AggregateCall) -> Column:
        for argument in (*called.arguments, *([called.condition] if called.condition is not None else [])):
            if any(aggregate_name(below) is not None for below in argument.walk()):
                raise unsupported("an aggregate within an aggregate", _PLACE)
        condition = None if called.condition is None else boolean(self._plain.bind(called.condition), "FILTER")
        wanted = tuple(map(without_positions, normalize(condition)))
        args = [without_positions(self._plain.bind(argument)) for argument in called.arguments]
        whole = called.whole
        if called.name == "count" and args and not called.distinct:
            wanted = (*wanted, *(_not_null(each) for each in args if not each.type.is_ordered))
            # A constant is never NULL: count(1) is count(*).
            args = [each for each in args if each.type.is_ordered and not _is_non_null_constant(each)]
            whole = not args
        bound = _arguments(called.name, args, whole=whole)
        if called.ignore_nulls:
            wanted = (*wanted, _not_null(bound[0]))
        return self._noted(called.name, bound, wanted, distinct=called.distinct)

    def _noted(self, name: str, args: Sequence[Bound], wanted: Sequence[Bound], *, distinct: bool) -> Column:
        sql_type = aggregate_type(name, tuple(argument.type for argument in args))
        canonical = [order((normalize_value(argument),))[0][0] for argument in args]
        conjuncts = order(wanted)[0]
        settled, condition = tuple(map(settle, canonical)), all_of(tuple(map(settle, conjuncts)))
        text = aggregate_text(name, settled, condition, distinct=distinct)
        aggregate = AggregateValue(stored_reference(Computed(text)), name, settled, str(sql_type), distinct, condition)
        self.aggregates.setdefault(aggregate.stored, aggregate)
        lifted, _, constants = lift((*canonical, *conjuncts))
        if constants:
            own, wanted_ones = lifted[: len(args)], lifted[len(args) :]
            condition = all_of(tuple(map(marked, wanted_ones)))
            shape_text = aggregate_text(name, list(map(marked, own)), condition, distinct=distinct)
            self._lifted[aggregate.stored] = Term(AGGREGATE, (Value(shape_text, str(STRING)), *constants), sql_type)
        return aggregate.column

    def finished(self, bound: Bound) -> Bound:
        """Return an expression over keys and aggregates; a part that equals a key is replaced by the key's column.

        Raises:
            InputError: ``unsupported-query`` for a column that is no key.
        """
        if isinstance(bound, Constant | Value) or (isinstance(bound, Column) and bound.stored in self.aggregates):
            return bound
        if (key := self._key(bound)) is not None:
            return key.column
        if isinstance(bound, Term):
            return Term(bound.op, tuple(map(self.finished, bound.args)), bound.type)
        if isinstance(bound.reference, Computed | Variable):
            return bound  # an alias has been replaced by the column of a key; a variable is of a lambda
        shown = render_part(bound)
        raise unsupported(
            f'column "{shown}" outside GROUP BY and aggregates',
            f'"{shown}" is neither a key of GROUP BY nor within an aggregate.',
            f"Add it to GROUP BY, or write first({shown}).",
        )


def _canonical(bound: Bound) -> Expression | None:
    """Return an expression in the canonical form of keys; None for an expression that cannot be a key."""
    try:
        return settle(order((normalize_value(bound),))[0][0])
    except InputError:
        return None


def _not_null(bound: Bound) -> Bound:
    return Term("not", (Term("is_null", (bound,), BOOLEAN),), BOOLEAN)


def _is_non_null_constant(bound: Bound) -> bool:
    return isinstance(bound, Constant) and bound.value is not None


def _arguments(name: str, args: Sequence[Bound], *, whole: bool) -> Sequence[Bound]:
    """Return arguments converted to the parameters of an aggregate; ``count(*)`` has no arguments."""
    function = AGGREGATES[name]
    wanted = len(function.params)
    if whole:
        return args
    if len(args) < wanted - function.optional or (len(args) > wanted and not function.variadic):
        takes = "one argument or more" if function.variadic else counted(wanted - function.optional, "argument")
        raise mismatch(f'aggregate "{name}" takes {takes}', f"There {are(len(args))} {len(args)}.")
    kinds = function.params + function.params[-1:] * (len(args) - wanted)
    return [_fit(argument, kind, name) for argument, kind in zip(args, kinds, strict=False)]


def _fit(argument: Bound, kind: str, name: str) -> Bound:
    sql_type = argument.type
    if kind in _CONSTANTS:
        least, most, what = _CONSTANTS[kind]
        value = argument.value if isinstance(argument, Constant) and sql_type.is_number else None
        kinds = int if kind == "ACCURACY" else int | float | Decimal
        if not isinstance(value, kinds) or not least <= value <= most:
            hint = "Write a percentile for each percentage." if kind == "PERCENTAGE" else None
            raise mismatch(
                f'the {kind.lower()} of "{name}" is not a constant in its range',
                f"The {kind.lower()} must be {what}.",
                hint,
            )
        return argument
    fits = {
        "MEASURE": sql_type.is_number or sql_type in (DATE, TIMESTAMP),
        "NUMBER": sql_type.is_number,
        "BOOLEAN": sql_type == BOOLEAN,
        "ORDERED": sql_type.is_ordered,
        "ANY": sql_type.is_ordered,
    }
    if isinstance(argument, Constant) and argument.value is None and kind in ("NUMBER", "BOOLEAN"):
        return Constant(None, DOUBLE if kind == "NUMBER" else BOOLEAN)
    if not fits[kind] and (kind == "ANY" or (kind == "ORDERED" and sql_type.name in ("STRUCT", "ARRAY"))):
        raise unsupported(
            f'an argument of "{name}" of type {sql_type}',
            "STRUCT, ARRAY and MAP values cannot be aggregated.",
            "Name a field or an element.",
        )
    if not fits[kind]:
        raise mismatch(
            f'an argument of "{name}" is {sql_type}', f"The argument must be {PARAMS[kind].phrase or kind}.", "CAST it."
        )
    return argument
