"""Functions that take a lambda: exists, forall, filter, transform, zip_with, reduce and functions of MAPs.

Within the body, the element is a column: all rules for columns apply, constants of the body are lifted, and the names
of variables do not matter. If a lambda has two variables, its element is a STRUCT and each variable is a field: the key
and the value of a MAP's entry, an element and its index, or the elements of two arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.arrays import numbered, paired
from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.maps import entries_of, map_of_arrays, merged
from grouping.binding.nested import NESTED_CALLS, field
from grouping.binding.operands import boolean
from grouping.functions.functions import LAMBDAS
from grouping.model.errors import InputError
from grouping.model.expression import Column, Value, Variable
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BOOLEAN, STRING, SqlType, array_of, map_of
from grouping.model.wording import are, counted

__all__ = ["elements_of", "lambda_call", "reduction", "reduction_columns", "variables_of"]


_MAKING = frozenset(("map_zip_with", "transform", "transform_keys", "transform_values", "zip_with"))


def elements_of(name: str, collections: Sequence[Bound], variables: int) -> Bound:
    """Return the array with the elements for which a lambda is evaluated.

    Args:
        name: The function.
        collections: The arguments before the lambda.
        variables: The number of the lambda's variables.

    Raises:
        InputError: ``type-mismatch`` or ``unsupported-query``.
    """
    wanted = 2 if name in ("zip_with", "map_zip_with") else 1
    if len(collections) != wanted:
        takes = f"{counted(wanted, 'argument')} and a lambda"
        raise mismatch(f'function "{name}" takes {takes}', f"There {are(len(collections))} {len(collections)}.")
    base = collections[0]
    least = LAMBDAS[name]
    most = 1 if name in ("exists", "forall") else max(least, 2)
    if not least <= variables <= most:
        has = f"{least} or {most}" if least < most else str(most)
        message = f'the lambda of "{name}" takes {counted(most, "variable") if least == most else has}, not {variables}'
        raise InputError(message, code="unsupported-query", detail=f"The lambda has {counted(variables, 'variable')}.")
    if name == "zip_with":
        return paired(name, base, collections[1])
    if name == "map_zip_with":
        return merged(name, base, collections[1])
    if name in ("map_filter", "transform_keys", "transform_values"):
        return entries_of(base, name)
    if base.type.name != "ARRAY":
        raise mismatch(f'an argument of "{name}" is {base.type}', "The argument must be an ARRAY.")
    return numbered(base, name) if variables > 1 else base


def variables_of(elements: Bound, level: int, variables: int) -> tuple[Column, list[Bound]]:
    """Return the column of an element within the body, and the expression of each variable.

    Args:
        elements: The result of `elements_of`.
        level: The number of variables of the enclosing lambdas.
        variables: The number of this lambda's variables.
    """
    sql_type = elements.type.element
    assert sql_type is not None, "an array"
    element = Column.of(Variable(level), str(sql_type))
    if variables == 1:
        return element, [element]
    return element, [field(element, name) for name, _ in sql_type.fields]


def lambda_call(name: str, elements: Bound, variable: Column, body: Bound, of: Bound) -> Bound:
    """Return one of `functions.LAMBDAS` over an array and the body of its lambda.

    Args:
        name: The function.
        elements: The array, from `elements_of`.
        variable: The column of an element, from `variables_of`.
        body: The body of the lambda.
        of: The function's first argument.

    Raises:
        InputError: ``type-mismatch`` for a body that must be BOOLEAN and is not.
    """
    if name in _MAKING:
        return _made(name, Term("transform", (elements, variable, body), array_of(body.type)), of)
    body = boolean(body, f'the lambda of "{name}"')
    if name == "exists" and (contained := _contained(elements, variable, body)) is not None:
        return contained
    if name in ("exists", "forall"):
        return Term(name, (elements, variable, body), BOOLEAN)
    if name == "map_filter":
        return Term(name, (elements, variable, body), of.type)
    kept = Term(name, (elements, variable, body), elements.type)
    return kept if elements is of else Term("field", (kept, Value("0", "STRING")), of.type)


def _made(name: str, made: Term, of: Bound) -> Bound:
    """Return the result of a function; `made` is the ARRAY of the values of its lambda."""
    match name:
        case "transform_keys":
            return map_of_arrays(made, NESTED_CALLS["map_values"](name, of), name)
        case "transform_values":
            return Term("arrays paired", (NESTED_CALLS["map_keys"](name, of), made), map_of(STRING, made.args[2].type))
        case "map_zip_with":
            keys = Term("field", (made.args[0], Value("0", "STRING")), array_of(STRING))
            return Term("arrays paired", (keys, made), map_of(STRING, made.args[2].type))
    return made


def reduction_columns(array: Bound, start: Bound, level: int) -> tuple[Column, Column]:
    """Return the accumulator and the element as columns within the first lambda of reduce.

    Raises:
        InputError: ``type-mismatch`` for an operand that is no ARRAY, and for a NULL start; ``unsupported-query`` for a
            start with parts, and for a VARIANT.
    """
    if array.type.name != "ARRAY":
        raise mismatch(f'an argument of "reduce" is {array.type}', "The argument must be an ARRAY.")
    if is_null(start):
        raise mismatch("the start of reduce is NULL", "The type of the NULL is not known.", "CAST it.")
    if not start.type.is_ordered:
        raise unsupported(f"reduce to {start.type}", "The result must be a number, a text, a time or a BOOLEAN.")
    return Column.of(Variable(level), str(start.type)), Column.of(Variable(level + 1), str(array.type.element))


def reduction(array: Bound, start: Bound, columns: tuple[Column, Column], body: Bound) -> Bound:
    """Return reduce over an array.

    Raises:
        InputError: ``type-mismatch`` if the lambda's result has another type than the start; Spark does not cast it.
    """
    sql_type: SqlType = start.type
    if is_null(body) or body.type != sql_type:
        raise mismatch(
            f"the lambda of reduce returns {body.type}",
            f"The start is {sql_type}; both must have the same type.",
            "CAST one.",
        )
    return Term("reduce", (array, start, *columns, body), sql_type)


def _contained(array: Bound, variable: Column, body: Bound) -> Bound | None:
    """Return ``exists(array, x -> x = value)`` as array_contains, which has an index; None for anything else.

    The value must be a non-NULL constant: for NULL, array_contains of an empty array is NULL, but exists is FALSE.
    """
    match body:
        case Term("=", (left, right)) if variable in (left, right):
            value = right if left == variable else left
        case _:
            return None
    if not isinstance(value, Constant) or is_null(value):
        return None
    try:
        return NESTED_CALLS["array_contains"]("array_contains", array, value)
    except InputError:
        return None
