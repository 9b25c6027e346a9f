"""Functions of an array and a lambda: exists, forall, filter and transform.

A lambda's element is a column within the body, so that all that is said of columns holds of it, its constants are
lifted, and names of variables don't count.
"""

from __future__ import annotations

from grouping.binding.bound import Bound, Constant, Term, nodes
from grouping.binding.nested import nested_call
from grouping.binding.operands import boolean
from grouping.model.errors import InputError
from grouping.model.expression import Column, variable_name
from grouping.model.refusals import mismatch
from grouping.model.sql_type import BOOLEAN, array_of

__all__ = ["element_variable", "lambda_call"]


def element_variable(name: str, array: Bound, level: int) -> Column:
    """Return the column that an element of an array is in the body of a lambda.

    Args:
        name: The function.
        array: Its first argument.
        level: How many lambdas stand around this one.

    Raises:
        InputError: ``type-mismatch`` for what is no ARRAY.
    """
    if array.type.name != "ARRAY":
        raise mismatch(f'an argument of "{name}" is {array.type}', "It must be an ARRAY.")
    return Column(variable_name(level), str(array.type.element))


def lambda_call(name: str, array: Bound, variable: Column, body: Bound) -> Bound:
    """Return one of `nested_functions.LAMBDAS` over an array and the body of its lambda.

    Raises:
        InputError: ``type-mismatch`` for a body that is no BOOLEAN where one is asked for.
    """
    if name == "transform":
        return Term(name, (array, variable, body), array_of(body.type))
    body = boolean(body, f'the lambda of "{name}"')
    if name == "exists" and (contained := _contained(array, variable, body)) is not None:
        return contained
    return Term(name, (array, variable, body), array.type if name == "filter" else BOOLEAN)


def _contained(array: Bound, variable: Column, body: Bound) -> Bound | None:
    """Return ``exists(array, x -> x = value)`` as array_contains, which has an index; None for anything else."""
    match body:
        case Term("=", (left, right)) if variable in (left, right):
            value = right if left == variable else left
        case _:
            return None
    if variable in nodes(value) or (isinstance(value, Constant) and value.value is None):
        return None
    try:
        return nested_call("array_contains", (array, value))
    except InputError:
        return None
