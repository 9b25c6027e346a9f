"""A generated expression in our SQL, and in Spark's SQL with the ``try_`` forms."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isnan

from grouping.model.expression import Call, Column, Expression, Value

__all__ = ["our_text", "spark_text"]

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_INFIX = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "div", "rlike", *_TRY))
_LEAST = {"INT": "(-2147483648)", "BIGINT": "(-9223372036854775807L - 1L)"}
_BEYOND = 2**63
"""The first whole number that is no BIGINT."""
_SIDES = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}


def our_text(expression: Expression) -> str:
    """Return the expression in the SQL of docs/expressions.md."""
    match expression:
        case Column(name):
            return name
        case Value(value, kind):
            return _our_literal(value, kind)
        case Call(op, args, kind):
            return _common(op, [our_text(argument) for argument in args], kind, "cast")
    raise AssertionError(expression)


def spark_text(expression: Expression) -> str:
    """Return the expression as Spark SQL that gives NULL where an operator fails."""
    match expression:
        case Column(name):
            return name
        case Value(value, kind):
            return _spark_literal(value, kind)
        case Call(op, args, kind):
            texts = [spark_text(argument) for argument in args]
            special = _SPARK.get(op)
            if special is not None and (made := special(texts, args[0].type_text if args else "", kind)):  # type: ignore[union-attr]
                return made
            if op in _TRY:
                return f"{_TRY[op]}({', '.join(texts)})"
            return _common(op, texts, kind, "try_cast")
    raise AssertionError(expression)


def _common(op: str, texts: list[str], kind: str, cast: str) -> str:
    """Return the text that both dialects share."""
    if op in _INFIX:
        return "(" + f" {op} ".join(texts) + ")"
    match op:
        case "cast":
            return f"{cast}({texts[0]} AS {kind})"
        case "like" | "ilike":
            return f"({texts[0]} {op} {texts[1]}{f' ESCAPE {texts[2]}' if len(texts) > 2 else ''})"
        case "in":
            return f"({texts[0]} IN ({', '.join(texts[1:])}))"
        case "between":
            return f"({texts[0]} BETWEEN {texts[1]} AND {texts[2]})"
        case "not":
            return f"(NOT {texts[0]})"
        case "neg":
            return f"(- {texts[0]})"
        case "is_null":
            return f"({texts[0]} IS NULL)"
        case "case":
            branches = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(texts[::2], texts[1::2], strict=False))
            return f"(CASE {branches}{f' ELSE {texts[-1]}' if len(texts) % 2 else ''} END)"
        case "trim" | "ltrim" | "rtrim" if len(texts) > 1:
            return f"trim({_SIDES[op]} {texts[1]} FROM {texts[0]})"
    return f"{op}({', '.join(texts)})"


def _our_literal(value: object, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind == "STRING":
        return "'" + str(value).replace("'", "''") + "'"
    if kind in ("DATE", "TIMESTAMP"):
        return f"{kind} '{value}'"
    if kind == "BIGINT":
        return f"CAST({value} AS BIGINT)"
    if kind == "DOUBLE":
        return f"CAST('{value}' AS DOUBLE)" if isnan(float(str(value))) else format(float(str(value)), ".17e")
    return str(value)


def _spark_literal(value: object, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind == "STRING":
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind in ("DATE", "TIMESTAMP"):
        return f"{kind} '{value}'"
    if kind == "BIGINT":
        return f"CAST({value} AS BIGINT)"
    if kind.startswith("DECIMAL") and abs(number := Decimal(str(value))) >= _BEYOND:
        # As a literal it decides a comparison with a whole number, even with NULL: the only place where Spark's NULL is
        # not SQL's (its rule `integralAndDecimalLiteral`).
        _, digits, exponent = number.as_tuple()
        return f"CAST('{number}' AS DECIMAL({len(digits)},{-int(exponent)}))"
    return f"CAST('{value}' AS DOUBLE)" if kind == "DOUBLE" else str(value)


def _whole_division(texts: list[str], _: str, __: str) -> str:
    least = f"{texts[0]} = {_LEAST['BIGINT']} AND {texts[1]} = -1"
    return f"(CASE WHEN {texts[1]} = 0 OR ({least}) THEN NULL ELSE {texts[0]} div {texts[1]} END)"


def _negation(texts: list[str], _: str, kind: str) -> str:
    if texts[0].replace(".", "").isdecimal():
        return f"(- {texts[0]})"  # a literal of its own, with a type of its own beside a DECIMAL
    return "" if kind not in _LEAST else f"try_subtract({'0' if kind == 'INT' else '0L'}, {texts[0]})"


def _size(texts: list[str], _: str, kind: str) -> str:
    return "" if kind not in _LEAST else f"(CASE WHEN {texts[0]} <> {_LEAST[kind]} THEN abs({texts[0]}) END)"


def _kept_in_calendar(op: str) -> Callable[[list[str], str, str], str]:
    def text(texts: list[str], _: str, __: str) -> str:
        moved = f"{op}({', '.join(texts)})"
        return f"(CASE WHEN {moved} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31' THEN {moved} END)"

    return text


def _add_months(texts: list[str], _: str, __: str) -> str:
    near = _kept_in_calendar("add_months")(texts, _, __)
    return f"(CASE WHEN {texts[1]} BETWEEN -200000 AND 200000 THEN {near} END)"


def _cast(texts: list[str], source: str, kind: str) -> str:
    if kind == "DATE" and source == "STRING":
        return _to_date(texts, source, kind)
    return _seconds("cast", 1)(texts, source, kind)


def _to_date(texts: list[str], _: str, __: str) -> str:
    made = f"try_cast({texts[0]} AS DATE)"
    return f"(CASE WHEN {made} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31' THEN {made} END)"


def _seconds(op: str, per_second: int) -> Callable[[list[str], str, str], str]:
    """Write a TIMESTAMP of a count of units."""

    def text(texts: list[str], source: str, kind: str) -> str:
        if kind != "TIMESTAMP" or source not in _LEAST:
            return ""
        made = f"try_cast({texts[0]} AS TIMESTAMP)" if op == "cast" else f"{op}({texts[0]})"
        first, last = -62_135_596_800 * per_second, 253_402_300_800 * per_second - 1
        return f"(CASE WHEN {texts[0]} BETWEEN {first}L AND {last}L THEN {made} END)"

    return text


def _make_date(texts: list[str], _: str, __: str) -> str:
    year, month, day = texts
    made = f"try_cast(format_string('%04d-%02d-%02d', {year}, {month}, {day}) AS DATE)"
    within = f"{year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
    return f"(CASE WHEN {within} THEN {made} END)"


def _next_day(texts: list[str], _: str, __: str) -> str:
    known = ", ".join(f"'{day[:size]}'" for day in _DAYS for size in (2, 3, 10))
    return f"(CASE WHEN upper({texts[1]}) IN ({known}) THEN {_kept_in_calendar('next_day')(texts, _, __)} END)"


_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _rounded(op: str) -> Callable[[list[str], str, str], str]:
    def text(texts: list[str], _: str, kind: str) -> str:
        if kind not in _LEAST:
            return ""
        return f"try_cast({op}({', '.join([f'CAST({texts[0]} AS DECIMAL(20,0))', *texts[1:]])}) AS {kind})"

    return text


_SPARK: dict[str, Callable[[list[str], str, str], str]] = {
    "div": _whole_division,
    "pmod": lambda texts, _, __: f"(CASE WHEN {texts[1]} <> 0 THEN pmod({', '.join(texts)}) END)",
    "neg": _negation,
    "abs": _size,
    "date_add": _kept_in_calendar("date_add"),
    "date_sub": _kept_in_calendar("date_sub"),
    "date_from_unix_date": _kept_in_calendar("date_from_unix_date"),
    "add_months": _add_months,
    "make_date": _make_date,
    "next_day": _next_day,
    "cast": _cast,
    "timestamp_seconds": _seconds("timestamp_seconds", 1),
    "timestamp_millis": _seconds("timestamp_millis", 1000),
    "timestamp_micros": _seconds("timestamp_micros", 1_000_000),
    "split_part": lambda texts, _, __: f"(CASE WHEN {texts[2]} <> 0 THEN split_part({', '.join(texts)}) END)",
    "round": _rounded("round"),
    "bround": _rounded("bround"),
    "to_date": _to_date,
    "to_timestamp": lambda texts, _, __: f"try_cast({texts[0]} AS TIMESTAMP)",
}
"""Expressions without a ``try_`` form: wrapped to be NULL where the function fails, or leaves the calendar."""
