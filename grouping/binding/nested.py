"""Parts of nested values: fields of structs, elements of arrays, values of maps, and the functions over them.

The selector of a part (a field, a key, an index, a path) is not lifted as a constant. The selector stays in the
signature, so queries on the same part are in one group, which has an index on the part.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from grouping.binding.bound import CAST_NULL, Bound, Constant, Term, is_null
from grouping.binding.constants import coerce
from grouping.binding.listed import comparable_among
from grouping.binding.operands import unify
from grouping.functions.results import common_type
from grouping.model.errors import InputError, near_name
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, STRING, VARIANT, SqlType, array_of
from grouping.values.json_path import parse_json_path
from grouping.values.patterns import occurrences

__all__ = [
    "NESTED_CALLS",
    "array_value",
    "delimiter_of",
    "element",
    "element_type",
    "field",
    "fixed",
]

_SIGNED = (FLOAT, DOUBLE)
"""Types with two zeros, 0.0 and -0.0, which arrays_overlap distinguishes."""
_DELIMITER = re.compile(r"\\[^\w\s\\]|\[[^\w\s\\^\[\]]\]|[^\\^$.|?*+()\[\]{}]*")
"""Matches a delimiter that stands for one plain text: it has no operators of regular expressions, or it is a single
escaped character."""


def field(base: Bound, name: str) -> Bound:
    """Return a field of a STRUCT, or of each STRUCT of an ARRAY, or the value of a MAP's key.

    Raises:
        InputError: ``unknown-column``, or ``unsupported-query`` for a type without fields.
    """
    sql_type = base.type
    within = sql_type.element if sql_type.name == "ARRAY" and sql_type.element else sql_type
    if sql_type.name == "MAP" and sql_type.element:
        return Term("element", (base, Value(name, "STRING")), sql_type.element)
    if within.name != "STRUCT":
        raise unsupported(
            f'field "{name}" of a value of type {sql_type}', "Only a STRUCT has fields.", _hint_of(sql_type)
        )
    for shown, of in within.fields:
        if shown.casefold() == name.casefold():
            return Term("field", (base, Value(shown, "STRING")), of if within is sql_type else array_of(of))
    names = [shown for shown, _ in within.fields]
    raise InputError(
        f'field "{name}" does not exist',
        code="unknown-column",
        detail=f"The STRUCT has the {'fields' if len(names) > 1 else 'field'} {', '.join(names)}.",
        hint=near_name(name, names),
    )


def _hint_of(sql_type: SqlType) -> str | None:
    if sql_type == VARIANT:
        return "variant_get(value, '$.name', 'STRING') finds a part of a VARIANT."
    return "get_json_object(text, '$.name') finds a part of a JSON text." if sql_type == STRING else None


def element(base: Bound, place: Bound) -> Bound:
    """Return an element of an ARRAY by its index from 0, or the value of a MAP's key; NULL if it does not exist."""
    of = base.type.element
    within = of if base.type.name == "ARRAY" and of else base.type
    if within.name == "STRUCT" and isinstance(place, Constant) and place.type == STRING and place.value is not None:
        return field(base, str(place.value))
    if base.type.name == "MAP" and of:
        if isinstance(place, Constant) or place.type != STRING:
            place = fixed(place, STRING, "the key of a MAP")
        return Term("element", (base, place), of)
    if base.type.name == "ARRAY" and of:
        return Term("element", (base, _place(place)), of)
    raise unsupported(f"an element of {base.type}", "Only an ARRAY and a MAP have elements.", _hint_of(base.type))


def array_value(name: str, *values: Bound) -> Bound:
    """Return an ARRAY of values with a common type."""
    if not values:
        raise unsupported("an array without elements", "The type of the elements is not known.")
    unified = unify(values, f'"{name}"')
    return Term("array", unified, array_of(common_type([value.type for value in unified]) or unified[0].type))


def _listed(operand: Bound) -> tuple[Bound, ...] | None:
    """Return the elements of ``array(…)``; None for any other operand."""
    return operand.args if isinstance(operand, Term) and operand.op == "array" else None


