"""Arithmetic, casts and functions that DuckDB computes exactly like Spark (docs/expressions.md).

As in the evaluator, an operation that fails on an event gives NULL. Sums, differences and products of whole numbers are
computed as DECIMALs, and ``div`` and ``%`` as HUGEINTs: both are large enough for every result, and TRY_CAST turns a
result outside its type into NULL. The operator ``/`` divides in DOUBLE PRECISION. The SQL of an argument may occur
twice only if no part of this SQL occurs twice, so the length of a filter is proportional to the length of its query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grouping.model.expression import Call, Column, Slot, walk
from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, SqlType

__all__ = ["TextMaker", "form_of"]

TextMaker = Callable[[Sequence[str]], str]
"""Returns the SQL of an expression from the SQL of its arguments; the result can be an operand of any operator."""

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_NAMES = {"STRING": "VARCHAR", "DOUBLE": "DOUBLE PRECISION", "INT": "INTEGER"}
_WIDEST = 37
_SHORT = 18
"""The most digits of a DECIMAL that DuckDB computes in 64 bits."""
_FIRST_MICROSECOND, _LAST_MICROSECOND = -62_135_596_800_000_000, 253_402_300_799_999_999


def form_of(call: Call, kinds: Sequence[SqlType], result: SqlType) -> TextMaker | None:
    """Return the SQL maker for an operator or function over arguments of the given types; None if no exact SQL exists.

    Example:
        >>> from grouping.model.sql_type import INT
        >>> plus = Call("+", (Column("n", "INT"), Slot(0)), "")
        >>> form_of(plus, [INT, INT], INT)(["n", "1"])
        'TRY_CAST(CAST(n AS DECIMAL(19,0)) + CAST(1 AS DECIMAL(19,0)) AS INTEGER)'
        >>> form_of(Call("lower", (Column("s", "STRING"),), "STRING"), [STRING], STRING) is None
        True
    """
    if call.op == "cast":
        return _cast(kinds[0], result)
    if call.op in _ARITHMETIC:
        return _arithmetic(_ARITHMETIC[call.op], kinds, result)
    if call.op in ("neg", "abs"):
        return _turned("-" if call.op == "neg" else "abs", kinds[0])
    if call.op in _OF_ONE_TYPE:
        return _of_one_type(call.op, kinds, result)
    if call.op in _FIELDS and kinds[0] in (DATE, TIMESTAMP):
        return _FIELDS[call.op]
    if call.op in _MOVED:
        return _MOVED[call.op](call, kinds)
    wanted, form = _FUNCTIONS.get(call.op, ((), None))
    return form if tuple(kinds) == wanted else None


def _sql(sql_type: SqlType) -> str:
    return _NAMES.get(str(sql_type), str(sql_type))


def _whole(sql_type: SqlType) -> bool:
    return sql_type.name in _DIGITS


def _as(kind: str) -> Callable[[str], str]:
    return lambda text: f"CAST({text} AS {kind})"


def _arithmetic(op: str, kinds: Sequence[SqlType], result: SqlType) -> TextMaker | None:
    if all(sql_type == DOUBLE or _whole(sql_type) for sql_type in kinds):
        if op == "/" or result == DOUBLE:
            return _between(op, _as("DOUBLE PRECISION"), result)
        wide = _as("DECIMAL(19,0)" if op in "+-*" else "HUGEINT")
        return _between(op, wide, result) if _whole(result) else None
    if (
        op in "+-*"
        and all(sql_type.is_decimal or _whole(sql_type) for sql_type in kinds)
        and result.precision <= _WIDEST
    ):
        common = f"DECIMAL({result.precision},{result.scale})"
        left, right = map(_as, _factors(kinds) if op == "*" else (common, common))
        return lambda args: f"({left(args[0])} {op} {right(args[1])})"
    return None


def _factors(kinds: Sequence[SqlType]) -> list[str]:
    """Return the SQL types to which the factors of a product are cast; the factors are DECIMALs or whole numbers.

    If both factors have at most 18 digits, DuckDB gives the product 18 digits, and fails if the product needs more. If
    a factor has 19 digits, the product has as many digits as it needs.
    """
    forms = [(each.precision, each.scale) if each.is_decimal else (_DIGITS[each.name], 0) for each in kinds]
    (left, scale), (right, _) = forms
    if max(left, right) <= _SHORT < left + right:
        forms[0] = _SHORT + 1, scale
    return [f"DECIMAL({precision},{scale})" for precision, scale in forms]


def _between(op: str, wide: Callable[[str], str], result: SqlType) -> TextMaker:
    def form(args: Sequence[str]) -> str:
        left, right = map(wide, args)
        divided = op in ("/", "//", "%")
        text = f"{left} {op} {f'NULLIF({right}, 0)' if divided else right}"
        return f"({text})" if result == DOUBLE else f"TRY_CAST({text} AS {_sql(result)})"

    return form


def _turned(sign: str, sql_type: SqlType) -> TextMaker | None:
    if sql_type == DOUBLE:
        return lambda args: f"({sign}({args[0]}))"
    if not _whole(sql_type):
        return None
    return lambda args: f"TRY_CAST({sign}(CAST({args[0]} AS DECIMAL(19,0))) AS {_sql(sql_type)})"


def _cast(sql_type: SqlType, result: SqlType) -> TextMaker | None:
    to = _sql(result)
    if _whole(sql_type) and (_whole(result) or result in (DOUBLE, STRING)):
        return lambda args: f"TRY_CAST({args[0]} AS {to})"
    if sql_type == DOUBLE and _whole(result) and result != BIGINT:
        return lambda args: f"TRY_CAST(trunc({args[0]}) AS {to})"
    if (sql_type == BOOLEAN and (_whole(result) or result == STRING)) or (sql_type, result) in _TIMES:
        return lambda args: f"CAST({args[0]} AS {to})"
    if (_whole(sql_type) or sql_type == DOUBLE) and result == BOOLEAN:
        return lambda args: f"(({args[0]}) <> 0)"
    return (lambda args: f"CAST({args[0]} AS {to})") if sql_type == result else None


def _of_one_type(op: str, kinds: Sequence[SqlType], result: SqlType) -> TextMaker | None:
    """Return the SQL maker for an operator on bits, or for greatest or least, over arguments of one type."""
    if len({*kinds}) > 1 or not (_whole(kinds[0]) or (op in _CHOSEN and kinds[0] in _ORDERED)):
        return None
    if op in _CHOSEN:
        return _named(op)
    if op == "~":
        return lambda args: f"CAST(~({args[0]}) AS {_sql(result)})"
    sign = _OF_ONE_TYPE[op]
    if sign.isalpha():
        return lambda args: f"CAST({sign}({args[0]}, {args[1]}) AS {_sql(result)})"
    return lambda args: f"CAST(({args[0]}) {sign} ({args[1]}) AS {_sql(result)})"


def _between_times(call: Call, kinds: Sequence[SqlType]) -> TextMaker | None:
    """Return the SQL maker for the number of microseconds from one TIMESTAMP to another."""
    if "MICROSECOND" not in str(getattr(call.args[0], "value", "")) or {*kinds[1:]} != {TIMESTAMP}:
        return None
    return lambda args: f"(epoch_us({args[2]}) - epoch_us({args[1]}))"


def _later(call: Call, kinds: Sequence[SqlType]) -> TextMaker | None:
    """Return the SQL maker for a TIMESTAMP plus a number of microseconds."""
    if not isinstance(call.args[2], Column) or "MICROSECOND" not in str(getattr(call.args[0], "value", "")):
        return None
    if kinds[2] != TIMESTAMP or not _whole(kinds[1]):
        return None
    if any(isinstance(part, Call) and part.op == call.op for part in walk(call.args[1])):
        return None  # the SQL has the count twice, so each level of nesting would double the length of the filter

    def form(args: Sequence[str]) -> str:
        moved = f"CAST(epoch_us({args[2]}) AS DECIMAL(19,0)) + CAST({args[1]} AS DECIMAL(19,0))"
        last = f"{moved} BETWEEN {_FIRST_MICROSECOND} AND {_LAST_MICROSECOND}"
        return f"(CASE WHEN {last} THEN make_timestamp(CAST({moved} AS BIGINT)) END)"

    return form


def _days(sign: str) -> Callable[[Call, Sequence[SqlType]], TextMaker | None]:
    """Return the form of a DATE plus or minus a number of days."""

    def moved(call: Call, kinds: Sequence[SqlType]) -> TextMaker | None:
        if kinds[0] != DATE or not _whole(kinds[1]) or any(isinstance(part, Call) for part in call.args):
            return None

        def form(args: Sequence[str]) -> str:
            day, days = args[0], f"({sign}CAST({args[1]} AS BIGINT))"
            within = f"{days} BETWEEN DATE '0001-01-01' - {day} AND DATE '9999-12-31' - {day}"
            return f"(CASE WHEN {within} THEN {day} + CAST({days} AS INTEGER) END)"

        return form

    return moved


def _part(call: Call, kinds: Sequence[SqlType]) -> TextMaker | None:
    """Return the SQL maker for a substring. As in Spark, position 0 means position 1, and a negative length means 0."""
    if kinds[0] != STRING or not all(isinstance(part, Slot) for part in call.args[1:]):
        return None
    if call.op == "substring":
        return lambda args: (
            f"substring({args[0]}, CASE WHEN {args[1]} = 0 THEN 1 ELSE {args[1]} END"
            + "".join(f", {_counted(count)}" for count in args[2:])
            + ")"
        )
    return lambda args: f'"{call.op}"({args[0]}, {_counted(args[1])})'


def _counted(count: str) -> str:
    return f"CASE WHEN {count} < 0 THEN 0 ELSE {count} END"


def _named(name: str, *turned: int) -> TextMaker:
    return lambda args: f"{name}({', '.join(args[i] for i in turned or range(len(args)))})"


def _field(name: str, added: str = "") -> TextMaker:
    return lambda args: f"(EXTRACT({name} FROM {args[0]}){added})"


_CHOSEN = frozenset(("greatest", "least"))
_ORDERED = frozenset((DOUBLE, STRING, DATE, TIMESTAMP, BOOLEAN))
_OF_ONE_TYPE = {"&": "&", "|": "|", "^": "xor", "~": "~", "greatest": "greatest", "least": "least"}
_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "div": "//"}
_TIMES = frozenset(((DATE, STRING), (DATE, TIMESTAMP), (TIMESTAMP, DATE)))
_MOVED = {
    "timestampadd": _later,
    "timestampdiff": _between_times,
    "date_add": _days(""),
    "date_sub": _days("-"),
    "substring": _part,
    "left": _part,
    "right": _part,
}
_FIELDS = {
    **{name: _field(name.upper()) for name in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "dayofyear": _field("DOY"),
    "dayofweek": _field("DOW", " + 1"),
    "weekday": _field("ISODOW", " - 1"),
    "weekofyear": _field("WEEK"),
}
_FUNCTIONS: dict[str, tuple[tuple[SqlType, ...], TextMaker]] = {
    "contains": ((STRING, STRING), _named("contains")),
    "startswith": ((STRING, STRING), _named("starts_with")),
    "endswith": ((STRING, STRING), _named("ends_with")),
    "instr": ((STRING, STRING), _named("strpos")),
    "locate": ((STRING, STRING), _named("strpos", 1, 0)),
    "length": ((STRING,), _named("length")),
    "trim": ((STRING,), lambda args: f"trim({args[0]}, ' ')"),
    "ltrim": ((STRING,), lambda args: f"ltrim({args[0]}, ' ')"),
    "rtrim": ((STRING,), lambda args: f"rtrim({args[0]}, ' ')"),
    "octet_length": ((STRING,), _named("strlen")),
    "last_day": ((DATE,), _named("last_day")),
    "unix_date": ((DATE,), lambda args: f"({args[0]} - DATE '1970-01-01')"),
    "unix_micros": ((TIMESTAMP,), _named("epoch_us")),
    "datediff": ((DATE, DATE), lambda args: f"({args[0]} - {args[1]})"),
    "isnan": ((DOUBLE,), lambda args: f"coalesce(isnan({args[0]}), FALSE)"),
}
