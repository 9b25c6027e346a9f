"""What a person is told when a command cannot be carried out: one line with what to do, never a stack trace."""

from __future__ import annotations

from grouping.model.errors import ContinuousQueryError

__all__ = ["TELLABLE", "error_line"]

TELLABLE = (ContinuousQueryError, OSError)
"""What a person can mend; anything else is our fault."""


def error_line(error: ContinuousQueryError | OSError) -> str:
    """Return the line.

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
