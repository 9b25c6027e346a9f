"""The shape of a template: for each slot, the literal of the text with the slot's constant, and the literal's reader.

A shape cannot compile a text for which the full compilation could give another result. This is so if a literal that is
not lifted has changed, if a set has only one value, if a number has another type and the plan depends on this type, or
if the text would be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from grouping.binding.bound import Bound, Constant, Leaf, Term, nodes, with_leaves
from grouping.binding.constants import as_set, lift
from grouping.compiler.draft import Draft
from grouping.compiler.frames.until import check_bounds
from grouping.compiler.order import order
from grouping.functions.results import common_type
from grouping.functions.text_size import check_growth, grows
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.expression import Column, Expression
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.query import CreateCq
from grouping.model.sql_type import SqlType, set_of
from grouping.plan.group import CompiledQuery, GroupPlan, SelectList
from grouping.statements.cq_text import LITERAL, CqText
from grouping.values.literals import OF_STRINGS, READERS

__all__ = ["CompiledText", "TemplateShape", "has_fixed_literals"]

_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"))
_VARIANTS = 100
"""The largest number of variants of a shape; with more, all are forgotten."""

Typed = tuple[SqlType, ConstantValue]


class CompiledText(NamedTuple):
    """A text and its full compilation."""

    text: CqText
    start: int
    """The position at which the SELECT begins in the text."""
    draft: Draft
    command: CreateCq
    """The command without its SELECT."""
    query: CompiledQuery


class _Fallback(Exception):  # noqa: N818 - no error: it never leaves this module
    """The full compilation may have another result, because a literal differs in more than its value."""


class _ConstantSource(NamedTuple):
    """The source of a slot's constant: a literal of the text with its reader, or a fixed value."""

    ordinal: int
    """The number of the literal in the text, counted from 1 (0 is the CQ's name); -1 for a fixed value."""
    read_text: Callable[[str], Typed]
    """Returns the type and value of the literal's text."""
    of_string: bool
    """Whether the literal must be a string."""
    sign: str
    """``-`` for a negated number, since the literal does not include the sign."""
    literal_type: SqlType | None
    """The type that the literal by itself must have, because the plan depends on it; None if any type will do."""
    beside: SqlType | None
    """The type of the other operand, if the constant and that operand must have a common type; None if any number will
    do."""
    fixed: Typed
    """The constant in the first text."""
    is_typed: bool = False
    """Whether the constant must have the type of `fixed`: the constant is in an IN that compares all operands as one
    type."""
    pinned: frozenset[int] = frozenset()
    """For a fixed value, the numbers of its literals. These literals must be equal in all texts of a variant."""

    def read(self, literals: Sequence[str]) -> Typed:
        """Return the constant's type and value for the literals of another text."""
        ordinal, read_text, of_string, sign, literal_type, beside, fixed, is_typed, _ = self
        if ordinal < 0:
            return fixed
        text = literals[ordinal]
        if (text[0] == "'") != of_string:
            raise _Fallback
        if of_string:
            text = text[1:-1]
            return read_text(text.replace("''", "'") if "'" in text else text)
        if sign:
            text = sign + text
        if literal_type and READERS["literal"](text)[0] != literal_type:
            raise _Fallback
        typed = read_text(text)
        if typed[0] != fixed[0] and (is_typed or (beside and common_type((beside, typed[0])) is None)):
            raise _Fallback
        return typed


_ESCAPED = ("escaped", "escaped ilike")
"""Readers of LIKE patterns with ESCAPE, whose value depends on a second literal."""


class _Variant(NamedTuple):
    """The command and the SELECT list of the texts that have the same literals in all places that are not lifted."""

    command: CreateCq
    select: SelectList


