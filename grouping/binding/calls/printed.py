"""The function format_string; its format stays in the signature and is never lifted as a constant."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BOOLEAN, INT, SMALLINT, STRING, TINYINT
from grouping.model.wording import are, counted
from grouping.values.printf import Conversion, parse_format

__all__ = ["printed"]


def printed(name: str, args: Sequence[Bound]) -> Bound:
    """Return format_string of a constant format and arguments.

    Raises:
        InputError: ``unsupported-query`` or ``type-mismatch``, if the result would not be exactly Spark's, or if Java
            would refuse the format.
    """
    form, *shown = args
    if not isinstance(form, Constant):
        raise unsupported("a format that is not a constant", "The format must be a constant STRING.")
    if is_null(form):
        return Constant(None, STRING)
    if form.type != STRING:
        raise mismatch(f"a format is {form.type}", "The format must be STRING.")
    for part in parse_format(str(form.value)):
        if isinstance(part, Conversion):
            _check(part, shown)
    return Term(name, (Value(str(form.value), "STRING"), *shown), STRING)


_SHOWN = {"s": (STRING, TINYINT, SMALLINT, INT, BIGINT, BOOLEAN), "d": (TINYINT, SMALLINT, INT, BIGINT)}
"""Conversion, such as ``s`` in ``%s`` → the accepted types; other conversions accept only INT and BIGINT."""


def _check(part: Conversion, shown: Sequence[Bound]) -> None:
    if part.argument >= len(shown):
        raise mismatch(
            f"the format needs {counted(part.argument + 1, 'argument')}", f"There {are(len(shown))} {len(shown)}."
        )
    sql_type = shown[part.argument].type
    wanted = _SHOWN.get(part.kind, (INT, BIGINT))
    if sql_type not in wanted and not is_null(shown[part.argument]):
        names = ", ".join(map(str, wanted))
        raise unsupported(f"%{part.kind} of {sql_type}", f"%{part.kind} takes {names}.", "CAST the value to STRING.")
