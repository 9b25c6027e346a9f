"""The scalar functions and operators that a query may use, and the types that Spark 4 gives their results.

What stands here is what `spark_jobs` computes exactly as Spark does; anything else of Spark's is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["ALIASES", "CASTS", "FUNCTIONS", "Function", "common_type", "family", "result_type"]


class Function(NamedTuple):
    """What a function takes; its result's type is `result_type`'s business."""

    params: tuple[str, ...]
    """Of each argument: a type; ``NUMBER`` (INT, BIGINT, DOUBLE), ``SIGNED`` (DECIMAL too), ``DAY`` (DATE or
    TIMESTAMP); or ``COMMON``: these arguments have one type that they all widen to."""
    optional: int = 0
    """How many of the last parameters may be left out."""
    variadic: bool = False
    """Whether the last parameter may be repeated."""


_STRINGS = ("STRING", "STRING")

FUNCTIONS: dict[str, Function] = {
    "upper": Function(("STRING",)),
    "lower": Function(("STRING",)),
    "length": Function(("STRING",)),
    "trim": Function(_STRINGS, 1),
    "ltrim": Function(_STRINGS, 1),
    "rtrim": Function(_STRINGS, 1),
    "substring": Function(("STRING", "INT", "INT"), 1),
    "concat": Function(("STRING",), variadic=True),
    "replace": Function(("STRING", "STRING", "STRING"), 1),
    "left": Function(("STRING", "INT")),
    "right": Function(("STRING", "INT")),
    "startswith": Function(_STRINGS),
    "endswith": Function(_STRINGS),
    "contains": Function(_STRINGS),
    "instr": Function(_STRINGS),
    "reverse": Function(("STRING",)),
    "abs": Function(("SIGNED",)),
    "ceil": Function(("NUMBER",)),
    "floor": Function(("NUMBER",)),
    "sign": Function(("DOUBLE",)),
    "sqrt": Function(("DOUBLE",)),
    "greatest": Function(("COMMON", "COMMON"), variadic=True),
    "least": Function(("COMMON", "COMMON"), variadic=True),
    "coalesce": Function(("COMMON",), variadic=True),
    "nullif": Function(("COMMON", "COMMON")),
    "year": Function(("DAY",)),
    "month": Function(("DAY",)),
    "day": Function(("DAY",)),
    "dayofweek": Function(("DAY",)),
    "hour": Function(("TIMESTAMP",)),
    "minute": Function(("TIMESTAMP",)),
    "second": Function(("TIMESTAMP",)),
    "date_add": Function(("DATE", "INT")),
    "date_sub": Function(("DATE", "INT")),
    "datediff": Function(("DATE", "DATE")),
}
"""The functions by the name under which they are compiled. ``mod``, ``pmod``, ``if`` are operators to the compiler.

``trim`` and its like have the text first and the characters to trim second, whatever the spelling."""

ALIASES = {
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
    "dayofmonth": "day",
    "dateadd": "date_add",
    "date_diff": "datediff",
}
"""Spark's other names of the same functions."""

CASTS: dict[str, frozenset[str]] = {
    "STRING": frozenset(("STRING",)),
    "BOOLEAN": frozenset(("BOOLEAN", "INT", "BIGINT", "STRING")),
    "INT": frozenset(("INT", "BIGINT", "DOUBLE", "STRING")),
    "BIGINT": frozenset(("INT", "BIGINT", "DOUBLE", "STRING")),
    "DOUBLE": frozenset(("DOUBLE", "INT", "BIGINT")),
    "DATE": frozenset(("DATE", "TIMESTAMP", "STRING")),
    "TIMESTAMP": frozenset(("TIMESTAMP", "DATE")),
}
"""What may be CAST to what."""

_RESULTS = {
    "BOOLEAN": "= <> < <= > >= <=> and or not in is_null like between startswith endswith contains",
    "STRING": "upper lower trim ltrim rtrim substring concat replace left right reverse",
    "INT": "length instr year month day dayofweek hour minute second datediff",
    "BIGINT": "ceil floor div",
    "DOUBLE": "/ sign sqrt",
    "DATE": "date_add date_sub",
}
_FIXED = {op: kind for kind, ops in _RESULTS.items() for op in ops.split()}
_OF_FIRST = frozenset(("neg", "abs", "nullif"))
_EXACT_DIGITS = {"INT": (10, 0), "BIGINT": (20, 0)}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_NUMBERS = ("INT", "BIGINT", "DOUBLE")
_WIDEST_DECIMAL = 38


def family(kind: str) -> str:
    """Return ``number`` for every number's type, else the type itself.

    Example:
        >>> family("DECIMAL(10,2)"), family("DATE")
        ('number', 'DATE')
    """
    return "number" if kind in _NUMBERS or kind == "NUMERIC" or kind.startswith("DECIMAL") else kind


def result_type(op: str, kinds: Sequence[str]) -> str:
    """Return the type of an operator's or function's result over arguments of these types.

    An argument's type is "" where only the row's constants tell it, and so is the result's where it depends on one.
    ``cast`` carries its own type.

    Example:
        >>> result_type("+", ["INT", "BIGINT"]), result_type("*", ["DOUBLE", ""]), result_type("-", ["INT", ""])
        ('BIGINT', 'DOUBLE', '')
    """
    if op in _FIXED:
        return _FIXED[op]
    if op in _OF_FIRST:
        return kinds[0]
    if op == "case":
        kinds = [kind for i, kind in enumerate(kinds) if i % 2 or (i == len(kinds) - 1)]
    return common_type(kinds) or ""


def common_type(kinds: Sequence[str]) -> str | None:
    """Return the type that values of these types widen to, as Spark's implicit casts do, or None when there is none."""
    known = {kind for kind in kinds if kind}
    if len(known) == 1 and (len(kinds) == len(known) or family(*known) != "number" or known == {"DOUBLE"}):
        return known.pop()
    if {family(kind) for kind in known} - {"number"}:
        return known.pop() if len(known) == 1 else None
    if "DOUBLE" in known:
        return "DOUBLE"
    if "" in kinds:
        return ""
    if known <= {"INT", "BIGINT"}:
        return "BIGINT" if "BIGINT" in known else "INT"
    return _common_decimal(known)


def _common_decimal(kinds: set[str]) -> str | None:
    sizes = []
    for kind in kinds:
        match = _DECIMAL.fullmatch(kind)
        sizes.append((int(match[1]), int(match[2])) if match else _EXACT_DIGITS[kind])
    scale = max(size[1] for size in sizes)
    precision = max(size[0] - size[1] for size in sizes) + scale
    return f"DECIMAL({precision},{scale})" if precision <= _WIDEST_DECIMAL else None
