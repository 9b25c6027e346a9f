"""EXPLAIN CQ … FOR: whether an event matches a CQ, and whether the CQ's readers would get the event now.

The evaluator's code evaluates the event, in a separate process (`gateway.evaluation.process`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.evaluation.outcome import EventOutcome, EventQuestion, RowsRefused
from gateway.evaluation.process import TooCostly
from gateway.model.records import Cq, Destination, millis
from gateway.registry.grid import next_tick_of
from grouping.compiler.stage_text import value_text
from grouping.model.catalog import Stream
from grouping.model.errors import InputError, near_name
from grouping.model.query import ExplainCq
from grouping.model.table import Table
from grouping.plan.group import CompiledQuery
from grouping.values.times import instant, parse_instant

__all__ = ["explain_event"]

_MOST_BYTES = 64 * 1024
"""The largest number of bytes of the event together with the rows and fields that the statement gives."""
_FIELDS = ("_key", "_time", "_headers")
_headers = msgspec.json.Decoder(dict[str, str]).decode
_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode


def explain_event(
    statement: ExplainCq,
    cq: Cq,
    destination: Destination,
    query: CompiledQuery,
    stream: Stream,
    tables: Mapping[str, Table],
    not_evaluated: str | None,
    now_ms: int,
    evaluate: Callable[[EventQuestion], EventOutcome],
) -> dict[str, Any]:
    """Return the result of EXPLAIN CQ … FOR: `event` as data, and the same facts as `text`.

    Args:
        statement: The statement, which gives the event, rows of tables and fields of the record.
        cq: The CQ.
        destination: The destination of the CQ's results.
        query: The CQ's compiled query.
        stream: The stream of the event.
        tables: All tables, by id.
        not_evaluated: Why the CQ is not evaluated; None if it is evaluated.
        now_ms: The present, epoch milliseconds.
        evaluate: Evaluates the event (`Evaluations.outcome`).

    Raises:
        InputError: ``command-too-large`` if the event is too large, ``quota-exceeded`` if the evaluation costs too
            much, ``unknown-stream`` for rows of a table that the CQ does not join, ``stream-mismatch`` for rows that do
            not fit their table and for headers that are not a JSON object of strings, ``bad-time`` for a wrong `_time`.
    """
    assert statement.event is not None, "FOR gives an event"
    given = {_field(name) or name: text for name, text in statement.given}
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in (statement.event, *given.values()))
    if size > _MOST_BYTES:
        raise InputError(
            "the event is too large",
            code="command-too-large",
            detail=f"The event and the rows have {size} bytes, and the limit is {_MOST_BYTES}.",
        )
    key = given.pop("_key", None)
    at_ms = millis(parse_instant(given.pop("_time"))) if "_time" in given else now_ms
    headers = _headers_of(given.pop("_headers", "{}"))
    joined = {name: msgspec.structs.replace(tables[name], format="json") for name in query.plan.table_ids}
    question = EventQuestion(
        msgspec.structs.replace(stream, format="json", framing="raw"),
        query,
        destination.trigger,
        cq.window,
        _rows_by_table(given, joined),
        joined,
        statement.event.encode("utf-8", "surrogatepass"),
        None if key is None else key.encode("utf-8", "surrogatepass"),
        headers,
        at_ms,
    )
    try:
        outcome = evaluate(question)
    except RowsRefused as error:
        raise InputError(
            "a row does not fit its table", code="stream-mismatch", detail=f"{error}", hint="Rows are JSON objects."
        ) from error
    except TooCostly as error:
        raise InputError(
            "the evaluation of the event costs too much",
            code="quota-exceeded",
            detail=f"{error}",
            hint="Try a smaller event, or publish the event and read its result.",
        ) from error
    obstacle = not_evaluated
    if obstacle is None and _is_left_out(query, outcome):
        obstacle = "FROM leaves the event out, so it is not an event of its key"
    delivered, delivery, tick_ms = _delivery(outcome, cq, destination, obstacle, at_ms, now_ms)
    event = {
        "cq": cq.name,
        **msgspec.to_builtins(outcome),
        "delivered": delivered,
        "delivery": delivery,
        "tick": None if tick_ms is None else instant(tick_ms),
    }
    return {"event": event, "text": "\n".join(_lines(cq.name, outcome, delivered, delivery))}


def _field(name: str) -> str | None:
    """Return the name of a field of the record, such as `_time`, in its normal spelling; None for other names."""
    return folded if (folded := name.casefold()) in _FIELDS else None


def _headers_of(text: str) -> tuple[tuple[str, bytes], ...]:
    """Return the headers that a JSON object of strings gives."""
    try:
        return tuple((name, value.encode()) for name, value in _headers(text.encode("utf-8", "surrogatepass")).items())
    except msgspec.MsgspecError as error:
        raise InputError(
            "the headers are not a JSON object of strings",
            code="stream-mismatch",
            detail=f"{error}.",
            hint="""Write WITH (_headers = '{"ce_type": "order"}').""",
        ) from error


def _rows_by_table(given: Mapping[str, str], joined: Mapping[str, Table]) -> dict[str, Sequence[bytes]]:
    """Return table id → the rows that the statement gives."""
    names = {table.name.casefold(): table_id for table_id, table in joined.items()}
    rows: dict[str, Sequence[bytes]] = {}
    for name, text in given.items():
        table_id = names.get(name.casefold())
        if table_id is None:
            known = [*(table.name for table in joined.values()), *_FIELDS]
            raise InputError(
                f'the CQ does not join "{name}"',
                code="unknown-stream",
                detail=f"WITH may give {', '.join(known)}.",
                hint=near_name(name, known),
            )
        try:
            rows[table_id] = [bytes(row) for row in _rows(text.encode("utf-8", "surrogatepass"))]
        except msgspec.MsgspecError as error:
            raise InputError(
                f'the rows of "{joined[table_id].name}" are not a JSON array',
                code="stream-mismatch",
                detail=f"{error}.",
                hint="""Write WITH (profiles = '[{"symbol": "INTC"}]').""",
            ) from error
    return rows


def _is_left_out(query: CompiledQuery, outcome: EventOutcome) -> bool:
    """Tell whether a condition of FROM is certainly not TRUE for an event of a query with edges.

    The answer is certain if the event has one row, and the outcome has the values of all conditions.
    """
    plan, values = query.plan, outcome.conjuncts
    if plan.computation is None or not plan.computation.single or len(values) != len(plan.where):
        return False
    return any(each.value is not True for each in values[len(values) - len(plan.of_from) :])


def _delivery(
    outcome: EventOutcome,
    cq: Cq,
    destination: Destination,
    obstacle: str | None,
    at_ms: int,
    now_ms: int,
) -> tuple[bool | None, str, int | None]:
    """Return whether the CQ's readers would get the event now (None if unknown), an explanation, and the tick.

    `obstacle` says why the event cannot be delivered whatever it is; None without such a reason.
    """
    if obstacle is not None:
        return False, obstacle, None
    if cq.paused:
        return False, "the CQ is paused, and sees nothing until RESUME CQ", None
    if cq.start_ms is not None and at_ms < cq.start_ms:
        return False, f"its time {instant(at_ms)} is before START {instant(cq.start_ms)}", None
    if cq.expire_ms is not None and max(at_ms, now_ms) >= cq.expire_ms:
        return False, f"the CQ expires at {instant(cq.expire_ms)}", None
    if outcome.dead_letter is not None and not outcome.results:
        return False, f"it becomes a dead letter ({outcome.dead_letter})", None
    edges, matches = destination.edges, outcome.matches
    if edges is not None and matches is not None and edges.edge in ("both", "changes", "enter" if matches else "exit"):
        return None, "the previous event of the same key decides", None
    if edges is not None and matches:
        return False, "the event can only enter, and the CQ reports exits", None
    if not outcome.matches:
        why = "it does not match" if outcome.matches is False else "whether it matches is not known"
        return outcome.matches, why, None
    trigger = destination.trigger
    if trigger.at_most is not None:
        return None, "AT MOST decides by the results before", None
    if not trigger.timed:
        through = (
            "the CQ's readers find the event among the events of the group"
            if destination.mode == "virtual"
            else "at once"
        )
        return True, through, None
    tick_ms = next_tick_of(cq, trigger, max(at_ms, now_ms))
    if cq.expire_ms is not None and (tick_ms is None or tick_ms > cq.expire_ms):
        tick_ms = cq.expire_ms
    at = "no tick follows" if tick_ms is None else f"in the digest of {instant(tick_ms)}"
    return tick_ms is not None, at, tick_ms


def _lines(name: str, outcome: EventOutcome, delivered: bool | None, delivery: str) -> list[str]:
    verdict = {True: "matches", False: "does not match", None: "may match"}[outcome.matches]
    lines = [f'the event {verdict} CQ "{name}"' + (f": {outcome.why}" if outcome.why else "")]
    for each in outcome.conjuncts:
        values = ", ".join(
            f"{column} = {msgspec.json.encode(value).decode()}" for column, value in each.columns.items()
        )
        lines.append(f"  {value_text(each.value):<5}  {each.conjunct}" + (f"   ({values})" if values else ""))
    lines += [f"  result {msgspec.json.encode(result).decode()}" for result in outcome.results]
    is_open = delivered is None and outcome.matches is not None
    outcome_text = "may be delivered" if is_open else "delivered" if delivered else "not delivered"
    return [*lines, f"{outcome_text}: {delivery}"]
