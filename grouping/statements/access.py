"""Readers of GRANT, REVOKE and IF [NOT] EXISTS."""

from __future__ import annotations

from typing import cast

from sqlglot.tokenizer_core import TokenType

from grouping.model.errors import InputError
from grouping.model.query import ChangeAccess, SourceKind
from grouping.statements.tokens import Tokens

__all__ = ["ACCESS_CHOICES", "accept_if_exists", "accept_if_not_exists", "read_grant", "read_revoke"]

ACCESS_CHOICES = ("open", "granted")
"""The values of the option `access`."""
_KINDS = ("STREAM", "TABLE", "VIEW")


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
    """Return the listed subscribers, sorted by name; empty for ALL."""
    if tokens.accept("ALL"):
        return ()
    names: set[str] = set()
    while True:
        name = tokens.string("a subscriber's name, or ALL,")
        if not name:
            detail = "A name has at least one character."
            raise InputError("a subscriber's name is empty", code="syntax-error", detail=detail)
        names.add(name)
        if not tokens.accept_symbol(TokenType.COMMA):
            return tuple(sorted(names))
