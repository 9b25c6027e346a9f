"""A query in the form for evaluation: compiled, with its START and EXPIRE and the rows of the joined tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from gateway.model.trigger_spec import TriggerSpec
from grouping.model.catalog import Stream
from grouping.model.expression import Call, Expression, walk
from grouping.plan.computation import Computation
from grouping.plan.expression_text import render_part
from grouping.plan.group import CompiledQuery
from grouping.plan.passing import PASSING
from grouping.plan.row_before import EDGE
from spark_jobs.engine.operators.lookup_join.table_view import TableView

__all__ = ["StandingQuery", "conjunct_texts", "without_edges"]


@dataclass(frozen=True, slots=True)
class StandingQuery:
    """A query that the gateway has accepted, or would accept."""

    stream: Stream
    query: CompiledQuery
    trigger: TriggerSpec
    start_ms: int | None
    expire_ms: int | None
    texts: Sequence[str]
    """The conjuncts of WHERE as SQL text, with their constants."""
    views: Mapping[str, TableView]
    """Id of a table → the table with its rows, for the tables that the query may join."""


def without_edges(query: CompiledQuery) -> CompiledQuery:
    """Return a query without its edges: each match is then a result, and the SELECT list has no item with `_edge`."""
    if not query.edge:
        return query
    plan, select = query.plan, query.select
    if plan.timed is not None:
        where = (each for each in plan.timed.where if each != PASSING)
        plan = replace(plan, conjuncts=(*plan.conjuncts, *where))
    plan = replace(plan, conjuncts=plan.where)
    computation = Computation.of(plan.stream_id, plan.nodes, frames=plan.frames) if plan.nodes or plan.frames else None
    items = tuple(item for item in select.items if EDGE not in walk(item.expression))
    alone = replace(plan, computation=computation, stay=None)
    return CompiledQuery(alone, query.row, replace(select, items=items), query.views)


def conjunct_texts(conjuncts: Sequence[Expression], constants: Sequence[str]) -> list[str]:
    """Return conjuncts as SQL text with their constants. A conjunct with AND, OR or NOT is in parentheses.

    Args:
        conjuncts: The predicate's conjuncts.
        constants: The constants as SQL text, by slot.
    """
    return [_enclosed(conjunct, render_part(conjunct, constants)) for conjunct in conjuncts]


def _enclosed(conjunct: Expression, text: str) -> str:
    return f"({text})" if isinstance(conjunct, Call) and conjunct.op in ("and", "or", "not") else text
