"""format_string: a format, which belongs to the predicate's shape, and its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BOOLEAN, INT, SMALLINT, STRING, TINYINT
from grouping.values.printf import Conversion, parse_format

__all__ = ["printed"]


def printed(name: str, args: Sequence[Bound]) -> Bound:
    """Return format_string of a constant format and arguments.

    Raises:
        InputError: ``unsupported-query`` or ``type-mismatch``, where the result is not exact or Java would refuse the
            format.
    """
    form, *shown = args
    if not isinstance(form, Constant):
        raise unsupported("a format that is no constant", "It must be one of type STRING.")
    if is_null(form):
        return Constant(None, STRING)
    if form.type != STRING:
        raise mismatch(f"a format is {form.type}", "It must be STRING.")
    for part in parse_format(str(form.value)):
        if isinstance(part, Conversion):
            _check(part, shown)
    return Term(name, (Value(str(form.value), "STRING"), *shown), STRING)


_SHOWN = {"s": (STRING, TINYINT, SMALLINT, INT, BIGINT, BOOLEAN), "d": (TINYINT, SMALLINT, INT, BIGINT)}
"""Types of arguments by conversion; conversions not listed take INT and BIGINT alone."""


def _check(part: Conversion, shown: Sequence[Bound]) -> None:
    if part.argument >= len(shown):
        raise mismatch("a format shows more than there is", f"It has no argument {part.argument + 1}.")
    sql_type = shown[part.argument].type
    wanted = _SHOWN.get(part.kind, (INT, BIGINT))
    if sql_type not in wanted and not is_null(shown[part.argument]):
        names = ", ".join(map(str, wanted))
        raise unsupported(f"%{part.kind} of {sql_type}", f"It shows {names} exactly.", "CAST it to STRING.")
