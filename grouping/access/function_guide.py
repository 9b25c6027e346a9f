"""SHOW FUNCTIONS and DESCRIBE FUNCTION, from the compiler's tables and from compiled examples."""

from __future__ import annotations

from functools import lru_cache

from grouping.access.access_path import choose_index
from grouping.binding.calls.call import function_name
from grouping.compiler.compiler import compile_select
from grouping.functions.function import Function
from grouping.functions.functions import AGGREGATE_ALIASES, AGGREGATES, ALIASES, FUNCTIONS, GROUPS, shown_form
from grouping.functions.params import param
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.ids import StreamId
from grouping.model.sql_type import SqlType

__all__ = ["describe_function", "function_item", "function_names"]

_ROWS = FUNCTIONS | AGGREGATES
_ALIASES = ALIASES | AGGREGATE_ALIASES
_GROUP_OF = {row.name: title for title, rows in GROUPS.items() for row in rows}
_COLUMNS = {
    "symbol": "STRING", "name": "STRING", "price": "DOUBLE", "cost": "DOUBLE", "n": "INT", "volume": "BIGINT",
    "amount": "DECIMAL(10,2)", "day": "DATE", "due": "DATE", "at": "TIMESTAMP", "until": "TIMESTAMP", "ok": "BOOLEAN",
    "body": "STRING", "tags": "ARRAY<STRING>", "others": "ARRAY<STRING>", "attrs": "MAP<STRING, STRING>",
    "payload": "VARIANT",
}  # fmt: skip
_SAMPLE = Catalog(
    [
        Stream(
            StreamId("s_1"),
            "quotes",
            tuple(StreamColumn(name, kind) for name, kind in _COLUMNS.items()),
            "quotes",
            "json",
            {"0": 0},
            "2026-11-21T00:00:00Z",
        )
    ]
)
"""The stream of the examples."""
_LITERALS = {
    "STRING": "'a'",
    "BOOLEAN": "TRUE",
    "DATE": "'2026-11-21'",
    "TIMESTAMP": "'2026-11-21T10:00:00Z'",
}
_SERVED = {
    "hash": "Comparisons with a constant are looked up.",
    "ordered": "Comparisons with a constant are looked up.",
    "prefix": "Texts are looked up by their beginnings, or by parts of them.",
    "elements": "Each element of an event's array is looked up.",
    "scan": "The condition is checked for each constant row.",
}


@lru_cache(maxsize=1)
def function_names() -> tuple[str, ...]:
    """Return the names of all functions that a query may call, in alphabetical order."""
    return tuple(sorted({*_ROWS, *_ALIASES}))


def function_item(name: str) -> dict[str, object]:
    """Return the item of a function in SHOW FUNCTIONS. `returns` is "" if the type depends on the arguments."""
    row = _row(name)
    returns = str(row.result) if isinstance(row.result, SqlType) else ""
    return {"function": name, "form": shown_form(row).replace(row.name, name, 1), "returns": returns}


@lru_cache(maxsize=1024)
def describe_function(written: str) -> dict[str, object]:
    """Return the reply of DESCRIBE FUNCTION.

    Raises:
        InputError: ``unknown-function``, or ``unsupported-query`` with the reason for a refused function of Spark.

    Example:
        >>> told = describe_function("dateadd")
        >>> told["form"], told["example"]
        ('dateadd(DATE, INT)', 'date_add(day, n)')
    """
    name = written.lower()
    if name not in function_names():
        function_name(written)
    row = _row(name)
    example = example_of(row)
    others = sorted({row.name, *row.aliases} - {name})
    index = (
        {"index": False, "note": "An aggregate is computed from the matches of a digest."}
        if row.name in AGGREGATES
        else _index(example)
    )
    return {**function_item(name), "group": _GROUP_OF[row.name], "other_names": others, "example": example} | index


def example_of(row: Function) -> str:
    """Return an example call over the sample stream, from the function's row or made from its parameters."""
    if row.example:
        return row.example
    needed = row.params[: len(row.params) - row.optional]
    arguments = []
    for place, kind in enumerate(needed):
        choices = param(kind).examples
        arguments.append(choices[min(needed[:place].count(kind), len(choices) - 1)])
    return f"{row.name}({', '.join(arguments)})"


def _index(example: str) -> dict[str, object]:
    """Return whether an index serves a call as a predicate, or in a comparison with a constant."""
    kind = str(compile_select(f"SELECT {example} AS v FROM quotes", _SAMPLE).select.items[0].expression.type)  # type: ignore[union-attr]  # no slot stands in a SELECT list
    where = example if kind == "BOOLEAN" else f"{example} = {_LITERALS.get(kind, '1')}"
    try:
        plan = compile_select(f"SELECT symbol FROM quotes WHERE {where}", _SAMPLE).plan
    except InputError:  # values with parts, such as MAPs, are not compared
        return {"index": False, "note": "Its value cannot be compared with a constant."}
    path = choose_index(plan.conjuncts).kind
    return {"index": path != "scan", "note": _SERVED[path]}


def _row(name: str) -> Function:
    return _ROWS[_ALIASES.get(name, name)]
