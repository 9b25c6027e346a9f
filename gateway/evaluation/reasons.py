"""The reasons why an event is not a match: conjuncts that are FALSE or NULL, or a time before START or after EXPIRE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gateway.evaluation.standing_query import StandingQuery
from grouping.compiler.stage_text import value_text
from grouping.model.errors import InternalError
from grouping.model.query import Edge
from grouping.values.times import instant
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.match.residual import truth
from spark_jobs.engine.operators.extended_rows import ExtendedRows
from spark_jobs.engine.operators.lookup_join.join import join
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["NOT_JUDGED", "NO_ELEMENT", "Judgement", "Truths", "holds", "judgements", "reason", "truths"]

NO_ELEMENT = "the record has no elements"

Truths = dict[str, bool | None]
"""Conjunct, as text with its constants → TRUE or FALSE; None for NULL."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The values of a predicate's conjuncts for an event, or for a row of the event's join with tables."""

    conjuncts: Truths
    """The values of the conjuncts; empty if the join gives no row for the event."""
    row: int | None
    """The index of the row whose conjuncts were evaluated; None if there is no row."""


NOT_JUDGED = Judgement({}, None)
"""The judgement of an event without a row."""


def judgements(
    standing: StandingQuery,
    snapshot: Snapshot,
    events: Events,
    rows: NDArray[np.int64],
    framed: ExtendedRows | None = None,
) -> tuple[RowSource, list[Judgement]]:
    """Return the rows that were evaluated, and the values of a query's conjuncts for each of some events.

    If the join with tables gives several rows for an event, the first matching row is used; without a matching row, the
    first row is used.

    Args:
        standing: The query.
        snapshot: The constant tables, with only the query's row.
        events: All events of a batch.
        rows: The indexes of the events to evaluate.
        framed: For a query with window functions: the rows with the values of the frames.
    """
    plan = standing.query.plan
    if framed is not None and plan.frames is not None:
        own = np.flatnonzero(np.isin(framed.event, rows))
        each_truth = zip(own.tolist(), truths(standing, snapshot, framed, own), strict=True)
        judged = {int(framed.event[row]): Judgement(truth, row) for row, truth in each_truth}
        return framed, [judged.get(row, NOT_JUDGED) for row in rows.tolist()]
    if plan.computation is None or not plan.nodes:
        source = cast(RowSource, events)
        of_rows = truths(standing, snapshot, source, rows)
        return source, [Judgement(each, row) for row, each in zip(rows.tolist(), of_rows, strict=True)]
    joined = join(events, plan.computation, standing.views)
    own = np.flatnonzero(np.isin(joined.event, rows))
    found: dict[int, Judgement] = {}
    for event, row, each in zip(
        joined.event[own].tolist(), own.tolist(), truths(standing, snapshot, joined, own), strict=True
    ):
        if event not in found or (holds(each) and not holds(found[event].conjuncts)):
            found[event] = Judgement(each, row)
    return joined, [found.get(row, NOT_JUDGED) for row in rows.tolist()]


def truths(
    standing: StandingQuery,
    snapshot: Snapshot,
    source: RowSource,
    rows: NDArray[np.int64],
    which: Sequence[int] | None = None,
) -> list[Truths]:
    """Return the truth values of a query's conjuncts for each of some rows.

    Args:
        standing: The query.
        snapshot: The constant tables, with only the query's row.
        source: All rows.
        rows: The indexes of the rows to evaluate.
        which: The indexes of the conjuncts to evaluate; None for all.
    """
    [table] = [each for each in snapshot.tables if not each.shape.ending]
    [part] = table.parts
    conjuncts, types, constants = table.shape.plan.where, table.shape.types, part.rows.constants
    places = range(len(conjuncts)) if which is None else which
    columns, first = EventColumns(source), np.zeros(rows.size, np.int64)
    values = [truth(conjuncts[at], columns, rows, types, constants, first).to_list() for at in places]
    texts = [standing.texts[at] for at in places]
    return [dict(zip(texts, each, strict=True)) for each in zip(*values, strict=True)] or [{}] * rows.size


def holds(conjuncts: Truths) -> bool:
    """Tell whether all conjuncts are TRUE."""
    return all(value is True for value in conjuncts.values())


def reason(standing: StandingQuery, at_ms: int, judgement: Judgement) -> str:
    """Return why an event is not a match or, for a query with edges, not an edge."""
    reasons, conjuncts = [], judgement.conjuncts
    if standing.start_ms is not None and at_ms < standing.start_ms:
        reasons.append(f"its time {instant(at_ms)} is before START {instant(standing.start_ms)}")
    if standing.expire_ms is not None and at_ms >= standing.expire_ms:
        reasons.append(f"its time {instant(at_ms)} is not before EXPIRE {instant(standing.expire_ms)}")
    failed = [f"{text} is {value_text(value)}" for text, value in conjuncts.items() if value is not True]
    of_from = standing.texts[len(standing.texts) - len(standing.query.plan.of_from) :]
    if not reasons and conjuncts and any(conjuncts[text] is not True for text in of_from):
        return f"FROM leaves the event out: {', '.join(failed)}"
    if not reasons and judgement.row is None and standing.query.plan.frames:
        return "a condition of WHERE that decides which events the frames hold is not TRUE"
    if not reasons and judgement.row is None and standing.query.plan.nodes:
        return "it meets no row of the tables that it is joined with"
    if not reasons and not failed and standing.query.edge == "silence":
        return "its key was not silent for the interval, within the given rows, or its time was late"
    if not reasons and standing.query.plan.lasting is not None:
        return _no_lasting_edge(standing.query.edge, failed)
    if not reasons and standing.query.edge and standing.query.edge != "silence":
        return _no_edge(standing.query.edge, failed, stays=standing.query.plan.stay is not None)
    reasons += failed
    if not reasons:
        raise InternalError("the index and the predicate disagree", detail=f"All of it is TRUE: {list(conjuncts)}.")
    return ", ".join(reasons)


def _no_lasting_edge(edge: Edge, failed: Sequence[str]) -> str:
    """Return why an event is not an edge of a query with FOR."""
    if failed:
        why = ", ".join(failed)
        return why if edge == "enter" else f"{why}, and no stay of the interval ended with it, or its time was late"
    if edge == "exit":
        return "it is a match, which is not an exit"
    return "its key was in already, or did not stay in for the interval, within the given rows, or its time was late"


def _no_edge(edge: Edge, failed: Sequence[str], *, stays: bool) -> str:
    """Return why an event is not an edge.

    Args:
        edge: The kind of edge that the query reports.
        failed: The conjuncts that are not TRUE; empty for a match.
        stays: Whether the query has UNTIL, so that a key stays in until UNTIL is TRUE.
    """
    if edge == "changes":
        why = f"{', '.join(failed)}, and no match was right before it"
        return why if failed else "the SELECT list has the same values for the row before the change"
    if stays:
        return "its key was in already" if not failed else f"{', '.join(failed)}, and no key leaves with it"
    if not failed:
        return "it is a match, which is not an exit" if edge == "exit" else "the event before it was a match too"
    why = ", ".join(failed)
    return why if edge == "enter" else f"{why}, and no match was right before it"
