"""Readers of GRANT and REVOKE, of IF [NOT] EXISTS, and of the statements of operators."""

from __future__ import annotations

from typing import cast

from sqlglot.tokenizer_core import TokenType

from grouping.model.query import ChangeAccess, DropCqs, SetQuota, ShowQuota, SourceKind
from grouping.statements.tokens import Tokens

__all__ = [
    "ACCESS_CHOICES",
    "HIGHEST_LIMIT",
    "accept_if_exists",
    "accept_if_not_exists",
    "read_drop_cqs",
    "read_grant",
    "read_revoke",
    "read_set_quota",
    "read_show_quota",
]

ACCESS_CHOICES = ("open", "granted")
"""The values of the option `access`."""
_KINDS = ("STREAM", "TABLE", "VIEW")
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


def accept_if_exists(tokens: Tokens) -> bool:
    """Step over IF EXISTS if present."""
    return tokens.accept("IF", "EXISTS")


def accept_if_not_exists(tokens: Tokens) -> bool:
    """Step over IF NOT EXISTS if present."""
    return tokens.accept("IF", "NOT", "EXISTS")


def read_grant(tokens: Tokens) -> ChangeAccess:
    """Read the rest of GRANT READ.

    Raises:
        InputError: ``syntax-error``.
    """
    kind, name = _source(tokens)
    tokens.expect("TO")
    return ChangeAccess(True, kind, name, _subscribers(tokens))


def read_revoke(tokens: Tokens) -> ChangeAccess:
    """Read the rest of REVOKE READ.

    Raises:
        InputError: ``syntax-error``.
    """
    kind, name = _source(tokens)
    tokens.expect("FROM")
    return ChangeAccess(False, kind, name, _subscribers(tokens), tokens.accept("CASCADE"))


def _source(tokens: Tokens) -> tuple[SourceKind, str]:
    tokens.expect("ON")
    word = tokens.word()
    if word not in _KINDS:
        raise tokens.unexpected("STREAM, TABLE or VIEW")
    tokens.index += 1
    return cast(SourceKind, word.lower()), tokens.stream_name()


def _subscribers(tokens: Tokens) -> tuple[str, ...]:
    """Return the listed subscribers, sorted by name; an empty tuple for ALL."""
    if tokens.accept("ALL"):
        return ()
    names: set[str] = set()
    while True:
        names.add(tokens.subscriber_string("a subscriber's name, or ALL,"))
        if not tokens.accept_symbol(TokenType.COMMA):
            return tuple(sorted(names))


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
    return SetQuota(tokens.subscriber("a subscriber"), tuple(limits.items()))


def read_show_quota(tokens: Tokens) -> ShowQuota:
    """Read the subscriber of SHOW QUOTA."""
    tokens.expect("FOR")
    return ShowQuota(tokens.subscriber("a subscriber"))


def read_drop_cqs(tokens: Tokens) -> DropCqs:
    """Read the pattern and the subscriber of DROP CQS, an operator's statement."""
    if not tokens.accept("LIKE"):
        raise tokens.unexpected("LIKE", hint=_DROP_CQ)
    like = tokens.string("a pattern")
    if not tokens.accept("OF"):
        raise tokens.unexpected("OF and a subscriber", hint=_DROP_CQ)
    return DropCqs(like, tokens.subscriber("a subscriber"))
