"""Functions that build MAPs or return parts of MAPs; all keys are STRING.

A MAP is built from an array of keys and an array of values, or from an array of entries. If two keys are equal or a key
is NULL, Spark fails, and here the MAP is NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.arrays import concat_arrays
from grouping.binding.bound import Bound, Term, is_null
from grouping.binding.nested import array_value, delimiter_of, element_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import STRING, SqlType, array_of, map_of, struct_of
from grouping.model.wording import are

__all__ = ["MAP_CALLS", "entries_of", "map_of_arrays", "merged"]


def entries_of(base: Bound, name: str) -> Bound:
    """Return the entries of a MAP as an array of key and value."""
    entry = struct_of((("key", STRING), ("value", _values_type(base, name))))
    return Term("map_entries", (base,), array_of(entry))


def merged(name: str, one: Bound, other: Bound) -> Bound:
    """Return the keys of two MAPs, each with its two values; the value of a MAP without the key is NULL."""
    kinds = (("0", STRING), ("1", _values_type(one, name)), ("2", _values_type(other, name)))
    return Term("maps merged", (one, other), array_of(struct_of(kinds)))


def map_of_arrays(keys: Bound, values: Bound, name: str) -> Bound:
    """Return the MAP of an array of keys and an array of values in the same order.

    Raises:
        InputError: ``type-mismatch`` for keys that are not STRING.
    """
    of = element_type(values, name, compared=False)
    _check_key(element_type(keys, name, compared=False), name)
    return Term("map_from_arrays", (keys, values), map_of(STRING, of))


def _check_key(sql_type: SqlType, name: str) -> None:
    if sql_type != STRING:
        raise mismatch(f'a key in "{name}" is {sql_type}', "The keys of a MAP are STRING.", "CAST it.")


def _values_type(base: Bound, name: str) -> SqlType:
    if base.type.name != "MAP" or base.type.element is None:
        raise mismatch(f'an argument of "{name}" is {base.type}', "The argument must be a MAP.")
    return base.type.element


def _map_entries(name: str, base: Bound) -> Bound:
    return entries_of(base, name)


def _map(name: str, *args: Bound) -> Bound:
    if len(args) % 2:
        raise mismatch(f'function "{name}" takes keys and values in turn', f"There {are(len(args))} {len(args)}.")
    keys, values = args[::2], args[1::2]
    for key in keys:
        if is_null(key):
            raise mismatch("a key of the MAP is NULL", "The keys of a MAP are never NULL.")
        _check_key(key.type, name)
    if all(map(is_null, values)):
        raise mismatch("all values of a MAP are NULL", "The type of the values is not known.", "CAST one.")
    return map_of_arrays(array_value(name, *keys), array_value(name, *values), name)


def _map_from_arrays(name: str, keys: Bound, values: Bound) -> Bound:
    return map_of_arrays(keys, values, name)


def _map_from_entries(name: str, entries: Bound) -> Bound:
    entry = element_type(entries, name, compared=False)
    if entry.name != "STRUCT" or len(entry.fields) != 2:
        raise mismatch(
            f'an argument of "{name}" is {entries.type}', "The argument must be an ARRAY of STRUCTs of two fields."
        )
    (_, key), (_, value) = entry.fields
    _check_key(key, name)
    return Term(name, (entries,), map_of(STRING, value))


def _map_concat(name: str, *maps: Bound) -> Bound:
    entries = [entries_of(base, name) for base in maps]
    for base in maps:
        if base.type != maps[0].type:
            raise mismatch(
                f'"{name}" cannot combine {maps[0].type} and {base.type}',
                "The MAPs must have the same type.",
                "CAST one.",
            )
    return Term("map_from_entries", (concat_arrays(name, *entries),), maps[0].type)


def _str_to_map(name: str, text: Bound, pairs: Bound | None = None, within: Bound | None = None) -> Bound:
    if text.type != STRING or is_null(text):
        raise mismatch(f'an argument of "{name}" is {text.type}', "The argument must be STRING.")
    signs = [
        Value(default, "STRING") if sign is None else delimiter_of(sign)
        for sign, default in ((pairs, ","), (within, ":"))
    ]
    if not all(sign.value for sign in signs):
        raise unsupported("an empty delimiter", "Each character would be a part of its own.")
    return Term(name, (text, *signs), map_of(STRING, STRING))


MAP_CALLS: dict[str, Callable[..., Bound]] = {
    "map": _map,
    "map_concat": _map_concat,
    "map_entries": _map_entries,
    "map_from_arrays": _map_from_arrays,
    "map_from_entries": _map_from_entries,
    "str_to_map": _str_to_map,
}
"""Binders by function, called with the function's name and the bound arguments."""
