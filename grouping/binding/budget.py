"""The work of a query beyond its text: repeated operands, sequences, views."""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.bound import Bound, Term
from grouping.model.refusals import too_large

__all__ = ["MOST_NODES", "MOST_VIEW_WORDS", "Budget"]

MOST_NODES = 20_000
"""Nodes of bound trees, and columns of views, that a SELECT may have beyond its own text."""
_PER_EXPRESSION = 8
"""Nodes that an expression of the text may become by itself: BETWEEN becomes two comparisons."""
MOST_VIEW_WORDS = 6_000
"""Words and signs of all views that a SELECT reads, directly or not: all are parsed anew with the SELECT."""


class Budget:
    """The budget of a query and its views; for use by a single thread.

    An operator may take an operand several times (``CASE a WHEN 1 … WHEN 2 …``). The trees share the operand, but
    whoever walks the trees does not, so 30 nested operators of this kind would be 2^30 nodes: they are counted without
    a walk.
    """

    def __init__(self, nodes: int = MOST_NODES, refuse: Callable[[str], Exception] = too_large) -> None:
        """Begin.

        Args:
            nodes: Most nodes beyond the text.
            refuse: Makes the refusal of a tree that is too large.
        """
        self._left = nodes
        self._made = nodes
        self._words = MOST_VIEW_WORDS
        self._refuse = refuse
        self._sizes: dict[int, tuple[int, Term]] = {}
        """By the address of each operator: the number of nodes of its tree, and the operator itself, to keep the
        address in use."""

    def make(self, nodes: int) -> None:
        """Count the nodes that a function of constants produces, at once: the whole tree is counted much later.

        Raises:
            InputError: ``unsupported-query``: all of them are too many.
        """
        self._made -= nodes
        if self._made < 0:
            raise self._refuse("the sequences within it have too many elements")

    def note(self, bound: Bound) -> None:
        """Take note of an expression of the text.

        Raises:
            InputError: ``unsupported-query``: its operands are repeated too often.
        """
        self._left += _PER_EXPRESSION
        if isinstance(bound, Term) and self._size(bound) > self._left:
            raise self._refuse("its operands are repeated too often")

    def note_small(self, expressions: int) -> None:
        """Take note of a number of expressions of the text without repetitions."""
        self._left += expressions * _PER_EXPRESSION

    def spend(self, bound: Bound) -> None:
        """Count the nodes of a whole expression, but for a plain column.

        Raises:
            InputError: ``unsupported-query``: all of them are too many.
        """
        self._left -= self._size(bound) - 1
        if self._left < 0:
            raise self._refuse("its operands are repeated too often")

    def read(self, words: int) -> None:
        """Count the text of a view.

        Raises:
            InputError: ``unsupported-query``: all of them are too long.
        """
        self._words -= words
        if self._words < 0:
            raise self._refuse(f"the views that it reads have more than {MOST_VIEW_WORDS:,} words and signs")

    def inline(self, columns: int) -> None:
        """Count the columns of a view or subquery.

        Raises:
            InputError: ``unsupported-query``: all of them have too many.
        """
        self._left -= columns
        if self._left < 0:
            raise self._refuse("the views and subqueries within it have too many columns")

    def _size(self, bound: Bound) -> int:
        if not isinstance(bound, Term):
            return 1
        known = self._sizes.get(id(bound))
        if known is None:
            sizes = [self._size(argument) if isinstance(argument, Term) else 1 for argument in bound.args]
            known = self._sizes[id(bound)] = 1 + sum(sizes), bound
        return known[0]
