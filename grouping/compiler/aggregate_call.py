"""Parsing of aggregate calls, with FILTER and IGNORE NULLS wherever Spark accepts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from grouping.functions.functions import AGGREGATE_ALIASES, AGGREGATES
from grouping.model.refusals import unsupported
from grouping.statements.select_text import FUNCTION_MARK

__all__ = ["AggregateCall", "aggregate_call", "aggregate_name"]

_OF_NULLS = (exp.IgnoreNulls, exp.RespectNulls)
_BY_ARRIVAL = ("first", "last")


class AggregateCall(NamedTuple):
    """A call of an aggregate with unbound arguments."""

    name: str
    """The canonical name; the query may use an alias."""
    arguments: Sequence[exp.Expr]
    """Empty for count(*)."""
    condition: exp.Expr | None
    """The condition of FILTER."""
    whole: bool
    """Whether the call is count(*)."""
    distinct: bool
    ignore_nulls: bool


def aggregate_name(node: exp.Expr) -> str | None:
    """Return the canonical name of the aggregate that a node calls; None for any other node."""
    if not isinstance(node, exp.Anonymous):
        return None
    written = str(node.this).removeprefix(FUNCTION_MARK).lower()
    name = AGGREGATE_ALIASES.get(written, written)
    return name if name in AGGREGATES else None


def aggregate_call(node: exp.Expr) -> AggregateCall | None:
    """Return a node that calls an aggregate as an `AggregateCall`; None for any other node.

    Raises:
        InputError: ``unsupported-query`` for FILTER, DISTINCT or IGNORE NULLS that the called function does not take.
    """
    nulls = node if isinstance(node, _OF_NULLS) else None
    called = nulls.this if nulls is not None else node
    condition = None
    if isinstance(called, exp.Filter):
        called, condition = called.this, called.expression.this
    name = aggregate_name(called)
    if name is None:
        if condition is not None:
            raise unsupported("FILTER", "FILTER must follow an aggregate.")
        return None
    arguments = list(called.expressions)
    if arguments and isinstance(arguments[0], _OF_NULLS):
        nulls, arguments[0] = arguments[0], arguments[0].this
    if nulls is not None and name not in _BY_ARRIVAL:
        words = "IGNORE NULLS" if isinstance(nulls, exp.IgnoreNulls) else "RESPECT NULLS"
        raise unsupported(f"{words} of {name}", f"Only first and last take {words}.")
    ignore_nulls = isinstance(nulls, exp.IgnoreNulls)
    if name in _BY_ARRIVAL and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
        ignore_nulls |= bool(arguments.pop().this)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
        if name != "count":
            raise unsupported(f"{name}(DISTINCT …)", "Only count takes DISTINCT.")
    whole = name == "count" and not distinct and len(arguments) == 1 and isinstance(arguments[0], exp.Star)
    return AggregateCall(name, () if whole else arguments, condition, whole, distinct, ignore_nulls)
