"""SHOW FUNCTIONS and DESCRIBE FUNCTION, from the compiler's tables and its results for examples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from grouping.access.access_path import choose_index
from grouping.binding.calls.call import function_name
from grouping.compiler.compiler import compile_select
from grouping.functions.aggregates import AGGREGATE_ALIASES, AGGREGATES
from grouping.functions.function_table import form_of, group_of, returns
from grouping.functions.functions import ALIASES, FUNCTIONS, REWRITTEN
from grouping.functions.nested_functions import NESTED_ALIASES, NESTED_FUNCTIONS
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.ids import StreamId

__all__ = ["describe_function", "function_item", "function_names"]

_ALIASES = {**ALIASES, **NESTED_ALIASES, "nvl": "coalesce", "ifnull": "coalesce"}
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
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "ANY": ("price",),
    "ARRAY": ("tags", "others"),
    "BOOLEAN": ("ok",),
    "BYTES": ("symbol",),
    "COMMON": ("price", "cost"),
    "COUNT": ("10",),
    "DATE": ("day", "due"),
    "DAY": ("day",),
    "DOUBLE": ("price", "cost"),
    "ESCAPE": ("'!'",),
    "FIELD": ("'year'",),
    "FORMAT": ("'yyyy-MM-dd'",),
    "GROUPS": ("'([A-Z]+)'",),
    "HEXED": ("volume",),
    "INT": ("n", "2", "3"),
    "LIKE": ("'IN%'",),
    "MASK": ("'X'",),
    "KEY": ("'id'",),
    "NUMBER": ("price", "cost"),
    "OCCURRENCES": ("'[A-Z]'",),
    "ORDERED": ("volume",),
    "PATTERN": ("'^IN'",),
    "PRINTED": ("symbol",),
    "PRINTF": ("'%s'",),
    "REPLACEMENT": ("'x'",),
    "SCALE": ("2",),
    "SECONDS": ("30",),
    "STRING": ("symbol", "name", "'-'"),
    "TEXT": ("symbol",),
    "TIMESTAMP": ("at", "until"),
    "UNIT": ("HOUR",),
    "VALUE": ("symbol",),
    "WHOLE": ("volume",),
    "ZONE": ("'Europe/Madrid'",),
}
"""Arguments of examples by parameter: for its first occurrence, the second, …"""
_EXAMPLES = {
    "array": "array_contains(array('a', 'b'), symbol)",
    "array_append": "array_append(tags, 'urgent')",
    "array_contains": "array_contains(tags, 'urgent')",
    "array_insert": "array_insert(tags, 1, 'urgent')",
    "array_join": "array_join(tags, ',')",
    "array_position": "array_position(tags, 'urgent')",
    "array_prepend": "array_prepend(tags, 'urgent')",
    "array_remove": "array_remove(tags, 'urgent')",
    **{name: f"{name}(tags)" for name in ("array_compact", "array_distinct", "array_max", "array_min", "array_sort")},
    **{name: f"{name}(tags, others)" for name in ("array_except", "array_intersect", "array_union")},
    "array_repeat": "array_repeat(symbol, 3)",
    "arrays_zip": "arrays_zip(tags, others)",
    "arrays_overlap": "arrays_overlap(tags, others)",
    "conv": "conv(symbol, 16, 10)",
    "decode": "decode(unhex(symbol), 'UTF-8')",
    "encode": "encode(symbol, 'UTF-8')",
    "contains": "contains(symbol, 'NT')",
    "endswith": "endswith(symbol, 'C')",
    "exists": "exists(tags, t -> t LIKE 'a%')",
    "filter": "filter(tags, t -> t <> 'a')",
    "forall": "forall(tags, t -> t <> 'a')",
    "map_filter": "map_filter(attrs, (k, v) -> v <> '')",
    "map_zip_with": "map_zip_with(attrs, attrs, (k, one, other) -> concat(one, other))",
    "reduce": "reduce(tags, 0, (total, t) -> total + length(t))",
    "transform": "transform(tags, t -> upper(t))",
    "transform_keys": "transform_keys(attrs, (k, v) -> upper(k))",
    "transform_values": "transform_values(attrs, (k, v) -> upper(v))",
    "zip_with": "zip_with(tags, others, (one, other) -> concat(one, other))",
    "flatten": "flatten(array(tags, others))",
    "format_string": "format_string('%s: %d', symbol, n)",
    "startswith": "startswith(symbol, 'IN')",
    "array_size": "array_size(tags)",
    "binary": "binary(symbol)",
    "date": "date(at)",
    "decimal": "decimal(n)",
    "string": "string(n)",
    "timestamp": "timestamp(day)",
    "date_trunc": "date_trunc('hour', at)",
    "element_at": "element_at(tags, 1)",
    "from_json": "from_json(body, 'user STRUCT<id: BIGINT>').user.id",
    "get": "get(tags, 0)",
    "get_json_object": "get_json_object(body, '$.user')",
    "is_variant_null": "is_variant_null(variant_get(payload, '$.user'))",
    "json_array_length": "json_array_length(body)",
    "json_object_keys": "json_object_keys(body)",
    "make_date": "make_date(2026, n, 21)",
    "make_dt_interval": "at + make_dt_interval(0, 0, n)",
    "make_ym_interval": "at + make_ym_interval(0, n)",
    "make_timestamp": "make_timestamp(2026, 11, 21, n, 30, 0)",
    "map_contains_key": "map_contains_key(attrs, 'tier')",
    "map": "map('of', symbol)",
    "map_concat": "map_concat(attrs, map('of', symbol))",
    "map_entries": "map_entries(attrs)",
    "map_from_arrays": "map_from_arrays(tags, others)",
    "map_from_entries": "map_from_entries(map_entries(attrs))",
    "map_keys": "map_keys(attrs)",
    "map_values": "map_values(attrs)",
    "named_struct": "named_struct('of', symbol, 'at', price)",
    "parse_json": "variant_get(parse_json(body), '$.user.id', 'BIGINT')",
    "to_binary": "to_binary(symbol, 'utf-8')",
    "try_to_binary": "try_to_binary(symbol, 'hex')",
    "next_day": "next_day(day, 'MON')",
    "struct": "struct(symbol, price)",
    "sha2": "sha2(symbol, 256)",
    "sequence": "sequence(1, 5)",
    "size": "size(tags)",
    "slice": "slice(tags, 1, 2)",
    "sort_array": "sort_array(tags, FALSE)",
    "split": "split(symbol, ',')",
    "str_to_map": "str_to_map(symbol, ';', '=')",
    "width_bucket": "width_bucket(price, 0, 100, 10)",
    "to_char": "to_char(price, '999,999.99')",
    "to_json": "to_json(payload)",
    "to_varchar": "to_varchar(at, 'yyyy-MM')",
    "variant_get": "variant_get(payload, '$.user.id', 'BIGINT')",
    "to_number": "to_number(symbol, '999.99')",
    "try_to_number": "try_to_number(symbol, '999.99')",
    "trunc": "trunc(day, 'month')",
}
"""Where the arguments' kinds alone tell too little."""
_LITERALS = {
    "STRING": "'a'",
    "BOOLEAN": "TRUE",
    "DATE": "'2026-11-21'",
    "TIMESTAMP": "'2026-11-21T10:00:00Z'",
}
_SERVED = {
    "hash": "Comparisons with a constant are looked up.",
    "ordered": "Comparisons with a constant are looked up.",
    "prefix": "It is looked up by what the texts begin with or hold.",
    "elements": "Each element of an event's array is looked up.",
    "scan": "It is checked for each constant row.",
}


