"""Lists in parentheses: rows of values, and the literals after IN.

Rows are compared as in ``(a, b) = (1, 2)`` and ``(a, b) IN ((1, 2), (3, 4))``. A list, or an OR of equalities, may have
tens of thousands of literals. So a run of literals is bound as a whole: if the operand and all literals are numbers, or
all are texts, each literal is read once, by the reader for the operand's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.constants import number, plainly_among, string
from grouping.binding.implicit import of_shape
from grouping.binding.operands import cast, comparable
from grouping.model.expression import Column
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, DOUBLE, FLOAT, STRING
from grouping.model.wording import counted
from grouping.values.literals import READERS

__all__ = ["comparable_among", "equal_rows", "equalities", "is_row"]


def is_row(node: exp.Expr) -> bool:
    """Tell whether an expression is a row of several values."""
    return isinstance(node.unnest(), exp.Tuple)


def equal_rows(row: Sequence[Bound], other: Sequence[Bound]) -> Bound:
    """Return the test of two rows for equality. Its result is never NULL: within rows, two NULLs are equal in Spark.

    Raises:
        InputError: ``type-mismatch`` for rows of different lengths, ``unsupported-query`` for types that differ.
    """
    if len(row) != len(other):
        raise mismatch(
            "rows of different lengths cannot be compared",
            f"The first has {counted(len(row), 'value')}, and another has {counted(len(other), 'value')}.",
        )
    terms = []
    for left, right in zip(row, other, strict=True):
        if is_null(left) or is_null(right) or left.type != right.type:
            raise unsupported(
                f"{left.type} and {right.type} at the same position of rows of values",
                "Values at the same position of the rows must have the same type.",
                "CAST one, or compare the values one by one, with AND.",
            )
        pair = comparable((left, right))
        # The constants are pinned, because the fast path must not exchange them for literals of another type.
        terms.append(Term("<=>", tuple(map(of_shape, pair)), BOOLEAN))
    return Term("and", tuple(terms), BOOLEAN)


def comparable_among(needle: Bound, listed: Iterable[Bound | list[str]]) -> tuple[Bound, ...]:
    """Return the operands of an IN, as `comparable` does.

    Args:
        needle: The operand to look for.
        listed: Bound values, and lists of literals as texts; each item is bound when the iterator reaches it.

    Raises:
        InputError: ``type-mismatch`` and ``unsupported-query``, as `comparable` does.
    """
    values: list[Bound] = []
    runs: list[tuple[int, list[str], list[Constant] | None]] = []
    """For each list of literals: the number of values before the list, the texts of the literals, and their constants,
    which are read as the needle's type. The constants are None if some literals are of another kind than the needle."""
    for value in listed:
        if isinstance(value, list):
            runs.append((len(values), value, _beside(needle, value)))
        else:
            values.append(value)
    operands = plainly_among(needle, values) if all(read is not None for _, _, read in runs) else None
    if operands is None:
        literals = [(place, list(map(_literal, texts))) for place, texts, _ in runs]
        return comparable(_of_one_width((needle, *_merged(values, literals))), among=True)
    return needle, *_merged(operands[1:], [(place, read) for place, _, read in runs if read is not None])


def _of_one_width(operands: Sequence[Bound]) -> Sequence[Bound]:
    """Return the operands of an IN; if a member is a FLOAT or DOUBLE expression, other numbers are CAST to DOUBLE.

    IN compares all operands as one type, so the constants of this list become DOUBLEs, and an index of exact numbers
    does not find a DOUBLE. If the needle is FLOAT or DOUBLE, no CAST is needed, since the needle is compared with each
    member as a DOUBLE.
    """
    others = [operand for operand in operands if not isinstance(operand, Constant)]
    inexact = [operand for operand in others if operand.type in (FLOAT, DOUBLE)]
    if not inexact or operands[0] in inexact:
        return operands
    return [
        cast(operand, DOUBLE)
        if operand.type.is_number and operand.type != FLOAT and not isinstance(operand, Constant)
        else operand
        for operand in operands
    ]


def _merged(values: Iterable[Bound], runs: Iterable[tuple[int, list[Constant]]]) -> Iterator[Bound]:
    values = list(values)
    behind = 0
    for place, run in runs:
        yield from values[behind:place]
        yield from run
        behind = place
    yield from values[behind:]


def equalities(compared: Bound, texts: list[str]) -> list[Term]:
    """Return the equalities of an operand with literals; raises as `comparable` does."""
    beside = _beside(compared, texts) if isinstance(compared, Column) else None
    if beside is not None:
        return [Term("=", (compared, constant), BOOLEAN) for constant in beside]
    return [Term("=", comparable((compared, _literal(text))), BOOLEAN) for text in texts]


def _literal(text: str) -> Constant:
    return string(_unquoted(text), None) if text[0] == "'" else number(text, None)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _beside(compared: Bound, texts: list[str]) -> list[Constant] | None:
    """Return literals as constants of an expression's type; None if the expression and the literals differ in kind."""
    if isinstance(compared, Constant):
        return None
    strings = sum(text[0] == "'" for text in texts)
    if compared.type == STRING and strings == len(texts):
        return [Constant(value := _unquoted(text), STRING, "string", value) for text in texts]
    if compared.type.is_number and not strings:
        reader = "double" if compared.type in (FLOAT, DOUBLE) else "exact"
        read = READERS[reader]
        return [Constant((typed := read(text))[1], typed[0], reader, text) for text in texts]
    return None
