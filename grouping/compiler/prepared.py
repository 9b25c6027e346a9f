"""The fast path: a CREATE CQ of a shape that was seen before is compiled by reading its literals only.

The template is the text with its string and number literals, and the CQ's name, cut out (cq_text.py). What the first
text of a template was compiled to tells which literal goes into which slot, and how it is read there. Whatever could
come out differently from the whole path (a literal that is no lifted constant, a set that shrinks to one value, a
number of another type where types matter, anything refused) takes the whole path instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from grouping.binding.bound import Bound, Constant, Leaf, Term, nodes, with_leaves
from grouping.binding.constants import as_set, lift
from grouping.compiler.compiler import compile_draft, finish
from grouping.compiler.draft import Draft
from grouping.compiler.signature import AGGREGATE, order
from grouping.compiler.statement_places import in_statement
from grouping.functions.functions import common_type
from grouping.functions.text_size import check_growth, grows
from grouping.model.catalog import Catalog, Stream
from grouping.model.errors import InputError
from grouping.model.expression import Column, Expression
from grouping.model.group import CompiledQuery, ConstantRow, ConstantValue, GroupPlan, SelectList
from grouping.model.query import CreateCq
from grouping.model.sql_type import SqlType, set_of
from grouping.statements.command import parse
from grouping.statements.cq_text import LITERAL, CqText
from grouping.values.literals import OF_STRINGS, READERS

__all__ = ["Preparer"]

_OPAQUE = re.compile(r"""["`\[{$#]|--|/\*""")
"""Marks that may hide a quote from the scan for literals: a text with one is never a template."""
_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "in"))
_SHAPES = 10_000
_VARIANTS = 100

Typed = tuple[SqlType, ConstantValue]


class _Fallback(Exception):  # noqa: N818 - no error: it never leaves this module
    """The whole path must be taken."""


class _Place(NamedTuple):
    """Where a constant comes from: a literal, read in some way, or always the same."""

    ordinal: int
    """Which literal of the text, the first being the name; -1 for a constant that is always the same."""
    read_text: Callable[[str], Typed]
    """Of its kind of literal."""
    of_string: bool
    sign: str
    literal_type: SqlType | None
    """The type that Spark gives the literal must be this; None where it does not matter."""
    beside: SqlType | None
    """The type that the constant must have one in common with; None where any number will do."""
    fixed: Typed

    def read(self, literals: Sequence[str]) -> Typed:
        """Return the constant's type and value in another text."""
        ordinal, read_text, of_string, sign, literal_type, beside, fixed = self
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
        if beside and typed[0] != fixed[0] and common_type((beside, typed[0])) is None:
            raise _Fallback
        return typed


_ESCAPED = ("escaped", "escaped ilike")
"""The readers of patterns that another literal, of ESCAPE, has changed."""


class _Variant(NamedTuple):
    """The clauses and the SELECT list, which depend on literals that are no constants of the predicate."""

    command: CreateCq
    select: SelectList


class _Shape(NamedTuple):
    """A template, prepared."""

    stream: Stream
    query: CompiledQuery
    places: tuple[tuple[_Place, ...] | _Place, ...]
    """By slot; several for a set."""
    kept: tuple[int, ...]
    """The literals that must be those of a variant."""
    variants: dict[tuple[str, ...], _Variant]
    ordered: tuple[tuple[Bound, ...], ...]
    """The conjuncts of WHERE and of HAVING when constants decide their order, else empty."""
    grows: bool
    """Whether constants decide how long a text becomes."""