class TemplateShape(NamedTuple):
    """The parts of the compilation that a template's texts share."""

    stream: Stream
    query: CompiledQuery
    places: tuple[tuple[_ConstantSource, ...] | _ConstantSource, ...]
    """The source of the constant of each slot; for a set, the sources of its members."""
    kept: tuple[int, ...]
    """The numbers of the literals that are not lifted. All texts of a variant have the same literals there."""
    variants: dict[tuple[str, ...], _Variant]
    """The texts of the literals in `kept` → the variant of the texts with these literals."""
    ordered: tuple[tuple[Bound, ...], ...]
    """The conjuncts of WHERE, the keys, and the conjuncts of HAVING and UNTIL; empty if constants decide no order."""
    grows: bool
    """Whether each row of constants must be checked (`text_size.check_growth`), since a computed text may be long."""
    named: frozenset[str]
    """The folded names of the sources in the text."""

    @classmethod
    def of(cls, compiled: CompiledText) -> TemplateShape:
        """Return the shape of a template, made from one text; use it only if `suits` is True for this text."""
        text, start, draft, _, query = compiled
        positions = _positions(str(text), text.name_end, start)
        loose = _compared((*draft.conjuncts, *draft.having, *draft.until))
        places: list[tuple[_ConstantSource, ...] | _ConstantSource] = []
        for constant in draft.constants:
            beside = loose.get(id(constant))
            if constant.members:
                places.append(tuple(_place(member, positions, beside) for member in constant.members))
            else:
                places.append(_place(constant, positions, beside))
        flat = [place for slot in places for place in (slot if isinstance(slot[0], _ConstantSource) else (slot,))]
        read = {place.ordinal for place in flat}.difference(*(place.pinned for place in flat))
        kept = tuple(ordinal for ordinal in positions.values() if ordinal not in read)
        ordered = _lifted_in_order(draft) if draft.ties else ()
        return cls(draft.stream, query, tuple(places), kept, {}, ordered, grows(_predicates(query.plan)), draft.named)

    def suits(self, compiled: CompiledText) -> bool:
        """Add the variant of a text; return whether the shape gives the same result as the full compilation."""
        if len(self.variants) >= _VARIANTS:
            self.variants.clear()
        kept = tuple(compiled.text.literals[ordinal] for ordinal in self.kept)
        self.variants[kept] = _Variant(compiled.command, compiled.query.select)
        return self.read(compiled.text) == (compiled.command, compiled.query)

    def read(self, text: CqText) -> tuple[CreateCq, CompiledQuery] | None:
        """Return the result of the full compilation of a text; None if the result is uncertain or a refusal."""
        literals = text.literals
        variant = self.variants.get(tuple([literals[ordinal] for ordinal in self.kept]))
        if variant is None:
            return None
        try:
            row = self._row(literals)
        except (_Fallback, InputError):
            return None  # the full compilation gives the refusal
        like = variant.command
        command = CreateCq(literals[0], "", like.or_replace, like.publish, like.trigger, like.start, like.expire)
        return command, msgspec.structs.replace(self.query, row=row, select=variant.select)

    def _row(self, literals: Sequence[str]) -> ConstantRow:
        """Return the constants of a text.

        Raises:
            _Fallback: The full compilation may give other constants.
            InputError: A literal cannot be read, or makes a computed text too long.
        """
        types: list[SqlType] = []
        values: list[Any] = []
        for place in self.places:
            if type(place) is _ConstantSource:
                sql_type, value = place.read(literals)
            else:
                element, value = as_set(*zip(*[member.read(literals) for member in place], strict=True))  # type: ignore[union-attr]
                if len(value) == 1:
                    raise _Fallback
                sql_type = set_of(element)
            types.append(sql_type)
            values.append(value)
        row = _reordered(self.ordered, types, values) if self.ordered else ConstantRow(tuple(types), tuple(values))
        if self.grows:
            check_growth(_predicates(self.query.plan), row)
        if self.query.plan.stay is not None:
            check_bounds(self.query.plan.stay, row)
        return row


