"""Bound trees: the form of a query between the compiler's stages `plan` and `lift`.

Unlike an `Expression`, a bound tree holds constants, each with its text, so that the fast path can read the literals of
another text into the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from grouping.model.expression import Column, Value
from grouping.model.group import ConstantValue
from grouping.model.refusals import too_large
from grouping.model.sql_type import STRING, SqlType

__all__ = [
    "CAST_NULL",
    "Bound",
    "Constant",
    "Leaf",
    "Term",
    "check_size",
    "is_null",
    "is_text_null",
    "nodes",
    "pinned",
    "with_leaves",
    "without_positions",
]

CAST_NULL = "CAST"
"""The `text` of a constant NULL that has its type from a CAST."""
MAX_COPIED_NODES = 20_000
"""The largest number of nodes that IN may add to a predicate by repeating an operand.

Without a limit, nested INs would grow exponentially.
"""


class Constant(msgspec.Struct, frozen=True):
    """A constant, typed by its context."""

    value: ConstantValue
    type: SqlType
    """Spark's type of the literal. After coercion to the type of the other operand, the type is a column's type,
    `NUMERIC` or ``SET<…>``, as in a `ConstantRow`."""
    reader: str | None = None
    """The name of the reader of `text` (`literals.READERS`); None for TRUE, FALSE, NULL and sets."""
    text: str = ""
    """The literal's text; the text of a number includes the sign."""
    position: int | None = None
    """The position of the literal in the SELECT's text. None for a constant without a literal, and for a constant that
    the fast path does not read from another text (`without_positions`).
    """
    members: tuple[Constant, ...] = ()
    """The constants from which a set was made."""
    is_pinned: bool = False
    """Whether the plan depends on this literal, so that the fast path must not exchange it for another."""
    merged: tuple[int, ...] = ()
    """The positions of equal literals that were merged into this constant. Different literals in these positions would
    make a set instead, so the fast path must not exchange them."""


class Term(msgspec.Struct, frozen=True):
    """An operator or function over bound arguments; operators as in `expression.Call`."""

    op: str
    args: tuple[Bound, ...]
    type: SqlType


Leaf = Column | Constant | Value
"""A `Value`, such as a field's name, a MAP's key or a path, stays in the signature and is never lifted."""
Bound = Leaf | Term


def nodes(bound: Bound) -> Iterator[Bound]:
    """Yield the tree's nodes, outermost first."""
    stack = [bound]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Term):
            stack.extend(reversed(node.args))


class TypedLiteral(Term, frozen=True):
    """A whole literal with a type suffix, such as ``5L``, bound as a CAST.

    In arithmetic with a DECIMAL, such a literal has the precision of its digits, not the precision of its type.
    """


def with_leaves(bound: Bound, change: Callable[[Leaf], Leaf]) -> Bound:
    """Return the tree with each leaf, from left to right, replaced by the result of `change`."""
    if isinstance(bound, Term):
        return type(bound)(bound.op, tuple([with_leaves(argument, change) for argument in bound.args]), bound.type)
    return change(bound)


def pinned(constant: Constant) -> Constant:
    """Return a constant that is pinned: the fast path never exchanges its literal."""
    return msgspec.structs.replace(constant, is_pinned=True)


def without_positions(bound: Bound) -> Bound:
    """Return a tree whose constants have no positions in the text, so that the fast path does not exchange them.

    The function is used for trees that are in several places of the plan, that come from a view's text, or whose
    constants are not lifted.
    """
    return with_leaves(bound, _without_position)


def _without_position(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, Constant):
        return leaf
    members = tuple(msgspec.structs.replace(member, position=None) for member in leaf.members)
    return msgspec.structs.replace(leaf, position=None, members=members, merged=())


def check_size(bound: Bound, copies: int, spent: int = 0) -> int:
    """Return `spent` plus the number of nodes in `copies` copies of a tree.

    Raises:
        InputError: ``unsupported-query``: the result would exceed `MAX_COPIED_NODES`.
    """
    for _ in nodes(bound):
        spent += copies
        if spent > MAX_COPIED_NODES:
            raise too_large("its operands are repeated too often")
    return spent


def is_null(operand: Bound) -> bool:
    """Return whether an operand is the constant NULL."""
    return isinstance(operand, Constant) and operand.value is None


def is_text_null(operand: Bound) -> bool:
    """Return whether an operand is NULL CAST to STRING, in contrast to an untyped NULL."""
    return operand == Constant(None, STRING, text=CAST_NULL)
