"""What a query was compiled to, for people and for programs."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from grouping.access_path import AccessPath, choose_index
from grouping.catalog import Stream
from grouping.group import CompiledQuery, ConstantValue
from grouping.signature import render_part

__all__ = ["explain", "shown_constants"]


def explain(query: CompiledQuery, stream: Stream) -> dict[str, Any]:
    """Return EXPLAIN's answer: the plan as data, and the same as text.

    What only the running system knows (members, matches) is for the caller to add under ``plan``.
    """
    path = choose_index(query.plan.conjuncts)
    texts = [render_part(conjunct) for conjunct in query.plan.conjuncts]
    plan: dict[str, Any] = {
        "stream": stream.name,
        "signature": query.plan.signature,
        "group": query.plan.group_id,
        "constants": shown_constants(query),
        "index": path.kind,
        "keys": [texts[i] for i in _keys(path)],
        "filters": [texts[i] for i in path.filters],
        "residual": [texts[i] for i in path.residual],
        "select": [item.name for item in query.select.items],
    }
    return {"plan": plan, "text": _text(plan)}


def shown_constants(query: CompiledQuery) -> list[Any]:
    """Return the constants by slot as replies show them: JSON scalars, a list for a set, dates and decimals as text."""
    return [_shown(value) for value in query.row.values]


def _shown(value: ConstantValue) -> Any:
    if isinstance(value, tuple):
        return [_shown(member) for member in value]
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return format(value, "f") if isinstance(value, Decimal) else value


def _keys(path: AccessPath) -> tuple[int, ...]:
    return (*path.equal, *(i for i in (path.set_member, path.lower, path.upper) if i is not None))


def _text(plan: dict[str, Any]) -> str:
    lines = [plan["signature"], f"  group {plan['group']}, constants {plan['constants']}"]
    if plan["filters"]:
        lines.append(f"  1. events where {' AND '.join(plan['filters'])}")
    looked_up = f" on {' AND '.join(plan['keys'])}" if plan["keys"] else " of all rows"
    lines.append(f"  {len(lines) - 1}. {plan['index']}{looked_up}")
    if plan["residual"]:
        lines.append(f"  {len(lines) - 1}. of the candidates those where {' AND '.join(plan['residual'])}")
    lines.append(f"  {len(lines) - 1}. {', '.join(plan['select'])} to the destinations")
    return "\n".join(lines)
