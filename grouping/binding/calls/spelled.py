"""Calls that standard SQL writes with words between their arguments, such as ``substring(s FROM 1 FOR 2)``."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["SPELLED", "spelled_call"]

_SIDES = {"LEADING": "ltrim", "TRAILING": "rtrim"}
SPELLED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Trim: ("trim", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("locate", ("substr", "this")),
    exp.Overlay: ("overlay", ("this", "expression", "from_", "for_")),
}
"""Class of a node → the function, and the names of the node's fields that hold its arguments. The last argument may be
missing."""


def spelled_call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Return the function of a call with a syntax of its own, and its arguments in the function's order."""
    name, places = SPELLED[type(node)]
    if isinstance(node, exp.Trim):
        name = _SIDES.get((node.args.get("position") or "").upper(), name)
    arguments = [node.args.get(place) for place in places]
    return name, [argument for argument in arguments if isinstance(argument, exp.Expr)]
