"""Why an event is no match: conjuncts of the predicate that are FALSE or NULL for it, times that it lies outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gateway.testing.query import CheckedQuery
from grouping.compiler.bound import Constant
from grouping.compiler.prepared import OF_STRINGS
from grouping.compiler.signature import render_part
from grouping.compiler.stage_text import value_text
from grouping.model.errors import InternalError
from grouping.model.expression import Call, Expression
from grouping.values.times import instant
from spark_jobs.batch.event_column import EventColumns
from spark_jobs.batch.events import Events
from spark_jobs.match.residual import truth
from spark_jobs.tables.constant_cache import Snapshot

__all__ = ["Truths", "reason", "truths"]

Truths = dict[str, bool | None]
"""By conjunct, as text with its constants: whether it is TRUE, FALSE or (None) NULL."""


def truths(checked: CheckedQuery, snapshot: Snapshot, events: Events, rows: NDArray[np.int64]) -> list[Truths]:
    """Return for each of some events what the conjuncts of a query are.

    Args:
        checked: The query.
        snapshot: The tables with its row alone.
        events: The batch.
        rows: Which of the events.
    """
    [table] = snapshot.tables
    [part] = table.parts
    columns, first = EventColumns(events), np.zeros(rows.size, np.int64)
    found: list[Truths] = [{} for _ in range(rows.size)]
    for text, conjunct in zip(_texts(checked), table.shape.plan.conjuncts, strict=True):
        values = truth(conjunct, columns, rows, table.shape.types, part.rows.constants, first)
        for each, value in zip(found, values.to_list(), strict=True):
            each[text] = value
    return found


def reason(checked: CheckedQuery, at_ms: int, conjuncts: Truths) -> str:
    """Return why an event is no match."""
    reasons = []
    if checked.start_ms is not None and at_ms < checked.start_ms:
        reasons.append(f"its time {instant(at_ms)} is before START {instant(checked.start_ms)}")
    if checked.expire_ms is not None and at_ms >= checked.expire_ms:
        reasons.append(f"its time {instant(at_ms)} is not before EXPIRE {instant(checked.expire_ms)}")
    reasons += [f"{text} is {value_text(value)}" for text, value in conjuncts.items() if value is not True]
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
