"""Generated expressions over columns of every type, and the edge values of these."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from grouping.model.expression import Call, Column, Expression, Value

__all__ = ["COLUMNS", "ROWS", "Generator", "data"]

COLUMNS = {
    "i": "INT", "j": "INT", "l": "BIGINT", "m": "BIGINT", "x": "DOUBLE", "y": "DOUBLE", "s": "STRING", "t": "STRING",
    "n": "DECIMAL(10,2)", "o": "DECIMAL(18,4)", "big": "DECIMAL(38,6)",
    "d": "DATE", "e": "DATE", "ts": "TIMESTAMP", "us": "TIMESTAMP", "f": "BOOLEAN", "g": "BOOLEAN",
}  # fmt: skip

ROWS = 120

_EDGES: dict[str, list[object]] = {
    "INT": [0, 1, -1, 2, 3, -7, 12, 2**31 - 1, -(2**31)],
    "BIGINT": [0, 1, -1, 5, -3, 2**53 + 1, 2**63 - 1, -(2**63)],
    "DOUBLE": [
        0.0, -0.0, 1.0, -2.5, 2.5, 0.1, 5e-324, 1e308, float("inf"), float("-inf"), float("nan"), 2.0**63, -1e19
    ],
    "STRING": [
        "", " ", "a", "aB a", " ab ", "é", "\U0001f600b", "ß", "b%_a", "12", " -7 ", "1.5", "x" * 30, "Σας", "\tq\n",
        "+5", "99999999999", "",
        "1",
        "-17",
        " 42 ",
        "+3",
        "1.5",
        "2147483648",
        "true",
        "F",
        "yes",
        "nan",
        "-Inf",
        "1e3",
        "0x1",
        ".5",
        "5.",
        "1e400",
        "2024-02-29",
        "2023-02-29",
        "2024-2-3",
        "2024",
        "2024-02",
        " 2024-02-03 ",
        "2024-02-03T10:00",
        "1d",
        "\t7\n",
        "12345678901234567890.123",
        "1_000",
        "--1",
        "+",
        "10000-01-01",
        "2024-02-03 junk",
        "１",
    ],
    "DATE": [date(1, 1, 1), date(1582, 10, 15), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "TIMESTAMP": [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2026, 11, 21, 12, 30, 15, 5, tzinfo=UTC),
        datetime(2000, 2, 29, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC) + timedelta(microseconds=1),
    ],
    "BOOLEAN": [True, False],
    "DECIMAL(10,2)": [*map(Decimal, ("0.00", "1.00", "-2.50", "0.05", "99999999.99", "-99999999.99", "12.34"))],
    "DECIMAL(18,4)": [*map(Decimal, ("0", "1.0000", "2.5000", "-0.0001", "99999999999999.9999", "3.3333"))],
    "DECIMAL(38,6)": [*map(Decimal, ("0", "1", "-7.000001", "9" * 32 + ".999999", "-1" + "0" * 31, "0.5"))],
}  # fmt: skip

_DECIMALS = ["0.5", "1.25", "-3.0", "100.0", "0.0001", "12345678901234567890.5"]

_VALUES: dict[str, list[object]] = {
    "INT": [0, 1, -1, 2, 3, 7, -5, 2147483647, None],
    "BIGINT": [0, 1, -1, 3, 9007199254740993, 9223372036854775807],
    "DOUBLE": [0.0, 0.5, -1.5, 2.0, 1e300, "NaN"],
    "STRING": ["", "a", "b", "é", "ab", " ", "😀", "A", "it's", "\\"],
    "BOOLEAN": [True, False, None],
    "DATE": ["2024-02-29", "1969-12-31"],
    "TIMESTAMP": ["2026-11-21 12:30:15.000005"],
}


def data() -> dict[str, list[object]]:
    """Return the columns' values: each edge, and NULLs, in every column, in mixed company."""
    rng = random.Random(7)
    return {
        name: [_value(rng, kind) for _ in range(ROWS - len(_EDGES[kind]))] + _EDGES[kind]
        for name, kind in COLUMNS.items()
    }


def _value(rng: random.Random, kind: str) -> object:
    if rng.random() < 0.5 or kind not in _DRAWN:
        return rng.choice([*_EDGES[kind], None])
    return _DRAWN[kind](rng)


_DRAWN: dict[str, Callable[[random.Random], object]] = {
    "INT": lambda rng: rng.randint(-1000, 100_000),
    "BIGINT": lambda rng: rng.randint(-(10**12), 10**12),
    "DOUBLE": lambda rng: rng.choice((rng.gauss(0, 30), rng.uniform(0, 1e6), round(rng.uniform(-50, 50), 3))),
    "DATE": lambda rng: date.fromordinal(rng.randint(1, date.max.toordinal())),
    "TIMESTAMP": lambda rng: (
        datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randint(-(5 * 10**16), 10**15))
    ),
    "STRING": lambda rng: "".join(rng.choices("aAbBéß 0123_%.-\n", k=rng.randint(0, 8))),
}


