"""The continuous query of a test: parses, compiles and checks it like the gateway at CREATE CQ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.commands.digest_columns import with_digest_columns
from gateway.evaluation.standing_query import StandingQuery, conjunct_texts
from gateway.model.records import millis
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.aggregate_queries import check_aggregation, check_untimed
from gateway.registry.start_expire import check_ticks, check_window, expiry
from gateway.testing.stream import Stream
from gateway.testing.table import Table
from grouping.binding.bound import Constant
from grouping.compiler.compiler import compile_draft, finish
from grouping.compiler.plan import plan_view
from grouping.compiler.reader_sql import check_virtual
from grouping.compiler.stage_text import value_text
from grouping.compiler.statement_places import in_statement
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.model.query import CreateCq
from grouping.model.refusals import unsupported
from grouping.model.table import View
from grouping.model.trigger import ChangeBased
from grouping.settings.limit_settings import LimitSettings
from grouping.statements.command import parse
from grouping.statements.tokens import Tokens
from grouping.values.literals import OF_STRINGS

__all__ = ["ACCEPTED_AT", "CheckedQuery", "checked"]

ACCEPTED_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The default time at which a test's query is accepted. By default the first record has this time too."""


@dataclass(frozen=True, slots=True)
class CheckedQuery(StandingQuery):
    """A query that the gateway would accept. Its `texts` have the constants as written in the query."""

    statement: CreateCq
    accepted_ms: int


def checked(
    text: str,
    stream: Stream,
    accepted_at: datetime,
    tables: Sequence[Table] = (),
    views: Mapping[str, str] | None = None,
) -> CheckedQuery:
    """Parse, compile and check the query in a text.

    Args:
        text: A SELECT with or without clauses, or a whole CREATE CQ.
        stream: The stream that the query may read.
        accepted_at: The time at which the query is accepted.
        tables: The tables that the query may join.
        views: Name → SELECT of a view that the query may read; a view may read the views before it.

    Raises:
        InputError: The gateway would refuse the query.
    """
    statement = parse(f"CREATE CQ query AS {text}" if _begins_select(text) else text)
    if not isinstance(statement, CreateCq):
        raise InputError(
            "this is not a CREATE CQ", code="unknown-statement", detail="A SELECT or a CREATE CQ is required here."
        )
    catalog = Catalog([stream.declared], [table.declared for table in tables])
    for name, select in (views or {}).items():
        catalog.add(View(name, select, tuple(sorted(plan_view(select, catalog))), ""))
    try:
        draft = compile_draft(statement.select, catalog)
    except InputError as error:
        raise in_statement(error, text, statement.select) from None
    query = finish(draft)
    if query.plan.stream_id != stream.declared.stream_id:
        raise unsupported(
            "a query FROM a table alone", "The rows of a test are events of the stream.", "Evaluate it on a gateway."
        )
    aggregated = query.select.aggregation is not None
    check_aggregation(statement.trigger, statement.publish.digest, LimitSettings(), aggregated=aggregated)
    check_untimed(query.edge, timed=not isinstance(statement.trigger, ChangeBased))
    statement = with_digest_columns(statement, query, LimitSettings().top_rows)
    if statement.publish.mode == "virtual":
        check_virtual(query)
    accepted_ms = millis(accepted_at)
    start_ms = None if statement.start is None else millis(statement.start)
    expire_ms = None if statement.expire is None else expiry(statement.expire, accepted_ms)
    check_window(start_ms, expire_ms, accepted_ms)
    trigger = TriggerSpec.of(statement.trigger, start_ms, accepted_ms)
    check_ticks(trigger, start_ms, accepted_ms)
    joined = {table.declared.table_id: table.view() for table in tables}
    texts = conjunct_texts(query.plan.where, [_spelled(constant) for constant in draft.constants])
    return CheckedQuery(
        stream.declared,
        query,
        trigger,
        start_ms,
        expire_ms,
        texts,
        joined,
        statement=statement,
        accepted_ms=accepted_ms,
    )


def _spelled(constant: Constant) -> str:
    if constant.members:
        return f"({', '.join(map(_spelled, constant.members))})"
    if constant.reader is None:
        return value_text(constant.value)
    return value_text(constant.text) if constant.reader in OF_STRINGS else constant.text


def _begins_select(text: str) -> bool:
    tokens = Tokens(text)
    return tokens.word() in ("SELECT", "WITH") or tokens.source() == "("
