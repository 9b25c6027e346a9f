"""Limits on work that may be much larger than a query's text: repeated operands, sequences, and columns of views."""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.bound import Bound, Term
from grouping.model.refusals import too_large

__all__ = ["MOST_NODES", "MOST_VIEW_WORDS", "Budget"]

MOST_NODES = 20_000
"""The largest number of nodes of bound trees, plus columns of views, that a SELECT may have beyond its own text.

The elements of sequences have a budget of their own, of the same size.
"""
_PER_EXPRESSION = 8
"""Nodes that each expression of the text adds to the budget, since binding may turn an expression into several nodes:
BETWEEN becomes two comparisons."""
MOST_VIEW_WORDS = 6_000
"""The largest number of words and signs in all views that a SELECT reads; each compilation parses the views' texts."""


class Budget:
    """The budget of a query and its views; for use by a single thread.

    An operator may repeat an operand (``CASE a WHEN 1 … WHEN 2 …``). The repeated operand is a single object in
    memory, but a walk visits it each time, so 30 nested operators of this kind take 2^30 visits. Therefore the size of
    each operator is computed only once, from the sizes of its arguments.
    """

    def __init__(self, nodes: int = MOST_NODES, refuse: Callable[[str], Exception] = too_large) -> None:
        """Start with a full budget.

        Args:
            nodes: The largest number of nodes beyond the text.
            refuse: Makes the refusal of a query that exceeds the budget.
        """
        self._left = nodes
        self._made = nodes
        self._words = MOST_VIEW_WORDS
        self._refuse = refuse
        self._sizes: dict[int, tuple[int, Term]] = {}
        """Address of an operator → number of nodes of its tree, and the operator itself. While the operator is kept,
        no other object gets its address."""

    def make(self, nodes: int) -> None:
        """Count the nodes that a function makes from constants, such as the elements of a sequence.

        Raises:
            InputError: ``unsupported-query``: the limit is exceeded.
        """
        self._made -= nodes
        if self._made < 0:
            raise self._refuse("the sequences within it have too many elements")

    def note(self, bound: Bound) -> None:
        """Raise the budget for an expression of the text, and check the size of its tree.

        Raises:
            InputError: ``unsupported-query``: operands are repeated too often.
        """
        self._left += _PER_EXPRESSION
        if isinstance(bound, Term) and self._size(bound) > self._left:
            raise self._refuse("its operands are repeated too often")

    def note_small(self, expressions: int) -> None:
        """Raise the budget for expressions of the text that repeat no operand."""
        self._left += expressions * _PER_EXPRESSION

    def spend(self, bound: Bound) -> None:
        """Count the nodes of a whole expression; the first node is free, and so is a plain column.

        Raises:
            InputError: ``unsupported-query``: the budget is exceeded.
        """
        self._left -= self._size(bound) - 1
        if self._left < 0:
            raise self._refuse("its operands are repeated too often")

    def read(self, words: int) -> None:
        """Count the text of a view.

        Raises:
            InputError: ``unsupported-query``: the texts of all views are too long.
        """
        self._words -= words
        if self._words < 0:
            raise self._refuse(f"the views that it reads have more than {MOST_VIEW_WORDS:,} words and signs")

    def inline(self, columns: int) -> None:
        """Count the columns of a view or subquery.

        Raises:
            InputError: ``unsupported-query``: all views and subqueries have too many columns.
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
