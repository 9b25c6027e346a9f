"""Why an event is no match: conjuncts of the predicate that are FALSE or NULL for it, times that it lies outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gateway.testing.query import CheckedQuery
from grouping.binding.bound import Constant
from grouping.compiler.prepared import OF_STRINGS
from grouping.compiler.signature import render_part
from grouping.compiler.stage_text import value_text
from grouping.model.errors import InternalError
from grouping.model.expression import Call, Expression
from grouping.values.times import instant
from spark_jobs.batch.event_column import EventColumns
from spark_jobs.batch.events import Events
from spark_jobs.batch.row_source import RowSource
from spark_jobs.joins.join import join
from spark_jobs.match.residual import truth
from spark_jobs.tables.constant_cache import Snapshot

__all__ = ["Truths", "reason", "truths"]

Truths = dict[str, bool | None]
"""By conjunct, as text with its constants: whether it is TRUE, FALSE or (None) NULL."""


def truths(checked: CheckedQuery, snapshot: Snapshot, events: Events, rows: NDArray[np.int64]) -> list[Truths]:
    """Return for each of some events what the conjuncts of a query are; none where a join leaves nothing of it.

    Of an event that makes several rows with those of tables, the first that is a match counts, else the first.

    Args:
        checked: The query.
        snapshot: The tables with its row alone.
        events: The batch.
        rows: Which of the events.
    """
    [table] = snapshot.tables
    [part] = table.parts
    plan, source, own = table.shape.plan, cast(RowSource, events), rows
    if plan.computation is not None:
        joined = join(events, plan.computation, checked.views)
        own, source = np.flatnonzero(np.isin(joined.event, rows)), joined
    columns, first = EventColumns(source), np.zeros(own.size, np.int64)
    values = [
        truth(conjunct, columns, own, table.shape.types, part.rows.constants, first).to_list()
        for conjunct in plan.conjuncts
    ]
    told = [dict(zip(_texts(checked), each, strict=True)) for each in zip(*values, strict=True)] or [{}] * own.size
    if plan.computation is None:
        return told
    return _by_event(rows, joined.event[own], told)


def _by_event(rows: NDArray[np.int64], event: NDArray[np.int64], told: Sequence[Truths]) -> list[Truths]:
    """Return for each event the truths of its first row that is a match, else of its first; none without a row."""
    found: dict[int, Truths] = {}
    for each, truths_of_row in zip(event.tolist(), told, strict=True):
        if each not in found or (_holds(truths_of_row) and not _holds(found[each])):
            found[each] = truths_of_row
    return [found.get(row, {}) for row in rows.tolist()]


def _holds(conjuncts: Truths) -> bool:
    return all(value is True for value in conjuncts.values())


def reason(checked: CheckedQuery, at_ms: int, conjuncts: Truths) -> str:
    """Return why an event is no match."""
    reasons = []
    if checked.start_ms is not None and at_ms < checked.start_ms:
        reasons.append(f"its time {instant(at_ms)} is before START {instant(checked.start_ms)}")
    if checked.expire_ms is not None and at_ms >= checked.expire_ms:
        reasons.append(f"its time {instant(at_ms)} is not before EXPIRE {instant(checked.expire_ms)}")
    reasons += [f"{text} is {value_text(value)}" for text, value in conjuncts.items() if value is not True]
    if not reasons and checked.query.plan.computation is not None and not conjuncts:
        return "it meets no row of the tables that it is joined with"
    if not reasons:
        raise InternalError("the index and the predicate disagree", detail=f"All of it is TRUE: {list(conjuncts)}.")
    return ", ".join(reasons)


def _texts(checked: CheckedQuery) -> Sequence[str]:
    """Return the conjuncts as people read them: with the constants as the query spells them."""
    constants = [_spelled(constant) for constant in checked.draft.constants]
    return [_enclosed(conjunct, render_part(conjunct, constants)) for conjunct in checked.draft.expressions]


def _enclosed(conjunct: Expression, text: str) -> str:
    return f"({text})" if isinstance(conjunct, Call) and conjunct.op in ("and", "or", "not") else text


def _spelled(constant: Constant) -> str:
    if constant.members:
        return f"({', '.join(map(_spelled, constant.members))})"
    if constant.reader is None:
        return value_text(constant.value)
    return value_text(constant.text) if constant.reader in OF_STRINGS else constant.text
