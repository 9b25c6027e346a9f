"""The scalar functions and operators available to a query, with their result types in Spark 4.

`spark_jobs` computes the functions listed here exactly as Spark does; any further function of Spark is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.functions.code_functions import CODE_ALIASES, CODE_FUNCTIONS, CODE_RESULTS
from grouping.functions.function import Function
from grouping.functions.text_functions import TEXT_ALIASES, TEXT_FUNCTIONS, TEXT_RESULTS
from grouping.model.decimal_types import WIDEST, decimal_result, exact_size
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    UNKNOWN,
    SqlType,
    decimal,
)

__all__ = ["ALIASES", "CASTING", "CASTS", "FUNCTIONS", "REDUCED", "REWRITTEN", "Function", "common_type", "result_type"]


_STRINGS = ("STRING", "STRING")

FUNCTIONS: dict[str, Function] = {
    **TEXT_FUNCTIONS,
    **CODE_FUNCTIONS,
    "upper": Function(("STRING",)),
    "lower": Function(("STRING",)),
    "length": Function(("TEXT",)),
    "octet_length": Function(("TEXT",)),
    "bit_length": Function(("TEXT",)),
    "ascii": Function(("STRING",)),
    "trim": Function(_STRINGS, 1),
    "ltrim": Function(_STRINGS, 1),
    "rtrim": Function(_STRINGS, 1),
    "substring": Function(("STRING", "INT", "INT"), 1),
    "split_part": Function(("STRING", "STRING", "INT")),
    "concat": Function(("STRING",), variadic=True),
    "concat_ws": Function(_STRINGS, 1, variadic=True),
    "replace": Function(("STRING", "STRING", "STRING"), 1),
    "translate": Function(("STRING", "STRING", "STRING")),
    "lpad": Function(("STRING", "COUNT", "STRING"), 1),
    "rpad": Function(("STRING", "COUNT", "STRING"), 1),
    "repeat": Function(("STRING", "COUNT")),
    "left": Function(("STRING", "INT")),
    "right": Function(("STRING", "INT")),
    "startswith": Function(_STRINGS),
    "endswith": Function(_STRINGS),
    "contains": Function(_STRINGS),
    "like": Function(("STRING", "LIKE", "ESCAPE"), 1),
    "ilike": Function(("STRING", "LIKE", "ESCAPE"), 1),
    "rlike": Function(("STRING", "PATTERN")),
    "instr": Function(_STRINGS),
    "locate": Function(("STRING", "STRING", "INT"), 1),
    "reverse": Function(("STRING",)),
    "abs": Function(("NUMBER",)),
    "ceil": Function(("NUMBER", "SCALE"), 1),
    "floor": Function(("NUMBER", "SCALE"), 1),
    "round": Function(("NUMBER", "SCALE"), 1),
    "bround": Function(("NUMBER", "SCALE"), 1),
    "sign": Function(("DOUBLE",)),
    "sqrt": Function(("DOUBLE",)),
    "exp": Function(("DOUBLE",)),
    "pow": Function(("DOUBLE", "DOUBLE")),
    "ln": Function(("DOUBLE",)),
    "log": Function(("DOUBLE", "DOUBLE"), 1),
    "log2": Function(("DOUBLE",)),
    "log10": Function(("DOUBLE",)),
    "shiftleft": Function(("WHOLE", "INT")),
    "shiftright": Function(("WHOLE", "INT")),
    "shiftrightunsigned": Function(("WHOLE", "INT")),
    "bit_count": Function(("WHOLE",)),
    "bin": Function(("WHOLE",)),
    "isnan": Function(("DOUBLE",)),
    "greatest": Function(("COMMON", "COMMON"), variadic=True),
    "least": Function(("COMMON", "COMMON"), variadic=True),
    "coalesce": Function(("COMMON",), variadic=True),
    "nullif": Function(("COMMON", "COMMON")),
    "year": Function(("DAY",)),
    "month": Function(("DAY",)),
    "day": Function(("DAY",)),
    "quarter": Function(("DAY",)),
    "weekofyear": Function(("DAY",)),
    "dayofyear": Function(("DAY",)),
    "dayofweek": Function(("DAY",)),
    "weekday": Function(("DAY",)),
    "hour": Function(("TIMESTAMP",)),
    "minute": Function(("TIMESTAMP",)),
    "second": Function(("TIMESTAMP",)),
    "date_add": Function(("DATE", "INT")),
    "date_sub": Function(("DATE", "INT")),
    "datediff": Function(("DATE", "DATE")),
    "add_months": Function(("DATE", "INT")),
    "timestampadd": Function(("UNIT", "WHOLE", "TIMESTAMP")),
    "timestampdiff": Function(("UNIT", "TIMESTAMP", "TIMESTAMP")),
    "date_part": Function(("FIELD", "DAY")),
    "date_format": Function(("TIMESTAMP", "FORMAT")),
    "to_timestamp": Function(("STRING", "FORMAT"), 1),
    "to_date": Function(("STRING", "FORMAT"), 1),
    "unix_timestamp": Function(("STRING", "FORMAT"), 1),
    "from_unixtime": Function(("WHOLE", "FORMAT"), 1),
    "from_utc_timestamp": Function(("TIMESTAMP", "ZONE")),
    "to_utc_timestamp": Function(("TIMESTAMP", "ZONE")),
    "make_timestamp": Function(("INT", "INT", "INT", "INT", "INT", "SECONDS", "ZONE"), 1),
    "months_between": Function(("TIMESTAMP", "TIMESTAMP", "BOOLEAN"), 1),
    "monthname": Function(("DAY",)),
    "dayname": Function(("DAY",)),
    "last_day": Function(("DATE",)),
    "next_day": Function(("DATE", "STRING")),
    "make_date": Function(("INT", "INT", "INT")),
    "trunc": Function(("DATE", "STRING")),
    "date_trunc": Function(("STRING", "TIMESTAMP")),
    "unix_date": Function(("DATE",)),
    "date_from_unix_date": Function(("INT",)),
    "unix_seconds": Function(("TIMESTAMP",)),
    "unix_millis": Function(("TIMESTAMP",)),
    "unix_micros": Function(("TIMESTAMP",)),
    "timestamp_seconds": Function(("WHOLE",)),
    "timestamp_millis": Function(("WHOLE",)),
    "timestamp_micros": Function(("WHOLE",)),
}
"""The functions by canonical name; functions of `REWRITTEN` are built from operators.

