"""Readers of the statements of operators."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from grouping.model.query import DropCqs, SetQuota, ShowQuota
from grouping.statements.tokens import Tokens

__all__ = [
    "HIGHEST_LIMIT",
    "read_drop_cqs",
    "read_set_quota",
    "read_show_quota",
]

HIGHEST_LIMIT = 10**18
"""The largest number for LIMIT and for a quota."""
_QUOTAS = (
    "cqs",
    "streams",
    "partitions",
    "tables",
    "views",
    "commands_per_second",
    "quarantined",
    "dedicated",
    "virtual",
)

_DROP_CQ = "DROP CQ name drops one CQ of your own; DROP CQS LIKE 'a%' OF subscriber is a statement for operators."


def read_set_quota(tokens: Tokens) -> SetQuota:
    """Read the quotas of SET QUOTA and the subscriber."""
    limits: dict[str, int | None] = {}
    while not limits or tokens.accept_symbol(TokenType.COMMA):
        name = tokens.source().casefold()
        if name not in _QUOTAS or name in limits:
            raise tokens.unexpected(f"{', '.join(_QUOTAS)}, each at most once")
        tokens.index += 1
        tokens.expect_symbol(TokenType.EQ, "=")
        limits[name] = None if tokens.accept("DEFAULT") else tokens.number("a limit", highest=HIGHEST_LIMIT, lowest=0)
    tokens.expect("FOR")
    return SetQuota(tokens.name("a subscriber"), tuple(limits.items()))


def read_show_quota(tokens: Tokens) -> ShowQuota:
    """Read the subscriber of SHOW QUOTA."""
    tokens.expect("FOR")
    return ShowQuota(tokens.name("a subscriber"))


def read_drop_cqs(tokens: Tokens) -> DropCqs:
    """Read the pattern and the subscriber of DROP CQS, an operator's statement."""
    if not tokens.accept("LIKE"):
        raise tokens.unexpected("LIKE", hint=_DROP_CQ)
    like = tokens.string("a pattern")
    if not tokens.accept("OF"):
        raise tokens.unexpected("OF and a subscriber", hint=_DROP_CQ)
    return DropCqs(like, tokens.name("a subscriber"))
