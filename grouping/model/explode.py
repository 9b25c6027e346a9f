"""The option `explode` of a stream: the path to the elements that are its events."""

from __future__ import annotations

from functools import lru_cache

from grouping.model.column_place import STEP, RecordPath, parse_path, path_text
from grouping.model.errors import InputError

__all__ = ["explode_levels", "explode_text"]

_EACH = "[*]"
_MOST_LEVELS = 8


@lru_cache(maxsize=1024)
def explode_levels(text: str) -> tuple[RecordPath, ...]:
    """Return, for each array of a path, the steps to the array.

    The first steps begin at the record, and all further steps at an element of the previous array. A path that does not
    end with ``[*]`` means the elements of the array to which it leads.

    Raises:
        InputError: ``syntax-error``.

    Example:
        >>> explode_levels("$.logs[*].scope.records"), explode_levels("$[*]"), explode_levels("$")
        ((('logs',), ('scope', 'records')), ((),), ((),))
    """
    pieces: list[str] = []
    begin = at = 1
    while text.startswith("$") and at < len(text):
        if text.startswith(_EACH, at):
            pieces.append(text[begin:at])
            begin = at = at + len(_EACH)
        elif (step := STEP.match(text, at)) is not None:
            at = step.end()
        else:
            break
    if begin < len(text) or not pieces:
        pieces.append(text[begin:])
    if len(pieces) > _MOST_LEVELS:
        raise InputError(
            "the path of explode has too many levels",
            code="syntax-error",
            detail=f"The path has {len(pieces)} arrays, and the limit is {_MOST_LEVELS}.",
        )
    return tuple(parse_path(f"${piece}" if text.startswith("$") else text) for piece in pieces)


def explode_text(levels: tuple[RecordPath, ...]) -> str:
    """Return the path in one canonical spelling.

    Example:
        >>> explode_text(explode_levels("$['logs'][*].records"))
        '$.logs[*].records[*]'
    """
    return "$" + "".join(path_text(path)[1:] + _EACH for path in levels)