@lru_cache(maxsize=1)
def function_names() -> tuple[str, ...]:
    """Return every name that a query may call, in order."""
    names = (*FUNCTIONS, *REWRITTEN, *NESTED_FUNCTIONS, *_ALIASES, *AGGREGATES, *AGGREGATE_ALIASES)
    return tuple(sorted(set(names)))


def function_item(name: str) -> dict[str, object]:
    """Return a function as SHOW FUNCTIONS lists it."""
    canonical = _canonical(name)
    return {"function": name, "form": form_of(canonical).replace(canonical, name, 1), "returns": returns(canonical)}


@lru_cache(maxsize=1024)
def describe_function(written: str) -> dict[str, object]:
    """Return the reply of DESCRIBE FUNCTION.

    Raises:
        InputError: ``unknown-function``, or ``unsupported-query`` with the reason for a function of Spark that is
            missing here.

    Example:
        >>> told = describe_function("dateadd")
        >>> told["form"], told["example"]
        ('dateadd(DATE, INT)', 'date_add(day, n)')
    """
    name = written.lower()
    if name not in function_names():
        function_name(written)
    canonical = _canonical(name)
    example = example_of(canonical)
    aliases = {**_ALIASES, **AGGREGATE_ALIASES}
    others = sorted({canonical, *(alias for alias, of in aliases.items() if of == canonical)} - {name})
    return {**function_item(name), "group": group_of(canonical), "other_names": others, "example": example} | (
        {"index": False, "note": "It is of the matches of a digest."} if canonical in AGGREGATES else _index(example)
    )


def example_of(canonical: str) -> str:
    """Return a call over the columns of the sample stream."""
    if canonical in _EXAMPLES:
        return _EXAMPLES[canonical]
    function = AGGREGATES.get(canonical) or FUNCTIONS.get(canonical) or REWRITTEN[canonical]
    needed = function.params[: len(function.params) - getattr(function, "optional", 0)]
    used: dict[str, int] = {}
    parts = []
    for param in needed:
        choices = _ARGUMENTS[param]
        parts.append(choices[min(used.get(param, 0), len(choices) - 1)])
        used[param] = used.get(param, 0) + 1
    return f"{canonical}({', '.join(parts)})"


def _index(example: str) -> dict[str, object]:
    """Return whether an index serves a call that is compared with a constant, or stands as a predicate."""
    kind = str(compile_select(f"SELECT {example} AS v FROM quotes", _SAMPLE).select.items[0].expression.type)  # type: ignore[union-attr]  # no slot stands in a SELECT list
    where = example if kind == "BOOLEAN" else f"{example} = {_LITERALS.get(kind, '1')}"
    try:
        plan = compile_select(f"SELECT symbol FROM quotes WHERE {where}", _SAMPLE).plan
    except InputError:  # values with parts do not compare
        return {"index": False, "note": "Its value does not compare with a constant."}
    path = choose_index(plan.conjuncts).kind
    return {"index": path != "scan", "note": _SERVED[path]}


def _canonical(name: str) -> str:
    return _ALIASES.get(name) or AGGREGATE_ALIASES.get(name, name)