``trim`` and its like have the text first and the characters to trim second, whatever the spelling."""

REDUCED = frozenset(("ilike", "to_date", "unix_timestamp"))
"""Functions that are compiled as calls of others."""

ALIASES = {
    **TEXT_ALIASES,
    **CODE_ALIASES,
    "ucase": "upper",
    "lcase": "lower",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substr": "substring",
    "ceiling": "ceil",
    "signum": "sign",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "power": "pow",
    "btrim": "trim",
    "position": "locate",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "dayofmonth": "day",
    "dateadd": "date_add",
    "date_diff": "datediff",
    "datepart": "date_part",
    "to_unix_timestamp": "unix_timestamp",
    "try_to_timestamp": "to_timestamp",
    "try_make_timestamp": "make_timestamp",
    "make_timestamp_ltz": "make_timestamp",
    "try_make_timestamp_ltz": "make_timestamp",
    "timediff": "timestampdiff",
}
"""Spark's other names of the same functions."""

CASTING: dict[str, SqlType] = {
    sql_type.name.lower(): sql_type
    for sql_type in (
        BOOLEAN,
        TINYINT,
        SMALLINT,
        INT,
        BIGINT,
        FLOAT,
        DOUBLE,
        decimal(10, 0),
        STRING,
        DATE,
        TIMESTAMP,
        BINARY,
    )
}
"""Functions that are a CAST to the type of their name."""

_NUMBERS = Function(("NUMBER", "NUMBER"))
REWRITTEN: dict[str, Function] = {
    **dict.fromkeys(CASTING, Function(("ANY",))),
    "if": Function(("BOOLEAN", "COMMON", "COMMON")),
    "mod": _NUMBERS,
    "pmod": _NUMBERS,
    "try_add": _NUMBERS,
    "try_subtract": _NUMBERS,
    "try_multiply": _NUMBERS,
    "try_divide": _NUMBERS,
    "try_mod": _NUMBERS,
    "positive": Function(("NUMBER",)),
    "negative": Function(("NUMBER",)),
    "isnull": Function(("ANY",)),
    "isnotnull": Function(("ANY",)),
    "equal_null": Function(("COMMON", "COMMON")),
    **dict.fromkeys(("e", "pi"), Function(())),
    "nanvl": Function(("DOUBLE", "DOUBLE")),
    **dict.fromkeys(("nullifzero", "zeroifnull"), Function(("NUMBER",))),
    **dict.fromkeys(("to_binary", "try_to_binary"), Function(("STRING", "FORMAT"), 1)),
    "nvl2": Function(("ANY", "COMMON", "COMMON")),
    **dict.fromkeys(("to_number", "try_to_number"), Function(("STRING", "FORMAT"))),
    **dict.fromkeys(("to_char", "to_varchar"), Function(("WRITTEN", "FORMAT"))),
    "make_dt_interval": Function(("INT", "INT", "INT", "SECONDS"), 4),
    "make_ym_interval": Function(("INT", "INT"), 2),
}
"""Functions that are compiled as operators and CASTs, each with just its parameters."""

