"""Functions that read a number of a text by a format, which is part of a query's shape."""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.nested import fixed
from grouping.binding.operands import cast, is_null
from grouping.model.expression import Value
from grouping.model.refusals import mismatch
from grouping.model.sql_type import STRING, decimal
from grouping.model.wording import are
from grouping.values.number_format import read_number_format

__all__ = ["NUMBER_CALLS", "number_call"]

NUMBER_CALLS = frozenset(("to_number", "try_to_number"))


def number_call(name: str, args: Sequence[Bound]) -> Bound:
    """Return one of `NUMBER_CALLS` applied; a text that is not of the format is NULL.

    Raises:
        InputError: ``type-mismatch`` for the wrong arguments, ``unsupported-query`` for a format.
    """
    if len(args) != 2:
        raise mismatch(f'function "{name}" takes 2 arguments', f"There {are(len(args))} {len(args)}.")
    text, form = args
    pattern = str(fixed(form, STRING, f'the format of "{name}"').value)
    read = read_number_format(pattern)
    sql_type = decimal(read.precision, read.scale)
    if is_null(text):
        return Constant(None, sql_type)
    if text.type != STRING and not (text.type.name in ("TINYINT", "SMALLINT", "INT", "BIGINT") or text.type.is_decimal):
        raise mismatch(f'an argument of "{name}" is {text.type}', "It must be STRING.", "CAST it.")
    return Term("to_number", (cast(text, STRING), Value(pattern, "STRING")), sql_type)
