"""`cq export --all`: what `cq.catalog` has of all subscribers, as the statements that make it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from gateway.cli.script import cq_statements, create_statement
from gateway.cli.subscriber_change import change_to
from gateway.doctor.catalog import CatalogState
from gateway.registry.streams import describe_stream
from gateway.registry.tables import describe_table
from gateway.registry.views import describe_view

__all__ = ["whole_script"]


def whole_script(state: CatalogState) -> Iterator[str]:
    """Yield the statements, each behind those that it needs and behind the name of who sends it.

    Sources come in the order in which they were created, CQs by subscriber and name.
    """
    yield from _as_sent(sorted(_sources(state), key=lambda each: each[0]))
    records = (record for _, record in sorted(state.cqs.items()))
    yield from _as_sent(
        ("", record.subscriber, text)
        for record in records
        for text in cq_statements(record.cq.name, str(record.cq.text), paused=record.cq.paused)
    )


def _sources(state: CatalogState) -> Iterator[tuple[str, str, str]]:
    """Yield of each source what orders it, who created it, and the statement; views are made last."""
    known = state.sources
    for kind, describe in (("stream", describe_stream), ("table", describe_table), ("view", describe_view)):
        for source in known[kind].values():
            yield f"{kind} {source.created_at}", source.owner, create_statement(describe(source))


def _as_sent(statements: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield statements (order, subscriber, text) with each change of the subscriber; one without goes with the rest."""
    for subscriber, own in groupby(statements, key=lambda each: each[1]):
        if subscriber:
            yield change_to(subscriber)
        yield from (text for *_, text in own)
