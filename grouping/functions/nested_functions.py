"""The functions of arrays, maps, JSON texts and VARIANTs that a query may use."""

from __future__ import annotations

__all__ = ["LAMBDAS", "NESTED_ALIASES", "NESTED_FUNCTIONS", "OF_ELEMENTS"]

NESTED_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "array": ("any, …",),
    "array_contains": ("ARRAY", "any"),
    "array_size": ("ARRAY",),
    "array_append": ("ARRAY", "any"),
    "array_compact": ("ARRAY",),
    "array_distinct": ("ARRAY",),
    "array_except": ("ARRAY", "ARRAY"),
    "array_insert": ("ARRAY", "place", "any"),
    "array_intersect": ("ARRAY", "ARRAY"),
    "array_join": ("ARRAY<STRING>", "STRING[, STRING]"),
    "array_max": ("ARRAY",),
    "array_min": ("ARRAY",),
    "array_position": ("ARRAY", "any"),
    "array_prepend": ("ARRAY", "any"),
    "array_remove": ("ARRAY", "any"),
    "array_repeat": ("any", "count"),
    "array_sort": ("ARRAY",),
    "array_union": ("ARRAY", "ARRAY"),
    "arrays_overlap": ("ARRAY", "ARRAY"),
    "arrays_zip": ("ARRAY, …",),
    "exists": ("ARRAY", "x -> condition"),
    "element_at": ("ARRAY or MAP", "INT or key"),
    "filter": ("ARRAY", "x -> condition"),
    "flatten": ("ARRAY of ARRAYs",),
    "forall": ("ARRAY", "x -> condition"),
    "from_json": ("STRING", "schema"),
    "get": ("ARRAY", "INT"),
    "get_json_object": ("STRING", "path"),
    "is_variant_null": ("VARIANT",),
    "map": ("key", "value, …"),
    "map_concat": ("MAP, …",),
    "map_contains_key": ("MAP", "STRING"),
    "map_entries": ("MAP",),
    "map_filter": ("MAP", "(key, value) -> condition"),
    "map_from_arrays": ("ARRAY<STRING>", "ARRAY"),
    "map_from_entries": ("ARRAY of STRUCTs",),
    "map_keys": ("MAP",),
    "map_values": ("MAP",),
    "map_zip_with": ("MAP", "MAP", "(key, one, other) -> value"),
    "named_struct": ("name", "any, …"),
    "parse_json": ("STRING",),
    "reduce": ("ARRAY", "start", "(made, x) -> value[, made -> value]"),
    "sequence": ("first", "last[, step]"),
    "size": ("ARRAY or MAP",),
    "slice": ("ARRAY", "INT", "INT"),
    "sort_array": ("ARRAY[, TRUE or FALSE]",),
    "split": ("STRING", "delimiter[, limit]"),
    "str_to_map": ("STRING[, delimiter, delimiter]",),
    "struct": ("any, …",),
    "to_json": ("VARIANT, STRUCT, ARRAY or MAP",),
    "transform": ("ARRAY", "x -> value"),
    "transform_keys": ("MAP", "(key, value) -> key"),
    "transform_values": ("MAP", "(key, value) -> value"),
    "variant_get": ("VARIANT", "path[, type]"),
    "zip_with": ("ARRAY", "ARRAY", "(x, y) -> value"),
}
"""Parameters by name; `grouping.binding.nested` explains them."""

LAMBDAS = {
    "aggregate": 2,
    "exists": 1,
    "filter": 1,
    "forall": 1,
    "map_filter": 2,
    "map_zip_with": 3,
    "reduce": 2,
    "transform": 1,
    "transform_keys": 2,
    "transform_values": 2,
    "zip_with": 2,
}
"""Functions computed for each element of an ARRAY or MAP, bound by `grouping.binding.lambdas`, with the least number of
variables of their lambdas."""
OF_ELEMENTS = frozenset(("exists", "filter", "forall", "map_filter", "reduce", "transform"))
"""Operators compiled from these functions; their bodies are evaluated for each element."""

NESTED_ALIASES = {
    "aggregate": "reduce",
    "cardinality": "size",
    "try_element_at": "element_at",
    "try_parse_json": "parse_json",
    "try_variant_get": "variant_get",
}
"""Spark's synonyms of these functions; failures are NULL here anyhow."""
