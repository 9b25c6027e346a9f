"""The tables of functions and aggregates: each function is one row of the table of its group.

The evaluator computes the functions listed here exactly as Spark does; any further function of Spark is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.functions import aggregates, any_type, nested, numbers, strings, times
from grouping.functions.function import Function, ResultRule
from grouping.functions.operators import OPERATORS
from grouping.functions.params import param
from grouping.model.sql_type import WHOLE_BITS, SqlType

__all__ = [
    "AGGREGATES",
    "AGGREGATE_ALIASES",
    "ALIASES",
    "CASTS",
    "FUNCTIONS",
    "GROUPS",
    "LAMBDAS",
    "aggregate_type",
    "has_rule",
    "result_type",
    "shown_form",
]

_AGGREGATES = "Aggregates"
GROUPS: dict[str, tuple[Function, ...]] = {
    "Strings": strings.STRINGS,
    "Numbers": numbers.NUMBERS,
    "Dates and times": times.TIMES,
    "Any type": any_type.ANY_TYPE,
    "Parts of nested values": nested.NESTED,
    _AGGREGATES: aggregates.AGGREGATES,
}
"""The rows by the title of their group in the documentation."""

FUNCTIONS = {row.name: row for title, rows in GROUPS.items() if title != _AGGREGATES for row in rows}
"""The functions by the name under which they are compiled."""

AGGREGATES = {row.name: row for row in aggregates.AGGREGATES}
"""The aggregates by the name under which they are compiled."""

ALIASES = {alias: row.name for row in FUNCTIONS.values() for alias in row.aliases}
"""Further name of a function → the name under which the function is compiled."""

AGGREGATE_ALIASES = {alias: row.name for row in AGGREGATES.values() for alias in row.aliases}
"""Further name of an aggregate → the name under which the aggregate is compiled.

``try_sum`` is compiled as ``sum``, since the overflow of any sum gives NULL.
"""

LAMBDAS = {name: row.variables for row in FUNCTIONS.values() if row.variables for name in (row.name, *row.aliases)}
"""Name of a function that takes a lambda → the least number of the lambda's variables."""

_FROM_WHOLE = frozenset(("BOOLEAN", *WHOLE_BITS, "FLOAT", "DOUBLE", "DECIMAL", "STRING", "TIMESTAMP"))
CASTS: dict[str, frozenset[str]] = {
    "STRING": frozenset(("BOOLEAN", *WHOLE_BITS, "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "BINARY")),
    "BOOLEAN": frozenset((*WHOLE_BITS, "FLOAT", "DOUBLE", "DECIMAL", "STRING")),
    **dict.fromkeys(WHOLE_BITS, _FROM_WHOLE),
    "FLOAT": frozenset(("BOOLEAN", *WHOLE_BITS, "DOUBLE", "DECIMAL", "TIMESTAMP")),
    "DOUBLE": frozenset(("BOOLEAN", *WHOLE_BITS, "FLOAT", "DECIMAL", "TIMESTAMP")),
    "DECIMAL": frozenset(("BOOLEAN", *WHOLE_BITS, "FLOAT", "DOUBLE", "DECIMAL", "STRING", "TIMESTAMP")),
    "DATE": frozenset(("TIMESTAMP", "STRING")),
    "TIMESTAMP": frozenset((*WHOLE_BITS, "DOUBLE", "DATE", "STRING")),
    "BINARY": frozenset(),
    "VARIANT": frozenset(
        """BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL STRING DATE TIMESTAMP BINARY VARIANT ARRAY MAP
        STRUCT""".split()
    ),
}
"""Name of a type → names of the types to which its values can be CAST."""

_RULES = {
    **{op: operator.result for op, operator in OPERATORS.items()},
    **{name: row.result for name, row in FUNCTIONS.items()},
}


def has_rule(op: str) -> bool:
    """Tell whether an operator or function has a rule for its type; otherwise its binder computes the type."""
    return _RULES[op] is not None


def result_type(op: str, kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of the result of an operator or function that has a rule.

    Args:
        op: The name under which calls are compiled.
        kinds: The types of the arguments; `UNKNOWN` for a type that depends on the row's constants. If the type of the
            result depends on such an argument, the type is `UNKNOWN` too.

    Example:
        >>> from grouping.model.sql_type import BIGINT, DOUBLE, INT, UNKNOWN
        >>> str(result_type("+", [INT, BIGINT])), str(result_type("*", [DOUBLE, UNKNOWN]))
        ('BIGINT', 'DOUBLE')
        >>> result_type("-", [INT, UNKNOWN]) == UNKNOWN
        True
    """
    return _type(_RULES[op], kinds)


def aggregate_type(name: str, kinds: Sequence[SqlType]) -> SqlType:
    """Return the type of an aggregate's value over arguments of these types.

    Example:
        >>> from grouping.model.sql_type import BIGINT, decimal
        >>> str(aggregate_type("sum", (decimal(10, 2),))), str(aggregate_type("avg", (BIGINT,)))
        ('DECIMAL(20,2)', 'DOUBLE')
    """
    return _type(AGGREGATES[name].result, kinds)


def _type(rule: SqlType | ResultRule | None, kinds: Sequence[SqlType]) -> SqlType:
    assert rule is not None, "a binder computes the type"
    return rule if isinstance(rule, SqlType) else rule(kinds)


def shown_form(row: Function) -> str:
    """Return the form of a call as the documentation shows it."""
    names = [param(kind).shown or kind for kind in row.params]
    needed = len(names) - row.optional
    text = ", ".join(names[:needed]) + "".join(f"[, {name}]" for name in names[needed:])
    return f"{row.name}({text if needed else text.replace('[, ', '[', 1)}{', …' if row.variadic else ''})"
