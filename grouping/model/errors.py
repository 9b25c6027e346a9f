"""All errors of the product, and the codes of rejected commands, which never change.

ContinuousQueryError
├── InputError           the sender's fault: the reply has the code, the detail and the hint
├── OperationalError     a server cannot be reached, or refuses: the request is tried again
└── InternalError        the product's fault: an invariant did not hold
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["CODES", "PLACE", "ContinuousQueryError", "InputError", "InternalError", "OperationalError", "near_name"]

PLACE = re.compile(r"Line (\d+), column (\d+)")
"""The place in a statement, at the beginning of an error's detail."""

CODES = (
    "malformed-command",
    "command-too-large",
    "syntax-error",
    "unknown-statement",
    "unknown-stream",
    "unknown-column",
    "unknown-function",
    "type-mismatch",
    "unsupported-query",
    "cq-exists",
    "unknown-cq",
    "unknown-group",
    "stream-exists",
    "stream-in-use",
    "stream-mismatch",
    "bad-interval",
    "bad-time",
    "already-expired",
    "not-allowed",
    "quota-exceeded",
    "unavailable",
)
"""The codes of a rejected command (docs/commands.md); an accepted command has ``ok``."""


class ContinuousQueryError(Exception):
    """Base class: a primary message in lower case, and a detail and a hint if there are any."""

    def __init__(self, message: str, *, detail: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        """The facts that explain the error, in full sentences."""
        self.hint = hint
        """Advice, in full sentences."""

    @property
    def line(self) -> str:
        """Message, detail and hint in one line."""
        return " ".join(part for part in (f"{self.message}.", self.detail, self.hint) if part)


class InputError(ContinuousQueryError):
    """A command that cannot be carried out; its code is in `CODES`.

    Example:
        >>> InputError('column "prise" does not exist', code="unknown-column").code
        'unknown-column'
    """

    def __init__(self, message: str, *, code: str, detail: str | None = None, hint: str | None = None) -> None:
        if code not in CODES:
            raise InternalError(f'code "{code}" is not in CODES')
        super().__init__(message, detail=detail, hint=hint)
        self.code = code


class OperationalError(ContinuousQueryError):
    """Kafka, Redis, the disk or a registry could not carry out a request, or did not answer in time."""


class InternalError(ContinuousQueryError):
    """An invariant did not hold: a fault of the product, never of the sender."""


_LONGEST_COMPARED = 1_000
"""The largest number of characters of a name that is compared with known names; a longer name resembles none."""


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the most similar known name, or None if no name is similar.

    Example:
        >>> near_name("prise", ["symbol", "price"])
        'Did you mean "price"?'
    """
    spelled = {candidate.casefold(): candidate for candidate in known}
    compared = name.casefold() if len(name) <= _LONGEST_COMPARED else ""
    near = difflib.get_close_matches(compared, spelled, n=1, cutoff=0.6)
    return f'Did you mean "{spelled[near[0]]}"?' if near else None
