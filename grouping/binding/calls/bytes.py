"""Text functions that also take BINARY values."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BINARY, INT, STRING

__all__ = ["OF_BYTES", "bytes_call"]

OF_BYTES = frozenset(("concat", "left", "substring"))
"""The text functions that are supported for BINARY."""


def bytes_call(name: str, args: Sequence[Bound]) -> Bound:
    """Return a function of `OF_BYTES` with BINARY arguments.

    Args:
        name: The function's name.
        args: The arguments, in the right number; positions and lengths are INT.

    Raises:
        InputError: ``unsupported-query`` for STRING together with BINARY, ``type-mismatch`` for other types.
    """
    if name == "concat":
        return _joined(args)
    text, *places = args
    if text.type != BINARY or any(place.type != INT for place in places):
        shown = next((place.type for place in places if place.type != INT), text.type)
        raise mismatch(f'an argument of "{name}" is {shown}', "A position and a length must be INT.", "CAST it.")
    if name == "left":
        places = [Constant(1, INT), *places]
    return Term("substring of bytes", (text, *places), BINARY)


def _joined(args: Sequence[Bound]) -> Bound:
    """Return the concatenation of BINARY values: their hexadecimal digits are joined, and converted to bytes."""
    if any(argument.type != BINARY and not is_null(argument) for argument in args):
        raise unsupported(
            '"concat" of BINARY and STRING', "Spark reads the bytes as UTF-8; they may be invalid.", "Use encode."
        )
    if len(args) == 1:
        return args[0]
    digits = tuple(Constant(None, STRING) if is_null(one) else Term("hex", (one,), STRING) for one in args)
    return Term("unhex", (Term("concat", digits, STRING),), BINARY)
