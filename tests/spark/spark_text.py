"""Expressions as Spark SQL in the ``try_`` forms, and a generator of them."""

from __future__ import annotations

import random

from grouping.expression import Call, Column, Expression, Value

COLUMNS = {
    "i": "INT", "j": "INT", "l": "BIGINT", "m": "BIGINT", "x": "DOUBLE", "y": "DOUBLE", "s": "STRING", "t": "STRING",
    "d": "DATE", "e": "DATE", "ts": "TIMESTAMP", "f": "BOOLEAN", "g": "BOOLEAN",
}  # fmt: skip

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_INFIX = {"=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "like"}
_LEAST = {"INT": "(-2147483648)", "BIGINT": "(-9223372036854775807L - 1L)"}


def spark_text(expression: Expression) -> str:
    """Return the expression as Spark SQL."""
    match expression:
        case Column(name):
            return name
        case Value(value, kind):
            return _literal(value, kind)
        case Call("cast", (inner,), kind):
            return f"try_cast({spark_text(inner)} AS {kind})"
        case Call(op, args, kind):
            return _call(op, [spark_text(argument) for argument in args], args, kind)
    raise AssertionError(expression)


def _call(op: str, texts: list[str], args: tuple[Expression, ...], kind: str) -> str:
    if op in _TRY:
        return f"{_TRY[op]}({', '.join(texts)})"
    if op in _INFIX:
        escape = r" ESCAPE '!'" if op == "like" else ""
        return "(" + f" {op} ".join(texts[:2] if op == "like" else texts) + escape + ")"
    if op == "div":
        least = f"{texts[0]} = {_LEAST['BIGINT']} AND {texts[1]} = -1"
        return f"(CASE WHEN {texts[1]} = 0 OR ({least}) THEN NULL ELSE {texts[0]} div {texts[1]} END)"
    if op == "pmod":
        return f"(CASE WHEN {texts[1]} <> 0 THEN pmod({', '.join(texts)}) END)"
    if op == "neg":
        return f"(-{texts[0]})" if kind == "DOUBLE" else f"try_subtract({'0' if kind == 'INT' else '0L'}, {texts[0]})"
    if op == "abs" and kind != "DOUBLE":
        return f"(CASE WHEN {texts[0]} <> {_LEAST[kind]} THEN abs({texts[0]}) END)"
    if op in ("date_add", "date_sub"):
        moved = f"{op}({', '.join(texts)})"
        return f"(CASE WHEN {moved} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31' THEN {moved} END)"
    if op == "not":
        return f"(NOT {texts[0]})"
    if op == "is_null":
        return f"({texts[0]} IS NULL)"
    if op == "case":
        branches = " ".join(f"WHEN {c} THEN {r}" for c, r in zip(texts[::2], texts[1::2], strict=False))
        return f"(CASE {branches}{f' ELSE {texts[-1]}' if len(texts) % 2 else ''} END)"
    if op in ("trim", "ltrim", "rtrim") and len(texts) > 1:
        side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[op]
        return f"trim({side} {texts[1]} FROM {texts[0]})"
    return f"{op}({', '.join(texts)})"


def _literal(value: object, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind == "STRING":
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind == "BIGINT":
        return f"{value}L"
    return f"CAST('{value}' AS DOUBLE)" if kind == "DOUBLE" else str(value)


_VALUES: dict[str, list[object]] = {
    "INT": [0, 1, -1, 2, 3, 7, -5, 2147483647, None],
    "BIGINT": [0, 1, -1, 3, 9007199254740993, 9223372036854775807],
    "DOUBLE": [0.0, 0.5, -1.5, 2.0, 1e300, "NaN"],
    "STRING": ["", "a", "b", "é", "ab", " ", "😀", "A"],
    "BOOLEAN": [True, False, None],
}


class Generator:
    """Random expressions of a type."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def make(self, kind: str, depth: int) -> Expression:
        """Return an expression of that type and depth."""
        if depth == 0 or self._random.random() < 0.1:
            columns = [Column(name, of) for name, of in COLUMNS.items() if of == kind]
            if kind in _VALUES and self._random.random() < 0.3:
                value = self._random.choice(_VALUES[kind])
                return Value(float(value) if kind == "DOUBLE" else value, kind)  # type: ignore[arg-type]
            return self._random.choice(columns)
        op, args = self._random.choice(_GRAMMAR[kind])
        return Call(op, tuple(self.make(argument, depth - 1) for argument in args), kind)


def _rules(text: str) -> list[tuple[str, tuple[str, ...]]]:
    names = {"i": "INT", "l": "BIGINT", "x": "DOUBLE", "s": "STRING", "b": "BOOLEAN", "d": "DATE", "t": "TIMESTAMP"}
    rules = [rule.split(":") for rule in text.split()]
    return [(op, tuple(names[letter] for letter in letters)) for op, letters in rules]


_COMPARE = " ".join(
    f"{op}:{pair}"
    for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    for pair in ("ii", "il", "lx", "xx", "ss", "dd", "tt", "bb")
)
_GRAMMAR = {
    "BOOLEAN": _rules(_COMPARE + " " + "and:bb or:bb and:bbb or:bbb not:b is_null:x is_null:s " * 4
        + "startswith:ss endswith:ss contains:ss case:bbb coalesce:bb"),
    "INT": _rules("+:ii -:ii *:ii %:ii neg:i abs:i length:s instr:ss pmod:ii year:d month:d day:d dayofweek:d year:t "
        "hour:t minute:t second:t datediff:dd greatest:iii least:ii coalesce:ii nullif:ii case:bii case:bibi cast:l cast:x cast:b"),
    "BIGINT": _rules("+:ll -:li *:ll *:il %:ll div:ll div:ii neg:l abs:l ceil:x floor:x pmod:ll greatest:ll "
        "coalesce:ll case:bll cast:i cast:x"),
    "DOUBLE": _rules("+:xx -:xl *:xx /:xx /:ii /:ll %:xx neg:x abs:x sign:x sqrt:x greatest:xx least:xxx coalesce:xx "
        "nullif:xx case:bxx cast:i cast:l pmod:xx"),
    "STRING": _rules("upper:s lower:s trim:s ltrim:s rtrim:s trim:ss substring:si substring:sii concat:sss replace:sss "
        "left:si right:si reverse:s coalesce:ss nullif:ss case:bss greatest:ss cast:i cast:l cast:b cast:d"),
    "DATE": _rules("date_add:di date_sub:di cast:t greatest:dd coalesce:dd case:bdd"),
    "TIMESTAMP": _rules("cast:d coalesce:tt greatest:tt"),
}  # fmt: skip
