"""Binding of functions that build or search arrays: their arguments are checked, and their results get types.

All arrays of a call must have one type. A value that a call adds to an array, or looks for in an array, must have the
type of the array's elements. In other calls, Spark would widen the array; here these calls are refused. A constant
value takes its type from the array and is pinned, so the fast path does not exchange it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.constants import coerce, settle
from grouping.binding.nested import element_type, fixed
from grouping.binding.operands import cast
from grouping.model.errors import InputError
from grouping.model.expression import Call, Slot, Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, BOOLEAN, DOUBLE, INT, STRING, SqlType, array_of, struct_of
from grouping.model.wording import are
from grouping.values.literals import LARGEST_COUNT

__all__ = [
    "ARRAY_CALLS",
    "concat_arrays",
    "joined",
    "name_in_struct",
    "named_struct",
    "numbered",
    "paired",
    "zipped",
]


def _parts(array: Bound, name: str) -> SqlType:
    """Return the type of the elements, which may be STRUCT, ARRAY or MAP."""
    return element_type(array, name, compared=False)


def _same(name: str, array: Bound) -> Bound:
    """Bind a function whose result is an array of the same type as its only argument."""
    _parts(array, name)
    return Term(name, (array,), array.type)


def _distinct(name: str, array: Bound) -> Bound:
    element_type(array, name)
    return Term(name, (array,), array.type)


def _extreme(name: str, array: Bound) -> Bound:
    return Term(name, (array,), element_type(array, name))


def _sort_array(name: str, array: Bound, ascending: Bound | None = None) -> Bound:
    element_type(array, name)
    if ascending is None:
        return Term(name, (array, Value(True, "BOOLEAN")), array.type)
    if not isinstance(ascending, Constant) or ascending.type != BOOLEAN or ascending.value is None:
        raise unsupported(f'a second argument of "{name}" other than TRUE or FALSE', "TRUE sorts ascending.")
    return Term(name, (array, Value(bool(ascending.value), "BOOLEAN")), array.type)


def _position(name: str, array: Bound, value: Bound) -> Bound:
    return Term(name, (array, _member(value, element_type(array, name), name)), BIGINT)


def _remove(name: str, array: Bound, value: Bound) -> Bound:
    return Term(name, (array, _member(value, element_type(array, name), name)), array.type)


def _append(name: str, array: Bound, value: Bound) -> Bound:
    added = _member(value, _parts(array, name), name)
    one = Term("array", (added,), array.type)
    return Term("concat arrays", (array, one) if name == "array_append" else (one, array), array.type)


def _insert(name: str, array: Bound, place: Bound, value: Bound) -> Bound:
    added = _member(value, _parts(array, name), name)
    at = fixed(place, INT, f'the place of "{name}"')
    if not at.value or abs(int(at.value)) > LARGEST_COUNT:
        raise _out_of_range(f'the place of "{name}"', at.value, f"1 to {LARGEST_COUNT:,}, or -1 to -{LARGEST_COUNT:,}")
    return Term(name, (array, at, added), array.type)


def _slice(name: str, array: Bound, start: Bound, length: Bound) -> Bound:
    _parts(array, name)
    return Term(name, (array, _whole(start, f'the start of "{name}"'), _whole(length, "a length")), array.type)


def _whole(operand: Bound, what: str) -> Bound:
    if operand.type != INT or is_null(operand):
        raise mismatch(f"{what} is {operand.type}", "The value must be INT.")
    return operand


def _of_two(name: str, one: Bound, other: Bound) -> Bound:
    element_type(one, name)
    one, other = _alike(name, (one, other))
    return Term(name, (one, other), one.type)


def concat_arrays(name: str, *arrays: Bound) -> Bound:
    """Return the concatenation of arrays."""
    for array in arrays:
        _parts(array, name)
    alike = _alike(name, arrays)
    return alike[0] if len(alike) == 1 else Term("concat arrays", alike, alike[0].type)


def _flatten(name: str, array: Bound) -> Bound:
    within = _parts(array, name)
    if within.name != "ARRAY":
        raise mismatch(f'an argument of "{name}" is {array.type}', "The argument must be an ARRAY of ARRAYs.")
    return Term(name, (array,), within)


def _join(name: str, array: Bound, between: Bound, instead: Bound | None = None) -> Bound:
    if element_type(array, name) != STRING:
        raise mismatch(
            f'an argument of "{name}" is {array.type}',
            "The argument must be ARRAY<STRING>.",
            "CAST each element: transform(a, x -> CAST(x AS STRING)).",
        )
    texts = (between,) if instead is None else (between, instead)
    for text in texts:
        if text.type != STRING or is_null(text):
            raise mismatch(f'the delimiter of "{name}" is {text.type}', "The delimiter must be STRING.")
    return Term(name, (array, *texts), STRING)


def joined(between: Bound, texts: Sequence[Bound]) -> Bound:
    """Return concat_ws of texts and arrays of texts; a NULL and a NULL array add nothing to the result."""
    arrays: list[Bound] = []
    for text in texts:
        if text.type.name == "ARRAY":
            if element_type(text, "concat_ws") != STRING:
                raise mismatch(
                    f'an argument of "concat_ws" is {text.type}', "The argument must be STRING or ARRAY<STRING>."
                )
            arrays.append(Term("array or none", (text,), text.type))
        else:
            arrays.append(Term("array", (text if text.type == STRING else cast(text, STRING),), array_of(STRING)))
    whole = concat_arrays("concat_ws", *arrays)
    return _join("array_join", whole, between)


def _repeat(name: str, value: Bound, count: Bound) -> Bound:
    """Return an array of one repeated value; a constant value is not lifted, since it decides the array's type."""
    if is_null(value):
        raise mismatch(f'an argument of "{name}" is NULL', "Its type is not known.", "CAST it.")
    times = fixed(count, INT, f'the count of "{name}"')
    if not isinstance(times.value, int) or times.value > LARGEST_COUNT:
        raise _out_of_range(f'the count of "{name}"', times.value, f"0 to {LARGEST_COUNT:,}")
    kept = settle(value) if isinstance(value, Constant) else value
    assert not isinstance(kept, Call | Slot), "a settled constant is a Value"
    return Term(name, (kept, times), array_of(value.type))


