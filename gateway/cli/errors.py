"""The message of a failed command, for a person: one line with the fault and a hint, without a stack trace."""

from __future__ import annotations

from collections.abc import Callable

from grouping.model.errors import ContinuousQueryError, OperationalError

__all__ = ["TELLABLE", "checked_address", "error_line"]

TELLABLE = (ContinuousQueryError, OSError)
"""Errors that a person can correct. All other errors are bugs of the product."""


def error_line(error: ContinuousQueryError | OSError) -> str:
    """Return the message of an error as one line.

    Example:
        >>> error_line(OSError(28, "No space left on device", "/data/run"))
        'cq: the system refuses "/data/run": no space left on device.'
    """
    match error:
        case ContinuousQueryError():
            parts = [error.message, error.hint]
        case OSError():
            where = f' "{error.filename}"' if error.filename else ""
            parts = [f"the system refuses{where}: {(error.strerror or str(error)).lower()}"]
    return "cq: " + " ".join(part.rstrip(".") + "." for part in parts if part)


def checked_address(text: str, check: Callable[[str], str]) -> str:
    """Check an address from the command line, and return it unchanged.

    Raises:
        OperationalError: The address is not valid. The error quotes no part of it, since it may contain a password.
    """
    try:
        return check(text)
    except ValueError as error:
        raise OperationalError(f"an address that is given is not valid: {error}") from None