def _array_contains(name: str, array: Bound, value: Bound) -> Bound:
    of = element_type(array, "array_contains")
    if isinstance(value, Constant) and value.value is None:
        raise mismatch("array_contains cannot look for NULL", "NULL equals no element.")
    if (listed := _listed(array)) is not None:
        if not value.type.is_like(of):
            raise mismatch(
                f"an {array.type} has no elements of type {value.type}",
                "array_contains takes a value of the elements' type.",
            )
        return Term("in", comparable_among(value, listed), BOOLEAN)
    if isinstance(value, Constant):
        value = _as_element(value, of)
    elif not value.type.is_like(of) or of.is_decimal or value.type.is_decimal:
        raise mismatch(
            f"an {array.type} has no elements of type {value.type}",
            "array_contains takes a value of the elements' type.",
        )
    return Term("array_contains", (array, value), BOOLEAN)


def _as_element(value: Constant, of: SqlType) -> Constant:
    """Return a constant read as an element; if the elements are whole numbers, a number with a fraction is refused."""
    if value.type == STRING and of != STRING:
        raise mismatch(
            f"an ARRAY<{of}> has no elements of type STRING",
            "A STRING is not converted to the elements' type.",
            f"CAST it to {of}.",
        )
    read = coerce(value, of, "decimal")
    if of.is_decimal or (of.is_number and of != DOUBLE and not isinstance(read.value, int)):
        raise unsupported(f'"{value.text}" in an ARRAY<{of}>', "The elements must be whole numbers or DOUBLEs.")
    return read


def _arrays_overlap(name: str, one: Bound, other: Bound) -> Bound:
    if _listed(one) is not None:
        one, other = other, one
    if (listed := _listed(other)) is not None:
        if any(not isinstance(value, Constant) or value.value == 0 for value in listed if one.type.element in _SIGNED):
            raise unsupported(
                "arrays_overlap of DOUBLEs with a zero or a computed element",
                "For arrays_overlap, Spark treats 0.0 and -0.0 as different values.",
                "Use exists(array, x -> x = 0).",
            )
        terms = tuple(_array_contains(name, one, value) for value in listed)
        contained: Bound = terms[0] if len(terms) == 1 else Term("or", terms, BOOLEAN)
        if _listed(one) or all(isinstance(value, Constant) for value in listed):
            return contained
        # A non-constant element may be NULL: array_contains of an empty array is then NULL, but arrays_overlap is
        # FALSE.
        some = Term(">", (Term("size", (one,), INT), Constant(0, BIGINT)), BOOLEAN)
        return Term("and", (some, contained), BOOLEAN)
    if one.type != other.type or not element_type(one, "arrays_overlap").is_ordered:
        raise mismatch(
            "arrays_overlap takes arrays of the same type", f"The arguments are {one.type} and {other.type}."
        )
    return Term("arrays_overlap", (one, other), BOOLEAN)


def element_type(array: Bound, name: str, *, compared: bool = True) -> SqlType:
    """Return the type of an array's elements; STRUCT, ARRAY and MAP are refused if elements are compared."""
    of = array.type.element
    if array.type.name != "ARRAY" or of is None:
        raise mismatch(f'an argument of "{name}" is {array.type}', "The argument must be an ARRAY.")
    if compared and not of.is_ordered:
        raise unsupported(f'"{name}" of {array.type}', f"Elements of type {of} cannot be compared.")
    return of


def _size(name: str, operand: Bound) -> Bound:
    if operand.type.name not in ("ARRAY", "MAP"):
        raise mismatch(f'an argument of "size" is {operand.type}', "The argument must be an ARRAY or a MAP.")
    return Term("size", (operand,), INT)


def _array_size(name: str, array: Bound) -> Bound:
    element_type(array, "array_size", compared=False)
    return Term("size", (array,), INT)


def _element_at(name: str, base: Bound, place: Bound) -> Bound:
    if base.type.name != "ARRAY":
        return element(base, place)
    found = _place(place)
    if isinstance(found, Value) and found.value == 0:
        raise mismatch("there is no element 0", "element_at counts from 1, or with negative numbers from the end.")
    assert base.type.element is not None
    return Term("element_at", (base, found), base.type.element)


def _get(name: str, base: Bound, place: Bound) -> Bound:
    element_type(base, "get", compared=False)
    return element(base, place)