def _out_of_range(what: str, found: object, allowed: str) -> InputError:
    shown = f"{found:,}" if isinstance(found, int) else "NULL"
    return InputError(f"{what} is {shown}", code="unsupported-query", detail=f"The allowed range is {allowed}.")


def zipped(written: Sequence[exp.Expr], arrays: Sequence[Bound]) -> Bound:
    """Return arrays_zip: an ARRAY of STRUCTs with a field for each array. `_zipped_name` has the names of the fields.

    Raises:
        InputError: ``type-mismatch`` for an operand that is not an array; ``unsupported-query`` if a field has no
            certain name, or if two fields have one name.
    """
    if not arrays:
        raise mismatch('function "arrays_zip" takes 1 or more arguments', "There are none.")
    names = [_zipped_name(array, place) for place, array in enumerate(written)]
    if None in names:
        raise unsupported(
            "arrays_zip of a nested value's part", "The name of the field would not be certain.", "Use zip_with."
        )
    known = [name for name in names if name is not None]
    if len({name.casefold() for name in known}) < len(known):
        raise unsupported("a STRUCT with two fields of the same name", "Names of fields must differ.", "Use zip_with.")
    fields = [(name, _parts(array, "arrays_zip")) for name, array in zip(known, arrays, strict=True)]
    return Term("arrays paired", tuple(arrays), array_of(struct_of(fields)))


def _zipped_name(array: exp.Expr, place: int) -> str | None:
    """Return the name of a field of arrays_zip: the column's name, or the array's place in the call, counted from 0.

    The result is None for a part of a nested value.
    """
    array = array.unnest()
    if isinstance(array, exp.Dot | exp.Bracket):
        return None
    return array.name if isinstance(array, exp.Column | exp.Identifier) else str(place)


def name_in_struct(value: exp.Expr, place: int) -> str:
    """Return the name of a field of struct: an alias, the name of a column, field or key, or ``col1``, ``col2`` …."""
    bare = value.unnest()
    if isinstance(bare, exp.Bracket) and isinstance(key := bare.expressions[0], exp.Literal) and key.is_string:
        return key.name
    return bare.output_name if isinstance(bare, exp.Alias | exp.Column | exp.Dot) else f"col{place}"


def _sequence(name: str, first: Bound, last: Bound, step: Bound | None = None) -> Bound:
    """Return a sequence of constants as an array."""
    bounds = [first, last] if step is None else [first, last, step]
    values = [bound.value if isinstance(bound, Constant) and bound.type == INT else None for bound in bounds]
    if not all(isinstance(value, int) for value in values):
        raise unsupported(f'"{name}" of anything but INT constants', "An event could make the array very long.")
    begin, end, *by = values
    stride = by[0] if by else 1 if end >= begin else -1  # type: ignore[operator]  # whole numbers
    whole = range(begin, end + (1 if stride > 0 else -1), stride) if stride else ()  # type: ignore[operator, arg-type]
    if not whole or len(whole) > LARGEST_COUNT:
        raise _out_of_range(f'the number of elements of "{name}"', len(whole), f"1 to {LARGEST_COUNT:,}")
    return Term("array", tuple(Value(value, "INT") for value in whole), array_of(INT))


