"""The order in which Spark applies operators, where sqlglot's parser differs.

Spark applies ``||``, ``+`` and ``-`` from left to right with equal precedence; sqlglot applies ``+`` and ``-`` first.
In a condition without parentheses, Spark accepts at most one predicate (IS, IN, LIKE, BETWEEN), and no comparison after
the predicate. sqlglot accepts any number of predicates and comparisons, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.statements.respelled_tokens import after_operand

__all__ = ["check_operators", "concatenated_from_left"]

_COMPARING = frozenset(
    (TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ)
)
_TESTING = frozenset(
    (
        TokenType.IS,
        TokenType.IN,
        TokenType.LIKE,
        TokenType.ILIKE,
        TokenType.RLIKE,
        TokenType.BETWEEN,
        TokenType.SIMILAR_TO,
    )
)
_CALLED_TOO = frozenset((TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE))
_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END))
_BETWEEN_CONDITIONS = frozenset(
    (TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.ARROW)
    + (
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.ON,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.WINDOW,
        TokenType.GROUP_BY,
    )
    + (TokenType.JOIN, TokenType.ALIAS)
)


def check_operators(tokens: Sequence[Token]) -> None:
    """Refuse operators that Spark does not accept, or applies in another order than sqlglot.

    Raises:
        InputError: ``syntax-error``, ``unsupported-query``.
    """
    _check_negations(tokens)
    _check_predicates(tokens)


def _check_predicates(tokens: Sequence[Token]) -> None:
    """Refuse a condition with two predicates, or a predicate and a comparison, unless one of them is in parentheses."""
    if not any(token.token_type is TokenType.IS or token.token_type in _TESTING for token in tokens):
        return
    open_conditions = [_Condition()]
    for place, token in enumerate(tokens):
        kind, condition = token.token_type, open_conditions[-1]
        if kind in _OPENING:
            open_conditions.append(_Condition())
        elif kind in _CLOSING and len(open_conditions) > 1:
            open_conditions.pop()
        elif kind in _BETWEEN_CONDITIONS:
            condition.end(kind)
        elif _tests(tokens, place) or (kind in _COMPARING and not _is_bracket(tokens, place)):
            condition.note(kind)
            if condition.is_unclear:
                raise unsupported(
                    "a comparison of comparisons",
                    f'Line {token.line}, column {token.col}: "{token.text}" follows another comparison without'
                    " parentheses.",
                    "Put one of them in parentheses, as in (a = b) IS NULL.",
                )


def _check_negations(tokens: Sequence[Token]) -> None:
    """Refuse ``a ! IN (b)``, ``a IS ! NULL``, ``a NOT NULL``, ``a ISNULL`` and ``a NOTNULL``."""
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind not in _NEGATIONS or not after_operand(tokens, place):
            continue
        behind_is = tokens[place - 1].token_type is TokenType.IS
        if kind is TokenType.NOT and token.text != "!":
            follower = tokens[place + 1].token_type if place + 1 < len(tokens) else None
            if behind_is or follower is not TokenType.NULL:
                continue
        raise InputError(
            f'"{token.text}" is not expected here',
            code="syntax-error",
            detail=f"Line {token.line}, column {token.col - len(token.text) + 1}: an operator stands here.",
            hint="Write NOT IN, NOT LIKE, NOT BETWEEN, IS NULL or IS NOT NULL.",
        )


_NEGATIONS = frozenset((TokenType.NOT, TokenType.ISNULL, TokenType.NOTNULL))


class _Condition:
    """The operators of a condition at one level of parentheses."""

    def __init__(self) -> None:
        self._kinds: list[TokenType] = []
        self._bounds = False
        """Whether the next AND belongs to BETWEEN, and does not end the condition."""

    @property
    def is_unclear(self) -> bool:
        return len(self._kinds) > 1 and any(kind in _TESTING for kind in self._kinds)

    def note(self, kind: TokenType) -> None:
        self._kinds.append(kind)
        self._bounds |= kind is TokenType.BETWEEN

    def end(self, kind: TokenType) -> None:
        """End the condition, unless the token is a part of BETWEEN or of IS DISTINCT FROM."""
        if kind is TokenType.AND and self._bounds:
            self._bounds = False
        elif kind is not TokenType.FROM or self._kinds[-1:] != [TokenType.IS]:
            self._kinds.clear()
            self._bounds = False


def _tests(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a token is a predicate, and not a call of the function with this name, as in ``like(a, b)``."""
    kind = tokens[place].token_type
    if kind not in _CALLED_TOO:
        return kind in _TESTING
    return after_operand(tokens, place - (place > 0 and tokens[place - 1].token_type is TokenType.NOT))


def _is_bracket(tokens: Sequence[Token], place: int) -> bool:
    """Return whether ``<`` or ``>`` is a bracket of a type, or a part of a shift."""
    kind = tokens[place].token_type
    if kind not in (TokenType.LT, TokenType.GT):
        return False
    around = (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])
    return any(near.token_type is kind or near.text.upper() in ("ARRAY", "MAP", "STRUCT") for near in around)


def concatenated_from_left(tree: exp.Select) -> exp.Select:
    """Return a tree with ``a || (b + c)`` changed to ``(a || b) + c``, where no parentheses were written.

    Raises:
        InputError: ``unsupported-query`` for ``a & b || c``, where Spark takes ``||`` first.
    """
    for node in list(tree.find_all(exp.DPipe)):
        if isinstance(node.this, _BITWISE):
            raise unsupported(
                'an operator of bits before "||"', "Spark joins the texts first.", "Put one of them in parentheses."
            )
        first = node.expression
        if not isinstance(first, exp.Add | exp.Sub):
            continue
        while isinstance(first.this, exp.Add | exp.Sub):
            first = first.this
        whole, left = node.expression, node.this
        first.set("this", exp.DPipe(this=left, expression=first.this, safe=node.args.get("safe")))
        node.replace(whole)
    return tree


_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Coalesce)  # `respelled_tokens` writes >>> as a COALESCE
_BITWISE = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, *_SHIFTS)