class Preparer:
    """Compiles CREATE CQ statements, quickly where the shape is known; for one thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def create(self, text: CqText) -> tuple[CreateCq, CompiledQuery]:
        """Return the command that a CREATE CQ is, and its SELECT, which is empty there, compiled.

        Raises:
            InputError: As `command.parse` and `compiler.compile_select` do; ``unknown-statement`` for another one.
        """
        if not text.is_cut:
            command, draft = self._compile(str(text))
            return _without_select(command), finish(draft)
        shape = self._shapes.get(text.template.pieces)
        if shape is not None:
            # A stream that was dropped, or made anew, takes its shapes with it.
            if self._catalog.find(shape.stream.name) is shape.stream:
                try:
                    return _read(shape, text)
                except (_Fallback, InputError):
                    pass
            else:
                del self._shapes[text.template.pieces]
        return self._prepare(text)

    def _compile(self, text: str) -> tuple[CreateCq, Draft]:
        command = parse(text)
        if not isinstance(command, CreateCq):
            raise InputError("this is no CREATE CQ", code="unknown-statement", detail="A CREATE CQ is wanted here.")
        try:
            return command, compile_draft(command.select, self._catalog)
        except InputError as error:
            raise in_statement(error, text, command.select) from None

    def _prepare(self, text: CqText) -> tuple[CreateCq, CompiledQuery]:
        """Take the whole path, and keep what it made of the template."""
        whole, template = str(text), text.template.pieces
        parsed, draft = self._compile(whole)
        command, query = _without_select(parsed), finish(draft)
        begin = len(template[0]) + len(text.literals[0])
        start = whole.find(parsed.select, begin)
        # The quote that may follow the name is none to hide behind.
        if start < 0 or any(_OPAQUE.search(piece) for piece in (template[1].removeprefix('"'), *template[2:])):
            return command, query
        shape = self._shapes.get(template)
        if shape is None:
            shape = _shape(draft, query, _positions(whole, begin, start))
        elif len(shape.variants) >= _VARIANTS:
            shape.variants.clear()
        kept = tuple(text.literals[ordinal] for ordinal in shape.kept)
        shape.variants[kept] = _Variant(command, query.select)
        try:
            same = _read(shape, text) == (command, query)
        except (_Fallback, InputError):
            same = False
        if not same:
            self._shapes.pop(template, None)  # the next text of this template may suit it better
        elif template not in self._shapes:
            if len(self._shapes) >= _SHAPES:
                del self._shapes[next(iter(self._shapes))]
            self._shapes[template] = shape
        return command, query


def _without_select(command: CreateCq) -> CreateCq:
    return msgspec.structs.replace(command, select="")


def _positions(text: str, offset: int, start: int) -> dict[int, int]:
    """Return which literal begins at each position of the SELECT; the first of all is the name."""
    return {match.start() - start: i for i, match in enumerate(LITERAL.finditer(text, offset), 1)}


def _shape(draft: Draft, query: CompiledQuery, positions: dict[int, int]) -> _Shape:
    loose = _compared((*draft.conjuncts, *draft.having))
    places: list[tuple[_Place, ...] | _Place] = []
    for constant in draft.constants:
        beside = loose.get(id(constant))
        if constant.members:
            places.append(tuple(_place(member, positions, beside) for member in constant.members))
        else:
            places.append(_place(constant, positions, beside))
    used = {place.ordinal for slot in places for place in (slot if isinstance(slot[0], _Place) else (slot,))}
    used -= {ordinal for leaf in _within_groups(draft) if (ordinal := positions.get(leaf.position or 0)) is not None}
    kept = tuple(ordinal for ordinal in positions.values() if ordinal not in used)
    ordered = (draft.conjuncts, draft.having) if draft.ties else ()
    return _Shape(draft.stream, query, tuple(places), kept, {}, ordered, grows(_predicates(query.plan)))


def _within_groups(draft: Draft) -> Iterator[Constant]:
    """Yield the constants that decide, beside the row, what groups are: those of keys, and within aggregates."""
    terms = [node for conjunct in draft.having for node in nodes(conjunct) if isinstance(node, Term)]
    own_keys = draft.groups.bound_keys if draft.groups else ()
    for bound in (*own_keys, *(term for term in terms if term.op == AGGREGATE)):
        for leaf in nodes(bound):
            if isinstance(leaf, Constant):
                yield from leaf.members or (leaf,)


def _predicates(plan: GroupPlan) -> tuple[Expression, ...]:
    return plan.conjuncts if plan.kept is None else (*plan.conjuncts, *plan.kept.having)


def _compared(conjuncts: Sequence[Bound]) -> dict[int, SqlType]:
    """Return the type of what is compared with each constant, by its id: how it is read is that one's choice."""
    found = {}
    stack = list(conjuncts)
    while stack:
        node = stack.pop()
        match node:
            case Term(op, (Column() | Term() as other, Constant() as constant)) if op in _COMPARING:
                found[id(constant)] = other.type
        if isinstance(node, Term):
            stack += node.args
    return found


def _place(constant: Constant, positions: dict[int, int], beside: SqlType | None) -> _Place:
    fixed = (constant.type, constant.value)
    if constant.reader is None or constant.reader in _ESCAPED or constant.position not in positions:
        return _Place(-1, READERS["literal"], False, "", None, None, fixed)
    of_string = constant.reader in OF_STRINGS
    sign = "-" if not of_string and constant.text.startswith("-") else ""
    sql_type = READERS["literal"](constant.text)[0] if beside is None and not of_string else None
    if beside is None or constant.reader != "decimal":  # all other ways of reading suit whatever stands beside
        beside = None
    return _Place(positions[constant.position], READERS[constant.reader], of_string, sign, sql_type, beside, fixed)


def _read(shape: _Shape, text: CqText) -> tuple[CreateCq, CompiledQuery]:
    """Return what the whole path would.

    Raises:
        _Fallback: Where that is not sure.
        InputError: Where a literal cannot be read, or makes a text too long; the whole path says it best.
    """
    literals = text.literals
    variant = shape.variants.get(tuple([literals[ordinal] for ordinal in shape.kept]))
    if variant is None:
        raise _Fallback
    types: list[SqlType] = []
    values: list[Any] = []
    for place in shape.places:
        if type(place) is _Place:
            sql_type, value = place.read(literals)
        else:
            element, value = as_set(*zip(*[member.read(literals) for member in place], strict=True))  # type: ignore[union-attr]
            if len(value) == 1:
                raise _Fallback
            sql_type = set_of(element)
        types.append(sql_type)
        values.append(value)
    row = _reordered(shape.ordered, types, values) if shape.ordered else ConstantRow(tuple(types), tuple(values))
    if shape.grows:
        check_growth(_predicates(shape.query.plan), row)
    like = variant.command
    command = CreateCq(literals[0], "", like.or_replace, like.publish, like.trigger, like.start, like.expire)
    return command, CompiledQuery(shape.query.plan, row, variant.select, shape.query.views)


def _reordered(predicates: Sequence[Sequence[Bound]], types: list[SqlType], values: list[Any]) -> ConstantRow:
    """Return the row of conjuncts with these constants, put in canonical order again."""
    constants = iter([Constant(value, sql_type) for sql_type, value in zip(types, values, strict=True)])

    def replace(leaf: Leaf) -> Leaf:
        return next(constants) if isinstance(leaf, Constant) else leaf

    again = [order([with_leaves(conjunct, replace) for conjunct in conjuncts])[0] for conjuncts in predicates]
    return lift(conjunct for conjuncts in again for conjunct in conjuncts)[1]