def has_fixed_literals(compiled: CompiledText) -> bool:
    """Return whether literals of a text's SELECT influence the plan, the SELECT list or the order of the slots."""
    shape = TemplateShape.of(compiled)
    positions = _positions(str(compiled.text), compiled.text.name_end, compiled.start)
    select = {ordinal for position, ordinal in positions.items() if 0 <= position < len(compiled.draft.text)}
    return bool(shape.ordered) or not select.isdisjoint(shape.kept) or not shape.suits(compiled)


def _positions(text: str, offset: int, start: int) -> dict[int, int]:
    """Return the number of the literal at each position of the SELECT, counted from 1; number 0 is the CQ's name."""
    return {match.start() - start: i for i, match in enumerate(LITERAL.finditer(text, offset), 1)}


def _predicates(plan: GroupPlan) -> tuple[Expression, ...]:
    return plan.conjuncts if plan.kept is None else (*plan.conjuncts, *plan.kept.having)


def _compared(conjuncts: Sequence[Bound]) -> dict[int, SqlType]:
    """Return the type of the other operand of each constant in a comparison, by the constant's `id`.

    A constant that is also an operand elsewhere is left out, because the comparison alone does not decide its type. An
    example is the 5 of ``5 IN (a, 1, 2)``, which becomes ``a = 5 OR 5 IN (1, 2)``.
    """
    found = {}
    elsewhere: set[int] = set()
    stack = list(conjuncts)
    while stack:
        node = stack.pop()
        match node:
            case Term(op, (Column() | Term() as other, Constant() as constant)) if op in _COMPARING:
                found[id(constant)] = other.type
                stack.append(other)
            case Term():
                stack += node.args
            case Constant():
                elsewhere.add(id(node))
    return {constant: kind for constant, kind in found.items() if constant not in elsewhere}


def _place(constant: Constant, positions: dict[int, int], beside: SqlType | None) -> _ConstantSource:
    fixed = (constant.type, constant.value)
    ordinal = -1 if constant.position is None else positions.get(constant.position, -1)
    if ordinal < 0 or constant.is_pinned or constant.reader is None or constant.reader in _ESCAPED:
        pinned = frozenset((ordinal, *(positions.get(position, -1) for position in constant.merged)))
        return _ConstantSource(-1, READERS["literal"], False, "", None, None, fixed, pinned=pinned)
    of_string = constant.reader in OF_STRINGS
    sign = "-" if not of_string and constant.text.startswith("-") else ""
    sql_type = READERS["literal"](constant.text)[0] if beside is None and not of_string else None
    if constant.reader != "decimal":  # other readers do not depend on the other operand
        return _ConstantSource(ordinal, READERS[constant.reader], of_string, sign, sql_type, None, fixed)
    return _ConstantSource(ordinal, READERS["decimal"], of_string, sign, sql_type, beside, fixed, beside is None)


def _lifted_in_order(draft: Draft) -> tuple[tuple[Bound, ...], ...]:
    """Return the predicates and keys from which constants are lifted, in the order of the slots."""
    keys = draft.aggregation.bound_keys if draft.aggregation else ()
    return (draft.conjuncts, *((key,) for key in keys), draft.having, draft.until)


def _reordered(predicates: Sequence[Sequence[Bound]], types: list[SqlType], values: list[Any]) -> ConstantRow:
    """Return the row of constants in the order that the conjuncts have with these constants.

    Raises:
        _Fallback: Some constants have no slot, because they belong to the signature (`constants.lift`).
    """
    leaves = sum(isinstance(node, Constant) for conjuncts in predicates for each in conjuncts for node in nodes(each))
    if leaves != len(values):
        raise _Fallback
    constants = iter([Constant(value, sql_type) for sql_type, value in zip(types, values, strict=True)])

    def replace(leaf: Leaf) -> Leaf:
        return next(constants) if isinstance(leaf, Constant) else leaf

    again = [order([with_leaves(conjunct, replace) for conjunct in conjuncts])[0] for conjuncts in predicates]
    return lift(conjunct for conjuncts in again for conjunct in conjuncts)[1]
