"""Scripts: texts of several statements with semicolons between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["statements_of"]

_PART = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/|\{\#.*?\#\})
      | (?P<end>;)
      | (?P<open>'(?![^']*')|"(?![^"]*")|`(?![^`]*`)|/\*|\{\#)
      | (?:'[^']*'|"[^"]*"|`[^`]*`|[^\s;'"`/{-]+|.)""",
    re.DOTALL | re.VERBOSE,
)
"""A part of a script by the rules of the tokenizer: blanks and comments, the end of a statement, a quote or comment
without an end, or other text. A ``--`` comment ends at a line feed, but not at a carriage return.
"""


def statements_of(text: str) -> list[str]:
    r"""Return the statements of a script as written, without their semicolons.

    A comment belongs to the statement that follows. A text of the statements, joined with ``"\n;"``, is cut into the
    same statements.

    Example:
        >>> statements_of("SHOW CQS LIKE ';'; -- all of them\n DROP CQ \"a;b\"; ;")
        ["SHOW CQS LIKE ';'", '-- all of them\n DROP CQ "a;b"']

    Raises:
        InputError: ``syntax-error`` for a string, a quoted name or a comment without an end.
    """
    return list(_cut(text))


def _cut(text: str) -> Iterator[str]:
    begin, empty = 0, True
    for part in _PART.finditer(text):
        match part.lastgroup:
            case "end":
                if not empty:
                    yield text[begin : part.start()].strip()
                begin, empty = part.end(), True
            case "open":
                from grouping.statements.tokens import unreadable  # imports sqlglot, which slows a start of `cq`

                raise unreadable(text)
            case "blank":
                pass
            case _:
                empty = False
    if not empty:
        yield text[begin:].strip()
