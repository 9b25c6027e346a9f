"""Evaluates a continuous query over given rows, and explains the outcome of each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from gateway.evaluation.reasons import NO_ELEMENT, NOT_JUDGED, Judgement, Truths, holds, judgements, reason
from gateway.evaluation.task import Place, TaskOutput, evaluated
from gateway.testing.query import ACCEPTED_AT, CheckedQuery, checked
from gateway.testing.records import Row, placed
from gateway.testing.stream import Stream
from gateway.testing.table import Table
from gateway.testing.throttled import ThrottledResults
from grouping.model.errors import InputError

__all__ = ["EvaluatedRow", "evaluate"]

_DESTINATION = "d_" + "0" * 24
_LEFT_OUT = "AT MOST leaves the result out"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class EvaluatedRow:
    """The outcome of a row."""

    matches: bool
    """Whether the query's readers get a result for the row. For a query with EMIT ON, this is whether the row is an
    edge."""
    result: dict[str, Any] | None
    """The first result, decoded from JSON; None if there is no result, or if the result is too large for a record."""
    why: str | None
    """Why there is no result: the conjuncts of WHERE that are FALSE or NULL, or the fault of the record. The conjuncts
    have the constants as written in the query. None if there is a result."""
    dead_letter: str | None = None
    """The code of the dead letter that the record or its result becomes; None if there is no dead letter."""
    conjuncts: Truths = field(default_factory=dict)
    """Conjunct of WHERE → its value for the row: TRUE or FALSE; None for NULL. Empty if none was evaluated."""
    id: str = ""
    """The `ce_id` of the result, ``<stream>/<partition>/<offset>``. If an event can have several results, this is the
    beginning of their ids."""
    results: list[dict[str, Any]] = field(default_factory=list)
    """All results. There are several if the events are elements of the record, or if an event is joined with several
    rows of a table."""
    edge: str | None = None
    """For a query with EMIT ON ENTER or EXIT: the edge that the result reports, ``enter`` or ``exit``."""
    suppressed: int = 0
    """For a query with AT MOST: the number of results that were left out before this result."""


def evaluate(
    query: str,
    stream: Stream,
    rows: Iterable[Row],
    *,
    tables: Sequence[Table] = (),
    views: Mapping[str, str] | None = None,
    accepted_at: datetime = ACCEPTED_AT,
) -> list[EvaluatedRow]:
    """Evaluate a continuous query over rows, in this process and without servers.

    For a query with EVERY, the results are the rows for its digests (see `digests`). For a VIRTUAL query, the results
    are those that its readers make from the events of the group.

    Args:
        query: A SELECT with or without clauses, or a whole CREATE CQ.
        stream: The stream after FROM.
        rows: The rows, in several forms. A dictionary is encoded in the stream's format and decoded again. A list is a
            JSON array. Bytes are the value of a record. None is a record without a value. A `Record` also has a key, a
            time, a partition or an offset.
        tables: The tables that the query joins, with their rows.
        views: Name → SELECT of a view; a view may read the views before it.
        accepted_at: When the query was accepted. By default the first row has this time.

    Returns:
        The outcome of each row, in the order of the rows.

    Raises:
        InputError: The gateway would refuse the query. The error has the gateway's code, detail and hint.
        ValueError: A row cannot be a record of the stream. For example, a time has no zone, or offsets do not ascend.

    Example:
        >>> quotes = Stream("quotes (symbol STRING, price DOUBLE)")
        >>> rows = [{"symbol": "INTC", "price": 99}, {"symbol": "AMD", "price": None}, b'{"symbol": "INTC", "pri']
        >>> for row in evaluate("SELECT symbol FROM quotes WHERE price < 1e2 AND symbol = 'INTC'", quotes, rows):
        ...     print(row.matches, row.result, row.why)
        True {'symbol': 'INTC'} None
        False None symbol = 'INTC' is FALSE, price < 1e2 is NULL
        False None undecodable: The value is not one JSON object: Unterminated string starting at character 19.
    """
    checked_query = checked(query, stream, accepted_at, tables, views)
    if checked_query.query.plan.kept is not None:
        raise InputError(
            "a query with aggregates has no results of single rows",
            code="unsupported-query",
            detail="Its digests are of groups of rows.",
            hint="Call digests(query, stream, rows).",
        )
    records = placed(rows, stream, accepted_at)
    found: dict[Place, EvaluatedRow] = {}
    edges: dict[Place, list[str]] = {}
    throttled = ThrottledResults(checked_query.trigger.throttle)
    for output in evaluated(checked_query, records, _DESTINATION, "shared"):
        throttled.take(output)
        for place, own in output.edges.items():
            edges.setdefault(place, []).extend(own)
        outcomes = dict(_outcomes(checked_query, stream, output))
        found.update(outcomes)
        for place in output.values.keys() - outcomes.keys():  # the row was in an earlier task, its result waited
            found[place] = _later(found[place], output, place)
    for place, suppressed in throttled.suppressed.items():
        found[place] = _throttled(found[place], suppressed, edges.get(place))
    places = [(record.partition, record.offset) for record in records]
    return [found.get(each) or EvaluatedRow(False, None, NO_ELEMENT, id=_id(stream, each)) for each in places]


def _outcomes(query: CheckedQuery, stream: Stream, output: TaskOutput) -> Iterator[tuple[Place, EvaluatedRow]]:
    """Yield the outcomes of a task's records, each with the record's place.

    A record without elements that are events has no outcome.
    """
    judged: dict[Place, tuple[Judgement, int]] = {}
    for number, events in enumerate(output.pieces):
        places = list(zip(events.partitions.tolist(), events.offsets.tolist(), strict=True))
        letters = (output.letters.get(place) for place in places)
        evaluated = np.flatnonzero([letter is None or letter.code == "undecodable" for letter in letters])
        framed = output.framed.get(number)
        _, some = judgements(query, output.snapshot, events, evaluated, framed) if evaluated.size else (None, [])
        for row, each in zip(evaluated.tolist(), some, strict=True):
            known = judged.get(places[row])
            if known is None or (holds(each.conjuncts) and not holds(known[0].conjuncts)):
                judged[places[row]] = each, int(events.time_ms[row])
    for place, letter in output.letters.items():
        found = [_decode(value) for value in output.values.get(place, ())] if place in judged else []
        matches, why = bool(found) or letter.code == "result-too-large", f"{letter.code}: {letter.detail}"
        values, first = judged.pop(place, (NOT_JUDGED, 0))[0].conjuncts, found[0] if found else None
        yield place, EvaluatedRow(matches, first, why, letter.code, values, _id(stream, place), found)
    for place, (judgement, time_ms) in judged.items():
        values, found = judgement.conjuncts, [_decode(value) for value in output.values.get(place, ())]
        if found:
            edge = next(iter(output.edges.get(place, ())), None)
            yield place, EvaluatedRow(True, found[0], None, None, values, _id(stream, place), found, edge)
        else:
            yield place, EvaluatedRow(False, None, reason(query, time_ms, judgement), None, values, _id(stream, place))


def _later(row: EvaluatedRow, output: TaskOutput, place: Place) -> EvaluatedRow:
    """Return the outcome of a row with results that came only in the task of later rows."""
    results = [*row.results, *(_decode(value) for value in output.values[place])]
    edge = row.edge if row.results else next(iter(output.edges.get(place, ())), None)
    return replace(row, matches=True, result=results[0], why=None, results=results, edge=edge)


def _throttled(row: EvaluatedRow, suppressed: Sequence[int | None], edges: Sequence[str] | None) -> EvaluatedRow:
    """Return the outcome of a row without the results that AT MOST leaves out; `edges` are those of all results."""
    written = [number for number, count in enumerate(suppressed) if count is not None]
    if not written:
        return replace(row, matches=False, result=None, why=_LEFT_OUT, results=[], edge=None)
    results, edge = [row.results[number] for number in written], None if edges is None else edges[written[0]]
    return replace(row, result=results[0], results=results, suppressed=sum(filter(None, suppressed)), edge=edge)


def _id(stream: Stream, place: Place) -> str:
    return f"{stream.name}/{place[0]}/{place[1]}"
