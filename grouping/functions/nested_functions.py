"""The functions of arrays, maps and JSON texts that a query may use."""

from __future__ import annotations

__all__ = ["LAMBDAS", "NESTED_ALIASES", "NESTED_FUNCTIONS"]

NESTED_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "array": ("any, …",),
    "array_contains": ("ARRAY", "any"),
    "array_size": ("ARRAY",),
    "arrays_overlap": ("ARRAY", "ARRAY"),
    "element_at": ("ARRAY or MAP", "INT or key"),
    "get": ("ARRAY", "INT"),
    "get_json_object": ("STRING", "path"),
    "map_contains_key": ("MAP", "STRING"),
    "map_keys": ("MAP",),
    "map_values": ("MAP",),
    "size": ("ARRAY or MAP",),
    "split": ("STRING", "delimiter"),
}
"""By name, what they take; `grouping.binding.nested` says what that means."""

LAMBDAS = frozenset(("exists", "filter", "forall", "transform"))
"""Those of an ARRAY and of what is computed of each of its elements, which `grouping.binding.lambdas` binds."""

NESTED_ALIASES = {"cardinality": "size", "try_element_at": "element_at"}
"""Spark's other names of the same functions; what fails is NULL here anyhow."""