class Generator:
    """Random expressions of a type."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, kind: str, depth: int) -> Expression:
        """Return an expression of that type and depth; ``FLAG`` is a BOOLEAN that is no predicate."""
        if kind == "DECIMAL=":
            return Value(self._random.choice(_DECIMALS), "DECIMAL")
        if kind == "DECIMAL":
            return self._decimal(depth)
        if kind == "TEXT":
            return Column(self._random.choice("st"), "STRING")
        if kind in _CONSTANTS:
            value = self._random.choice(_CONSTANTS[kind])
            return Value(value, "INT" if isinstance(value, int) else "STRING")
        if kind.endswith("=") or depth == 0 or self._random.random() < 0.1:
            return self._leaf(kind)
        op, args = self._random.choice(GRAMMAR[kind])
        made = tuple(self.make(argument, depth - 1) for argument in args)
        return Call(op, made, "BOOLEAN" if kind == "FLAG" else kind)

    def _decimal(self, depth: int) -> Expression:
        """Return a DECIMAL of whatever size: its type is not known to the generator."""
        if depth == 0 or self._random.random() < 0.3:
            name = self._random.choice([name for name, of in COLUMNS.items() if of.startswith("DECIMAL")])
            return self._random.choice((Column(name, COLUMNS[name]), Value(self._random.choice(_DECIMALS), "DECIMAL")))
        op, args = self._random.choice(GRAMMAR["DECIMAL"])
        return Call(op, tuple(self.make(argument, depth - 1) for argument in args), "DECIMAL")

    def _leaf(self, kind: str) -> Expression:
        constant = kind.endswith("=")
        kind = "BOOLEAN" if kind == "FLAG" else kind.removesuffix("=")
        if constant or (kind in _VALUES and self._random.random() < 0.3):
            value = self._random.choice(_VALUES[kind])
            return Value(float(value) if kind == "DOUBLE" else value, kind)  # type: ignore[arg-type]
        return Column(self._random.choice([name for name, of in COLUMNS.items() if of == kind]), kind)


_LETTERS = {
    "i": "INT", "l": "BIGINT", "x": "DOUBLE", "s": "STRING", "b": "BOOLEAN", "d": "DATE", "t": "TIMESTAMP",
    "N": "DECIMAL=", "I": "INT=", "L": "BIGINT=", "X": "DOUBLE=", "S": "STRING=", "D": "DATE=", "T": "TIMESTAMP=",
    "f": "FLAG",
    "n": "DECIMAL", "k": "SCALE", "p": "PATTERN", "w": "LIKE", "u": "UNIT", "c": "COUNT", "y": "DAYNAME", "v": "TEXT",
}  # fmt: skip
"""Small letters are expressions, capital ones constants; the rest are constants of a kind."""

_CONSTANTS: dict[str, list[str | int]] = {
    "SCALE": [0, 1, 2, -1, -2, 5],
    "COUNT": [0, 1, 3, 12, -1],
    "LIKE": ["%", "_", "a%", "%a", "%\\%%", "\\_", "", "a_", "%é%", "a\nb", ".*", "b\\%\\_a"],
    "PATTERN": [
        "a",
        "^a",
        "b$",
        "^.$",
        "^[a-c ]*$",
        "[^a-z]",
        "\\d+",
        "^\\s",
        "(?i)AB",
        "(?i)^[A-B]b?",
        "a|é|^$",
        "(ab|\U0001f600)+",
        "\\.",
        "%",
        "^.{2,3}$",
        "x{10}",
        "\\W",
        "[\\w-]$",
        "a.*b",
    ],
    "UNIT": [
        "year",
        "YYYY",
        "yy",
        "quarter",
        "MONTH",
        "mon",
        "mm",
        "Week",
        "day",
        "dd",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "no unit",
    ],
    "DAYNAME": ["mon", "TU", "Wednesday", "su", "no day"],
}


def _rules(text: str) -> list[tuple[str, tuple[str, ...]]]:
    rules = [rule.rsplit(":", 1) for rule in text.split()]
    return [(op, tuple(_LETTERS[letter] for letter in letters)) for op, letters in rules]


_COMPARE = " ".join(
    f"{op}:{pair}"
    for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    for pair in (
        "ii",
        "il",
        "lx",
        "xx",
        "nn",
        "nx",
        "nI",
        "ni",
        "ss",
        "dd",
        "tt",
        "ff",
        "iI",
        "lL",
        "xX",
        "sS",
        "dD",
        "tT",
    )
)
GRAMMAR = {
    "BOOLEAN": _rules(_COMPARE + " "
        "and:bb or:bb and:bbb or:bbb not:b is_null:x is_null:s and:bb or:bb and:bbb or:bbb not:b is_null:x "
        "is_null:s and:bb or:bb and:bbb or:bbb not:b is_null:x is_null:s and:bb or:bb and:bbb or:bbb not:b "
        "is_null:x is_null:s and:bb or:bb and:bbb or:bbb not:b is_null:x is_null:s startswith:ss endswith:ss "
        "contains:ss case:bbb coalesce:bb like:sw ilike:sw ilike:sw "
        "between:iII between:xxx between:ddd between:lxL in:iIII in:sSSS "
        "in:xXX in:lLLL in:dDD in:sss in:iiI in:nII rlike:sp rlike:sp isnan:x isnull:s isnotnull:i equal_null:ss "
        "cast:v cast:v cast:i cast:x cast:n between:nnn "
    ),
    "FLAG": _rules(
        "coalesce:bb case:bbb startswith:ss contains:ss "
    ),
    "INT": _rules(
        "+:ii -:ii *:ii %:ii neg:i abs:i length:s instr:ss pmod:ii year:d month:d day:d dayofweek:d year:t hour:t "
        "minute:t second:t datediff:dd greatest:iii least:ii coalesce:ii nullif:ii case:bii case:bibi cast:l "
        "cast:x cast:b cast:s cast:v cast:t cast:n round:ik bround:ik round:i weekofyear:d quarter:d dayofyear:t "
        "weekday:d ascii:s octet_length:s bit_length:s locate:ss unix_date:d pmod:ii try_add:ii nvl2:sii "
    ),
    "BIGINT": _rules(
        "+:ll -:li *:ll *:il %:ll div:ll div:ii neg:l abs:l ceil:x floor:x pmod:ll greatest:ll coalesce:ll "
        "case:bll cast:i cast:x cast:s cast:v cast:t cast:n round:lk bround:lk unix_seconds:t unix_millis:t "
        "unix_micros:t "
    ),
    "DECIMAL": _rules(
        "+:nn -:nn *:nn /:nn %:nn +:nI *:nI -:iN *:lN /:Nn /:nI %:nI +:in *:nl -:nN *:nN neg:n abs:n round:n "
        "floor:n ceil:n coalesce:nn case:bnn +:nn *:nn "
    ),
    "DECIMAL(12,3)": _rules(
        "cast:n cast:i cast:s cast:v cast:l "
    ),
    "DOUBLE": _rules(
        "+:xx -:xl *:xx /:xx /:ii /:ll %:xx neg:x abs:x sign:x sqrt:x greatest:xx least:xxx coalesce:xx nullif:xx "
        "case:bxx cast:i cast:l pmod:xx exp:x ln:x log10:x log2:x log:xx log:x pow:xx power:xi round:xk bround:xk "
        "round:x cast:s cast:v cast:n cast:b +:xn *:nx /:nx sqrt:n atan:x atan2:xx cbrt:x hypot:xx expm1:x log1p:x "
        "asinh:x tanh:x asin:x acos:x sinh:x cosh:x acosh:x atanh:x "
    ),
    "STRING": _rules(
        "upper:s lower:s trim:s ltrim:s rtrim:s trim:ss substring:si substring:sii concat:sss replace:sss left:si "
        "right:si reverse:s coalesce:ss nullif:ss case:bss greatest:ss cast:i cast:l cast:b cast:d cast:t cast:n "
        "repeat:sc lpad:scs rpad:scs lpad:sc rpad:sc concat_ws:sss concat_ws:ss concat_ws:ssss translate:sss "
        "split_part:ssk btrim:s btrim:ss nvl2:iss "
    ),
    "DATE": _rules(
        "add_months:di last_day:d next_day:dy make_date:iII make_date:IIi trunc:du trunc:du cast:v cast:v "
        "date_from_unix_date:i to_date:t to_date:v date_add:di date_sub:di cast:t greatest:dd coalesce:dd "
        "case:bdd "
    ),
    "TIMESTAMP": _rules(
        "cast:d coalesce:tt greatest:tt date_trunc:ut date_trunc:ut cast:i cast:l timestamp_seconds:l "
        "timestamp_millis:l timestamp_micros:l timestamp_seconds:i to_timestamp:d to_timestamp:t "
    ),
}  # fmt: skip
"""By type: an operator or function, and the types of its operands."""