_WHOLE_NAMES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_FROM_WHOLE = frozenset(("BOOLEAN", *_WHOLE_NAMES, "FLOAT", "DOUBLE", "DECIMAL", "STRING", "TIMESTAMP"))
CASTS: dict[str, frozenset[str]] = {
    "STRING": frozenset(("BOOLEAN", *_WHOLE_NAMES, "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "BINARY")),
    "BOOLEAN": frozenset((*_WHOLE_NAMES, "FLOAT", "DOUBLE", "DECIMAL", "STRING")),
    **dict.fromkeys(_WHOLE_NAMES, _FROM_WHOLE),
    "FLOAT": frozenset(("BOOLEAN", *_WHOLE_NAMES, "DOUBLE", "DECIMAL")),
    "DOUBLE": frozenset(("BOOLEAN", *_WHOLE_NAMES, "FLOAT", "DECIMAL")),
    "DECIMAL": frozenset(("BOOLEAN", *_WHOLE_NAMES, "FLOAT", "DOUBLE", "DECIMAL", "STRING")),
    "DATE": frozenset(("TIMESTAMP", "STRING")),
    "TIMESTAMP": frozenset((*_WHOLE_NAMES, "DOUBLE", "DATE", "STRING")),
    "BINARY": frozenset(),
    "VARIANT": frozenset(
        """BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL STRING DATE TIMESTAMP BINARY VARIANT ARRAY MAP
        STRUCT""".split()
    ),
}
"""By the name of a type: the names of the types to which its values can be CAST."""

_RESULTS = {
    "BOOLEAN": "= <> < <= > >= <=> and or not in is_null like rlike between startswith endswith contains isnan",
    "STRING": "bin upper lower trim ltrim rtrim substring split_part concat concat_ws replace translate "
    "date_format from_unixtime monthname dayname left right lpad rpad repeat reverse",
    "INT": "bit_count "
    "length octet_length bit_length ascii instr locate year quarter month weekofyear day dayofyear dayofweek "
    "weekday hour minute second datediff unix_date",
    "BIGINT": "div unix_seconds unix_millis unix_micros unix_timestamp timestampdiff",
    "DOUBLE": "months_between sign sqrt exp pow ln log log2 log10",
    "DATE": "to_date date_add date_sub add_months last_day next_day make_date trunc date_from_unix_date",
    "TIMESTAMP": "from_utc_timestamp to_utc_timestamp make_timestamp to_timestamp timestampadd "
    " date_trunc timestamp_seconds timestamp_millis timestamp_micros",
}
_FIXED = {op: SqlType(kind) for kind, ops in _RESULTS.items() for op in ops.split()} | TEXT_RESULTS | CODE_RESULTS
_WHOLE = (TINYINT, SMALLINT, INT, BIGINT)
_SHIFTS = frozenset(("shiftleft", "shiftright", "shiftrightunsigned"))
_OF_FIRST = frozenset(("neg", "~", "abs", "nullif"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "pmod"))
_TO_WHOLE = frozenset(("ceil", "floor", "round", "bround"))


def result_type(op: str, kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of an operator's or function's result over arguments of these types.

    The type of an argument is `UNKNOWN` if only the row's constants give it; a result that depends on an unknown
    argument is `UNKNOWN` too. ``cast`` carries its own type.

    Example:
        >>> str(result_type("+", [INT, BIGINT])), str(result_type("*", [DOUBLE, UNKNOWN]))
        ('BIGINT', 'DOUBLE')
        >>> result_type("-", [INT, UNKNOWN]) == UNKNOWN
        True
    """
    if op in _FIXED:
        return _FIXED[op]
    if op in _OF_FIRST:
        return kinds[0]
    if op in _ARITHMETIC and DOUBLE not in kinds and FLOAT not in kinds:
        if UNKNOWN in kinds:
            return UNKNOWN
        if any(sql_type.is_decimal for sql_type in kinds):
            return decimal_result(op, kinds[0], kinds[1])
    if op == "/":
        return DOUBLE
    if op in _SHIFTS:
        return kinds[0] if kinds[0] in (BIGINT, UNKNOWN) else INT
    if op in _TO_WHOLE:
        return _whole(op, kinds[0])
    if op == "case":
        kinds = [sql_type for i, sql_type in enumerate(kinds) if i % 2 or (i == len(kinds) - 1)]
    return common_type(kinds) or UNKNOWN


def _whole(op: str, sql_type: SqlType) -> SqlType:
    """Return the type of a rounded number."""
    if sql_type.is_decimal:
        digits = sql_type.precision - sql_type.scale
        return decimal(min(digits + (op in ("round", "bround") or sql_type.scale > 0), WIDEST), 0)
    return sql_type if op in ("round", "bround") or sql_type == UNKNOWN else BIGINT


def common_type(kinds: Sequence[SqlType]) -> SqlType | None:
    """Return the type that values of these types widen to, as Spark's implicit casts do, or None when there is none."""
    known = {sql_type for sql_type in kinds if sql_type != UNKNOWN}
    if not all(sql_type.is_number for sql_type in known):
        return known.pop() if len(known) == 1 else None
    if len(known) == 1 and len(kinds) == 1:
        return known.pop()
    if known == {FLOAT} and UNKNOWN not in kinds:
        return FLOAT
    if known & {FLOAT, DOUBLE}:
        return DOUBLE  # Spark has no FLOAT of whole numbers
    if UNKNOWN in kinds:
        return UNKNOWN
    if known <= set(_WHOLE):
        return max(known, key=_WHOLE.index)
    return _common_decimal(known)


def _common_decimal(kinds: set[SqlType]) -> SqlType | None:
    sizes = [exact_size(sql_type) for sql_type in kinds]
    scale = max(size[1] for size in sizes)
    precision = max(size[0] - size[1] for size in sizes) + scale
    return decimal(precision, scale) if precision <= WIDEST else None
