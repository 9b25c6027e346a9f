"""The filter and SELECT list of a virtual destination as SQL, which its readers apply (docs/results.md).

An expression is refused if its result in a reader's engine may differ from its result in Spark. `reader_functions.py`
lists the functions with equal results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from grouping.compiler.reader_functions import TextMaker, form_of
from grouping.functions.functions import result_type
from grouping.model.catalog import RECORD_FIELDS
from grouping.model.errors import InputError
from grouping.model.expression import Call, Column, Expression, Slot, Value, walk
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NUMERIC, STRING, TIMESTAMP, SqlType
from grouping.plan.expression_text import render_part
from grouping.plan.group import CompiledQuery, GroupPlan, SelectList

__all__ = ["check_virtual", "filter_sql", "select_sql"]

_EVERYWHERE = frozenset("= <> < <= > >= <=> in and or not is_null like case coalesce nullif".split())
"""Operators and functions that SQL engines evaluate equally if all operands have one type."""
_MOST_DIGITS = 38
"""The largest number of digits of a DECIMAL in Spark and in SQL engines."""


def check_virtual(query: CompiledQuery) -> None:
    """Check that readers can evaluate a query themselves.

    Raises:
        InputError: ``unsupported-query``, naming the unsupported part.
    """
    if query.edge:
        raise InputError(
            "the query cannot be published VIRTUAL",
            code="unsupported-query",
            detail="EMIT needs the event before an event, but readers of a virtual destination get single events.",
            hint="Publish SHARED or DEDICATED.",
        )
    computation = query.plan.computation
    if computation is not None:
        what = "joins tables" if computation.nodes else "has window functions, which need the events before an event"
        raise InputError(
            "the query cannot be published VIRTUAL",
            code="unsupported-query",
            detail=f"The query {what}, but readers of a virtual destination get single events.",
            hint="Publish SHARED or DEDICATED.",
        )
    for expression in query.plan.conjuncts:
        _check(expression, query.row.types)
    for value in query.row.values:
        _check_digits(value)
    for item in query.select.items:
        if isinstance(item.expression, Call):
            raise InputError(
                "the query cannot be published VIRTUAL",
                code="unsupported-query",
                detail=f'The SELECT list computes "{item.name}", but readers of a virtual destination get the events.',
                hint="Select plain columns, or publish SHARED or DEDICATED.",
            )
        _check(item.expression, ())


def _check(expression: Expression, types: Sequence[SqlType]) -> None:
    for part in walk(expression):
        if isinstance(part, Column) and part.reference in RECORD_FIELDS:
            why = f'The events that readers get do not contain "{part.stored}".'
        elif isinstance(part, Column) and not _plain(part.type):
            why = f'Readers have no exact SQL for "{part.stored}" of type {part.type}.'
        elif isinstance(part, Call) and part.op == "like" and not all(isinstance(one, Slot) for one in part.args[1:]):
            why = "The pattern of LIKE is not a constant, and engines read malformed patterns differently."
        elif isinstance(part, Call) and part.op not in _EVERYWHERE and _form(part, types) is None:
            shown = render_part(part)
            why = f'Readers have no SQL with exactly the same result as "{shown}".'
        elif isinstance(part, Call) and len(mixed := _choices(part, types)) > 1:
            shown = ", ".join(sorted(map(str, mixed)))
            why = f'The values of "{part.op}" are {shown}, and engines choose different common types.'
        else:
            continue
        raise InputError(
            "the query cannot be published VIRTUAL",
            code="unsupported-query",
            detail=why,
            hint="Publish SHARED or DEDICATED, or compute it in the stream's source and compare a plain column.",
        )


def _check_digits(value: ConstantValue) -> None:
    if isinstance(value, tuple):
        for member in value:
            _check_digits(member)
    if isinstance(value, int | Decimal):
        _, digits, exponent = Decimal(value).as_tuple()
        assert isinstance(exponent, int), "a DECIMAL constant is finite"
        if max(len(digits) + exponent, 0) + max(-exponent, 0) > _MOST_DIGITS:
            raise InputError(
                "the query cannot be published VIRTUAL",
                code="unsupported-query",
                detail=f"A constant has more than {_MOST_DIGITS} digits, and engines have no exact type for it.",
                hint="Publish SHARED or DEDICATED, or write a constant with fewer digits.",
            )


def _plain(sql_type: SqlType) -> bool:
    return sql_type.is_number or sql_type in (BOOLEAN, STRING, DATE, TIMESTAMP) or str(sql_type) == "BINARY"


def _kind(part: Expression, types: Sequence[SqlType]) -> SqlType:
    """Return a part's type; if the signature leaves the type open, the constants of the row decide it."""
    if isinstance(part, Slot):
        return types[part.index]
    if isinstance(part, Call) and not part.type_text:
        return result_type(part.op, [_kind(one, types) for one in part.args])
    return part.type


