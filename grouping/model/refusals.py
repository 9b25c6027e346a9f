"""Refusals of parts of a query, by the compiler."""

from __future__ import annotations

from grouping.model.errors import InputError

__all__ = ["mismatch", "too_large", "unsupported"]


def mismatch(message: str, detail: str, hint: str | None = None) -> InputError:
    """Return the refusal of an operand of the wrong kind."""
    return InputError(message, code="type-mismatch", detail=detail, hint=hint)


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