def _map(operand: Bound, name: str) -> SqlType:
    if operand.type.name != "MAP" or operand.type.element is None:
        raise mismatch(f'an argument of "{name}" is {operand.type}', "The argument must be a MAP.")
    return operand.type.element


def _map_contains_key(name: str, base: Bound, key: Bound) -> Bound:
    _map(base, "map_contains_key")
    untyped = is_null(key) and isinstance(key, Constant) and key.text != CAST_NULL
    if key.type != STRING or untyped:
        raise mismatch(f"a key is {'NULL' if untyped else key.type}", "The keys of a MAP are STRING.")
    return Term("array_contains", (_map_keys(name, base), key), BOOLEAN)


def _map_keys(name: str, base: Bound) -> Bound:
    _map(base, "map_keys")
    return Term("map_keys", (base,), array_of(STRING))


def _map_values(name: str, base: Bound) -> Bound:
    return Term("map_values", (base,), array_of(_map(base, "map_values")))


def _get_json_object(name: str, text: Bound, path: Bound) -> Bound:
    if text.type != STRING:
        raise mismatch(f'an argument of "get_json_object" is {text.type}', "The argument must be STRING.")
    steps = fixed(path, STRING, "a path")
    parse_json_path(str(steps.value))
    return Term("get_json_object", (text, steps), STRING)


def _split(name: str, text: Bound, delimiter: Bound, limit: Bound | None = None) -> Bound:
    if text.type != STRING:
        raise mismatch(f'an argument of "split" is {text.type}', "The argument must be STRING.")
    pattern = fixed(delimiter, STRING, "a delimiter")
    most = Value(0, "INT") if limit is None else fixed(limit, INT, "the limit of a split")
    limited = isinstance(most.value, int) and most.value > 0
    if _DELIMITER.fullmatch(str(pattern.value)) and not (limited and pattern.value):
        if limited:
            raise unsupported("an empty delimiter with a limit", "Spark drops the rest of the text.", "Use substring.")
        return Term("split", (text, delimiter_of(delimiter)), array_of(STRING))
    if len(str(pattern.value)) == 1 and pattern.value != ".":
        delimiter_of(delimiter)  # refuses an operator of regular expressions
    occurrences(str(pattern.value))
    return Term("split by pattern", (text, pattern, most), array_of(STRING))


def delimiter_of(delimiter: Bound) -> Value:
    """Return the only text that a constant delimiter matches; as in Spark, a delimiter is a regular expression."""
    sign = str(fixed(delimiter, STRING, "a delimiter").value)
    if not _DELIMITER.fullmatch(sign):
        raise unsupported(
            f'the delimiter "{sign[:20]}"',
            "Spark reads the delimiter as a regular expression, and this character is an operator."
            if len(sign) == 1
            else "Spark reads the delimiter as a regular expression; only a plain text is supported here.",
            "Escape an operator: '\\|'.",
        )
    plain = sign.strip("[]") if len(sign) == 3 else sign
    return Value(plain.removeprefix("\\"), "STRING")


def _place(place: Bound) -> Bound:
    if isinstance(place, Constant):
        return fixed(place, INT, "the index of an element")
    if place.type != INT:
        raise mismatch(f"the index of an element is {place.type}", "The index must be INT.")
    return place


def fixed(constant: Bound, sql_type: SqlType, what: str) -> Value:
    """Return a constant of a given type as a `Value`, which stays in the signature."""
    if not isinstance(constant, Constant):
        raise unsupported(f"{what} that is not a constant", f"The value must be a constant {sql_type}.")
    if constant.type != sql_type or constant.value is None:
        raise mismatch(f"{what} is {constant.type}", f"The value must be {sql_type}.")
    return Value(constant.value, str(sql_type))  # type: ignore[arg-type]  # a text or a whole number


NESTED_CALLS: dict[str, Callable[..., Bound]] = {
    "array": array_value,
    "array_contains": _array_contains,
    "array_size": _array_size,
    "arrays_overlap": _arrays_overlap,
    "element_at": _element_at,
    "get": _get,
    "get_json_object": _get_json_object,
    "map_contains_key": _map_contains_key,
    "map_keys": _map_keys,
    "map_values": _map_values,
    "size": _size,
    "split": _split,
}
"""Binders by function, called with the function's name and the bound arguments."""