def _form(call: Call, types: Sequence[SqlType]) -> TextMaker | None:
    return form_of(call, [_kind(one, types) for one in call.args], _kind(call, types))


def _choices(call: Call, types: Sequence[SqlType]) -> set[SqlType]:
    """Return the types of the values among which an expression chooses; all whole numbers count as one type."""
    match call.op:
        case "case":
            last = call.args[-1:] if len(call.args) % 2 else ()
            values = (*call.args[1::2], *last)
        case "coalesce" | "nullif":
            values = call.args
        case _:
            return set()
    kinds = (_kind(value, types) for value in values)
    return {BIGINT if sql_type == INT else sql_type for sql_type in kinds}


def filter_sql(plan: GroupPlan, row: ConstantRow) -> str:
    """Return the predicate of a group as SQL, with the constants of a row; ``TRUE`` without a predicate.

    Example:
        >>> from grouping.model.expression import Slot
        >>> above = Call(">", (Column("price", "DOUBLE"), Slot(0)), "BOOLEAN")
        >>> filter_sql(GroupPlan("g_1", "s_1", "", (above,)), ConstantRow(("DOUBLE",), (5.0,)))
        '"price" > 5.0e0'
    """
    constants = [_literal(sql_type, value) for sql_type, value in zip(row.types, row.values, strict=True)]
    if not plan.conjuncts:
        return "TRUE"
    whole = plan.conjuncts[0] if len(plan.conjuncts) == 1 else Call("and", plan.conjuncts, "BOOLEAN")
    return _rendered(whole, constants, row.types)


def select_sql(select: SelectList) -> str:
    """Return the SELECT list as SQL; each column has its name from the query."""
    return ", ".join(f"{_rendered(item.expression, [], ())} AS {_quoted(item.name)}" for item in select.items)


def _rendered(expression: Expression, constants: list[str], types: Sequence[SqlType]) -> str:
    """Return an expression as SQL; all names are quoted, because reserved words differ between engines."""
    texts = list(constants)

    def with_names(part: Expression) -> Expression:
        if isinstance(part, Column):
            texts.append(_quoted(part.stored))
            return Slot(len(texts) - 1)
        if isinstance(part, Value):
            # As in results, DECIMALs and times are written as text.
            sql_type = part.type if part.type in (BOOLEAN, INT, BIGINT, DOUBLE) else STRING
            texts.append(_literal(sql_type, part.value))
            return Slot(len(texts) - 1)
        form = None
        if isinstance(part, Call):
            form = _STANDARD.get(part.op) or (None if part.op in _EVERYWHERE else _form(part, types))
        if isinstance(part, Call) and form is not None:
            named = list(map(with_names, part.args))
            # In some engines IS binds more tightly than a comparison, so nested calls get parentheses.
            inner = [
                f"({render_part(one, texts)})" if isinstance(one, Call) else render_part(one, texts) for one in named
            ]
            texts.append(form(inner))
            return Slot(len(texts) - 1)
        if isinstance(part, Call):
            return Call(part.op, tuple(map(with_names, part.args)), part.type_text)
        return part

    whole = with_names(expression)
    return render_part(whole, texts)


def _case(args: Sequence[str]) -> str:
    conditions, results = args[0 : len(args) // 2 * 2 : 2], args[1::2]
    cases = "".join(f" WHEN {condition} THEN {result}" for condition, result in zip(conditions, results, strict=True))
    return f"(CASE{cases}{f' ELSE {args[-1]}' if len(args) % 2 else ''} END)"


def _same(sides: Sequence[str]) -> str:
    return f"({sides[0]} IS NOT DISTINCT FROM {sides[1]})"


def _like(args: Sequence[str]) -> str:
    # Without ESCAPE, Spark escapes with a backslash, but DuckDB has no escape character.
    return f"({args[0]} LIKE {args[1]} ESCAPE {args[2] if args[2:] else _BACKSLASH})"


_BACKSLASH = "'\\'"
_STANDARD: dict[str, TextMaker] = {"case": _case, "<=>": _same, "like": _like}
"""The operators that SQL writes differently from a signature."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(sql_type: SqlType, value: ConstantValue) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_literals(sql_type.member, value))})"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if sql_type == STRING:
        return "'" + str(value).replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if sql_type == DATE:
        return f"DATE '{value}'"
    if isinstance(value, float):
        return _double(value)
    return format(value, "f") if sql_type == NUMERIC or sql_type.is_decimal else str(value)


def _double(value: float) -> str:
    """Return a DOUBLE literal; the exponent marks the literal as approximate in standard SQL, so no digits are lost."""
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE PRECISION)"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _literals(sql_type: SqlType, values: Iterable[ConstantValue]) -> list[str]:
    return [_literal(sql_type, value) for value in values]
