"""Evaluates an event for a query: whether it matches, the value of each conjunct of WHERE, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from gateway.evaluation.one_entry import snapshot_of
from gateway.evaluation.outcome import ConjunctOutcome, EventOutcome, EventQuestion, RowsRefused
from gateway.evaluation.reasons import NO_ELEMENT, Judgement, holds, judgements, reason, truths
from gateway.evaluation.records import PlacedRecord, source_batch
from gateway.evaluation.standing_query import StandingQuery, conjunct_texts, without_edges
from gateway.evaluation.table_rows import table_of
from gateway.evaluation.task import TaskOutput, evaluated
from grouping.compiler.stage_text import value_text
from grouping.model.expression import Column, Expression, Reference, TableColumn, Variable, walk
from grouping.plan.expression_text import render_reference
from grouping.settings.settings import Settings
from spark_jobs.engine.decode.decode import decode_pieces
from spark_jobs.engine.results.shown_values import shown_values
from spark_jobs.engine.rows.faults import FAULTS
from spark_jobs.engine.rows.headers import unpacked_headers
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["answered"]

_DESTINATION = "d_" + "0" * 24
_SETTINGS = Settings.model_construct()
"""The default settings, without those of the environment."""
_encode, _decode = msgspec.json.Encoder(decimal_format="string").encode, msgspec.json.decode


def answered(question: EventQuestion) -> EventOutcome:
    """Return the outcome of an event for a query.

    Raises:
        RowsRefused: A row does not fit its table.
    """
    query = without_edges(question.query)
    texts = conjunct_texts(query.plan.where, [value_text(value) for value in query.row.values])
    try:
        views = {table_id: table_of(question.tables[table_id], rows) for table_id, rows in question.rows.items()}
    except ValueError as error:
        raise RowsRefused(str(error)) from error
    standing = StandingQuery(question.stream, query, question.trigger, *question.window, texts, views)
    time = datetime.fromtimestamp(question.at_ms / 1000, UTC)
    record = PlacedRecord(question.value, question.key, time, 0, 0, question.headers)
    return _outcome(standing, record, question.at_ms)


def _outcome(standing: StandingQuery, record: PlacedRecord, at_ms: int) -> EventOutcome:
    missing = [node.prefix for node in standing.query.plan.nodes if node.table_id not in standing.views]
    try:
        if missing:
            return _by_the_stream_alone(standing, record, missing)
        mode = "shared" if standing.query.plan.kept is None else "pending"
        [output] = evaluated(standing, [record], _DESTINATION, mode)
        for letter in output.letters.values():
            if not any(events.count for events in output.pieces) or letter.code != "undecodable":
                return _of_letter(letter.code, letter.detail)
            # Other elements of the exploded record are events. The outcome is about these events.
            return replace(_judged(standing, output, at_ms), dead_letter=letter.code)
        return _judged(standing, output, at_ms)
    except FAULTS as fault:  # if an event fails because of a bug, the evaluator writes a dead letter and continues
        return _of_letter("not-evaluated", f"it failed with {type(fault).__name__}")


def _of_letter(code: str, detail: str) -> EventOutcome:
    """Return the outcome of an event that becomes a dead letter. A failed evaluation does not rule out a match."""
    matches = {"result-too-large": True, "undecodable": False}.get(code)
    return EventOutcome(matches, f"{code}: {detail}", dead_letter=code)


def _judged(standing: StandingQuery, output: TaskOutput, at_ms: int) -> EventOutcome:
    judged = [
        (source, judgement)
        for number, events in enumerate(output.pieces)
        for source, some in (
            judgements(standing, output.snapshot, events, np.arange(events.count), output.framed.get(number)),
        )
        for judgement in some
    ]
    if not judged:
        return EventOutcome(False, NO_ELEMENT)
    source, judgement = next((each for each in judged if holds(each[1].conjuncts)), judged[0])
    conjuncts = _conjuncts(standing, source, judgement)
    results = [_decode(value) for values in output.values.values() for value in values]
    if results or (standing.query.plan.kept is not None and _counts(standing, judgement, at_ms)):
        return EventOutcome(True, None, conjuncts, results)
    return EventOutcome(False, reason(standing, at_ms, judgement), conjuncts)


def _counts(standing: StandingQuery, judgement: Judgement, at_ms: int) -> bool:
    """Tell whether an event is part of the aggregates of a query with aggregates."""
    if judgement.row is None or not all(judgement.conjuncts.values()):
        return False
    return (standing.start_ms or at_ms) <= at_ms < (standing.expire_ms or at_ms + 1)


def _by_the_stream_alone(standing: StandingQuery, record: PlacedRecord, missing: Sequence[str]) -> EventOutcome:
    """Return the outcome of an event without the rows of some joined tables, which the statement did not give.

    Only conjuncts that read no table are evaluated. The event may match if all these conjuncts are TRUE.
    """
    pieces = list(decode_pieces(source_batch([record]), standing.stream, _SETTINGS))
    for _, letters in pieces:
        if letters is not None:
            headers = dict(unpacked_headers(letters["headers"][0].as_py()))
            return _of_letter(headers["code"].decode(), headers["detail"].decode())
    conjuncts = standing.query.plan.where
    which = [
        at
        for at, conjunct in enumerate(conjuncts)
        if not any(isinstance(each, TableColumn) for each in _read_by(conjunct))
    ]
    snapshot = snapshot_of(standing, _DESTINATION, "shared")
    judged = [
        (events, row, truth)
        for events, _ in pieces
        for row, truth in enumerate(truths(standing, snapshot, events, np.arange(events.count), which))
    ]
    if not judged:
        return EventOutcome(False, NO_ELEMENT)
    events, row, truth = next((each for each in judged if holds(each[2])), judged[0])
    found = _conjuncts(standing, events, Judgement(truth, row))
    failed = [f"{each.conjunct} is {value_text(each.value)}" for each in found if each.value is not True]
    if failed:
        return EventOutcome(False, ", ".join(failed), found)
    return EventOutcome(None, f"the rows of {' and '.join(missing)} decide, and none were given", found)


def _conjuncts(standing: StandingQuery, source: RowSource, judgement: Judgement) -> list[ConjunctOutcome]:
    """Return the evaluated conjuncts, with the columns that they read."""
    if judgement.row is None:
        return []
    by_text = dict(zip(standing.texts, standing.query.plan.where, strict=True))
    return [
        ConjunctOutcome(text, value, _values(source, _read_by(by_text[text]), judgement.row))
        for text, value in judgement.conjuncts.items()
    ]


def _read_by(conjunct: Expression) -> list[Reference]:
    """Return the columns that a conjunct reads, without variables of lambdas."""
    found = (part.reference for part in walk(conjunct) if isinstance(part, Column))
    return [each for each in dict.fromkeys(found) if not isinstance(each, Variable)]


def _values(source: RowSource, names: Sequence[Reference], row: int) -> dict[str, Any]:
    """Return column → JSON value for a row. The names of a table's columns begin with the table's name."""
    values: dict[Reference, Any] = {}
    for name in names:
        if source.declares(name):
            [values[name]] = source.values_at(name, np.array([row], np.int32))
        else:
            [values[name]] = shown_values(source.column(name).slice(row, 1), source.type_of(name))
    shown = {_shown(name): value for name, value in values.items()}
    found: dict[str, Any] = _decode(_encode(shown))
    return found


def _shown(name: Reference) -> str:
    return str(name) if isinstance(name, str) else render_reference(name)
