"""Reads the headers of records that anybody may have written."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

__all__ = ["headers_of"]

_headers = methodcaller("headers")
"""Calls the method of a message. The driver returns a value although it has raised an error in C. Python notices the
error at once only in a call of this kind."""


def headers_of(message: Any) -> list[tuple[str, bytes | None]] | None:
    """Return the headers of a consumed message; None without headers, and if the name of a header is not UTF-8.

    For such a name, the driver does not give the other headers of the record either.
    """
    try:
        found: list[tuple[str, bytes | None]] | None = _headers(message)
    except (SystemError, UnicodeDecodeError):
        return None
    return found