def paired(name: str, one: Bound, other: Bound) -> Bound:
    """Return the elements of two arrays in pairs, with NULLs for the shorter array."""
    kinds = (("0", _parts(one, name)), ("1", _parts(other, name)))
    return Term("arrays paired", (one, other), array_of(struct_of(kinds)))


def numbered(array: Bound, name: str) -> Bound:
    """Return the elements of an array, each with its index from 0."""
    kinds = (("0", _parts(array, name)), ("1", INT))
    return Term("array numbered", (array,), array_of(struct_of(kinds)))


def named_struct(name: str, *args: Bound) -> Bound:
    """Return a STRUCT; the arguments are names and values in turn."""
    if not args or len(args) % 2:
        raise mismatch(f'function "{name}" takes names and values in turn', f"There {are(len(args))} {len(args)}.")
    names = [fixed(key, STRING, "the name of a field") for key in args[::2]]
    if len({str(key.value).casefold() for key in names}) < len(names):
        raise unsupported("a STRUCT with two fields of the same name", "Names of fields must differ.")
    for value in args[1::2]:
        if is_null(value):
            raise mismatch("a field is NULL", "Its type is not known.", "CAST it.")
    sql_type = struct_of([(str(key.value), value.type) for key, value in zip(names, args[1::2], strict=True)])
    parts = [part for pair in zip(names, args[1::2], strict=True) for part in pair]
    return Term(name, tuple(parts), sql_type)


def _alike(name: str, arrays: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return arrays of one type.

    A literal ``array(…)`` with only constants takes the type of the first array that is not a literal.

    Raises:
        InputError: ``type-mismatch``.
    """
    kinds = [array.type for array in arrays if not _is_literal(array)] or [arrays[0].type]
    made = tuple(_literal_of(array, kinds[0], name) if _is_literal(array) else array for array in arrays)
    for array in made:
        if array.type != kinds[0]:
            raise mismatch(
                f'"{name}" cannot combine {kinds[0]} and {array.type}',
                "The arrays must have the same type.",
                "CAST one.",
            )
    return made


def _is_literal(array: Bound) -> bool:
    return isinstance(array, Term) and array.op == "array" and all(isinstance(part, Constant) for part in array.args)


def _literal_of(array: Bound, sql_type: SqlType, name: str) -> Bound:
    assert isinstance(array, Term) and sql_type.element is not None, "a list of constants beside an array"
    if array.type == sql_type:
        return array
    return Term("array", tuple(_member(part, sql_type.element, name) for part in array.args), sql_type)


def _member(value: Bound, of: SqlType, name: str) -> Bound:
    """Return a value with the type of an array's elements.

    Raises:
        InputError: ``type-mismatch`` if Spark would widen the array or refuse the value.
    """
    if is_null(value):
        raise mismatch(f'an argument of "{name}" is NULL', "Its type is not known.")
    if not isinstance(value, Constant) or value.type == of:
        if value.type != of:
            raise mismatch(
                f'"{name}" cannot combine ARRAY<{of}> and {value.type}', "They must have the same type.", "CAST one."
            )
        return _as_it_is(value, of) if of.is_number and isinstance(value, Constant) else value
    wider = of == BIGINT and value.type == INT
    if not wider and not (of == DOUBLE and value.type in (INT, BIGINT) and value.reader):
        raise mismatch(
            f'"{name}" cannot combine ARRAY<{of}> and {value.type}', "They must have the same type.", "CAST one."
        )
    return _as_it_is(coerce(value, DOUBLE) if of == DOUBLE else value, of)


def _as_it_is(constant: Constant, of: SqlType) -> Constant:
    """Return a constant as a value of a type, pinned so that the fast path does not exchange it."""
    return msgspec.structs.replace(constant, type=of, is_pinned=True)


ARRAY_CALLS: dict[str, Callable[..., Bound]] = {
    "array_append": _append,
    "array_compact": _same,
    "array_distinct": _distinct,
    "array_except": _of_two,
    "array_insert": _insert,
    "array_intersect": _of_two,
    "array_join": _join,
    "array_max": _extreme,
    "array_min": _extreme,
    "array_position": _position,
    "array_prepend": _append,
    "array_remove": _remove,
    "array_repeat": _repeat,
    "array_sort": _distinct,
    "array_union": _of_two,
    "flatten": _flatten,
    "named_struct": named_struct,
    "sequence": _sequence,
    "slice": _slice,
    "sort_array": _sort_array,
}
"""Binders by function, called with the function's name and the bound arguments; `calls.call` binds ``reverse``,
``concat`` and ``concat_ws`` of arrays."""
