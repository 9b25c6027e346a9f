"""EXPLAIN: the compiled form of a query, as text and as data."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from textwrap import indent
from typing import Any

from grouping.access.access_path import AccessPath, choose_index
from grouping.access.explain_tree import Use, plan_tree, tree_lines
from grouping.access.stream_statistics import StreamStatistics
from grouping.binding.budget import Budget
from grouping.compiler.compiler import stage_texts
from grouping.model.catalog import Catalog, Stream
from grouping.model.group import ConstantRow, ConstantValue
from grouping.model.wording import figure
from grouping.plan.expression_text import render_part
from grouping.plan.group import CompiledQuery
from grouping.plan.passing import PASSING
from grouping.plan.signature import render_until

__all__ = ["explain", "explain_stages", "shown_constants"]


def explain(
    query: CompiledQuery, stream: Stream, statistics: StreamStatistics | None = None, use: Use | None = None
) -> dict[str, Any]:
    """Return the result of EXPLAIN: the plan as data, and as text.

    Args:
        query: The query to explain.
        stream: The stream of the query.
        statistics: The workers' statistics of the stream. With statistics, EXPLAIN shows the index in use.
        use: The numbers of CQs that use the query's parts.
    """
    statistics = statistics or StreamStatistics()
    conjuncts = query.plan.conjuncts
    load = statistics.group(query.plan.group_id)
    path = load.path if load is not None else _expected_index(query, statistics)
    texts = [render_part(conjunct) for conjunct in conjuncts]
    plan: dict[str, Any] = {
        "stream": stream.name,
        "signature": query.plan.signature,
        "group": query.plan.group_id,
        "constants": shown_constants(query.row),
        "index": path.kind,
        "keys": [texts[i] for i in path.keys],
        "filters": [texts[i] for i in path.filters if conjuncts[i] != PASSING],
        "residual": [texts[i] for i in path.residual],
        "select": [item.name for item in query.select.items],
        "expected": {
            "candidates_per_event": _shown_figure(statistics.candidates(path, conjuncts, query.row)),
            "matches_per_event": _shown_figure(statistics.matches(conjuncts, query.row)),
        },
        "observed": None
        if load is None
        else {
            "rows": load.rows,
            "candidates_per_event": _shown_figure(load.per_event(load.candidates)),
            "matches_per_event": _shown_figure(load.per_event(load.matches)),
            "cost_per_event_us": _shown_figure(load.per_event(load.micros)),
        },
    }
    if (kept := query.plan.kept) is not None and (groups := query.select.aggregation) is not None:
        plan["groups"] = {
            "keys": [render_part(key.column) for key in groups.keys],
            "aggregates": [render_part(aggregate.column) for aggregate in groups.aggregates],
            "having": [render_part(conjunct) for conjunct in kept.having],
            "stored_by": shown_constants(ConstantRow((), query.row.values[: kept.slots])),
        }
    if query.plan.stay is not None:
        plan["until"] = render_until(query.plan.stay, query.plan.computation)
    plan["tree"] = plan_tree(query.plan, stream, path, use or Use())
    return {"plan": plan, "text": "\n".join([_text(plan), *tree_lines(plan["tree"])])}


def explain_stages(select: str, catalog: Catalog, budget: Budget | None = None) -> dict[str, Any]:
    """Return the result of EXPLAIN STAGES: the tree after each stage of the compiler, as data and as one text.

    Raises:
        InputError: The SELECT is wrong. docs/commands.md lists the codes.
    """
    trees = dict(stage_texts(select, catalog, budget))
    plan = {"stages": [{"stage": name, "tree": tree} for name, tree in trees.items()]}
    return {"plan": plan, "text": "\n".join(f"{name}\n{indent(tree, '  ')}" for name, tree in trees.items())}


def _expected_index(query: CompiledQuery, statistics: StreamStatistics) -> AccessPath:
    """Return the index with the fewest expected candidates for the query's row; without statistics, the first one."""

    def cost(path: AccessPath) -> float:
        found = statistics.candidates(path, query.plan.conjuncts, query.row)
        return 1.0 if found is None else found

    return choose_index(query.plan.conjuncts, cost)


def _shown_figure(figure: float | None) -> float | None:
    """Return a figure with four significant digits."""
    return None if figure is None else float(f"{figure:.4g}")


def shown_constants(row: ConstantRow) -> list[Any]:
    """Return the constants in the form of replies: JSON scalars; a set is a list, and a date or decimal is a text."""
    return [value if type(value) in _AS_THEY_ARE else _shown(value) for value in row.values]


_AS_THEY_ARE = frozenset((str, float, int, bool))


def _shown(value: ConstantValue) -> Any:
    if isinstance(value, tuple):
        return [_shown(member) for member in value]
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return format(value, "f") if isinstance(value, Decimal) else value


def _group_lines(groups: dict[str, Any], number: int) -> list[str]:
    """Return the steps of an aggregate query: partial aggregates, and HAVING at the tick."""
    by = f" by {', '.join(groups['keys'])}" if groups["keys"] else ""
    aggregates = ", ".join(groups["aggregates"]) or "nothing"
    lines = [f"  {number}. aggregated{by}: {aggregates}; matches with equal keys wait for the tick as one row"]
    if groups["having"]:
        lines.append(f"  {number + 1}. at the tick, the aggregates where {' AND '.join(groups['having'])}")
    return lines


def _text(plan: dict[str, Any]) -> str:
    lines = [plan["signature"], f"  group {plan['group']}, constants {plan['constants']}"]
    if plan["filters"]:
        lines.append(f"  1. events where {' AND '.join(plan['filters'])}")
    looked_up = f" on {' AND '.join(plan['keys'])}" if plan["keys"] else " of all rows"
    lines.append(f"  {len(lines) - 1}. {plan['index']}{looked_up}")
    if plan["residual"]:
        lines.append(f"  {len(lines) - 1}. the candidates where {' AND '.join(plan['residual'])}")
    if "groups" in plan:
        lines += _group_lines(plan["groups"], len(lines) - 1)
    lines.append(f"  {len(lines) - 1}. {', '.join(plan['select'])} to the destinations")
    expected, observed = plan["expected"], plan["observed"]
    if expected["matches_per_event"] is not None:
        lines.append(
            f"  expected for this query: {figure(expected['candidates_per_event'], 'candidate')} and "
            f"{figure(expected['matches_per_event'], 'match')} per event"
        )
    if observed is not None:
        lines.append(
            f"  observed for its group ({figure(observed['rows'], 'row')}): "
            f"{figure(observed['candidates_per_event'], 'candidate')} and "
            f"{figure(observed['matches_per_event'], 'match')} per event, "
            f"{observed['cost_per_event_us']:g} µs per event"
        )
    return "\n".join(lines)
