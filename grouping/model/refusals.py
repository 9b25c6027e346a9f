"""Refusals of parts of a query, by the compiler."""

from __future__ import annotations

from grouping.model.errors import InputError

__all__ = ["MAX_DEPTH", "mismatch", "predicate_too_large", "too_deep", "too_large", "unsupported"]

MAX_DEPTH = 100
"""The largest number of nested levels of an expression; a chain of AND or OR of any length is one level."""


def mismatch(message: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of an operand of the wrong kind."""
    return InputError(message, code="type-mismatch", detail=detail, hint=hint)


def predicate_too_large(nodes: str, limit: int) -> InputError:
    """Return the refusal of a WHERE with too many nodes."""
    return InputError(
        "the predicate is too large",
        code="quota-exceeded",
        detail=f"Its normal form has {nodes} operators, columns and constants, and the limit is {limit:,}.",
        hint="Write an OR of equalities as IN, or divide the query into several.",
    )


def too_deep() -> InputError:
    """Return the refusal of an expression that is nested deeper than `MAX_DEPTH` levels."""
    return too_large(f"it is nested deeper than {MAX_DEPTH} levels")


def too_large(why: str) -> InputError:
    """Return the refusal of an expression that is too large to be planned."""
    return InputError(
        "the expression is too large",
        code="unsupported-query",
        detail=f"{why[0].upper()}{why[1:]}.",
        hint="Simplify it.",
    )


def unsupported(what: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of a part of a query."""
    return InputError(f"{what} is not supported", code="unsupported-query", detail=detail, hint=hint)
