"""`cq export --all`: makes a script for `cq sql` with the definitions of all subscribers, read from `cq.catalog`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice

from gateway.cli.scripts.definitions import cq_statements, create_statement
from gateway.cli.scripts.subscriber_change import section
from gateway.doctor.catalog import CatalogState
from gateway.sdk.statements import quoted, text_literal
from gateway.sources.streams import describe_stream
from gateway.sources.tables import describe_table
from gateway.sources.views import describe_view

__all__ = ["sections", "whole_script"]

_SECTION_STATEMENTS = 1_000


def whole_script(state: CatalogState) -> Iterator[str]:
    """Yield the statements in sections by subscriber. A statement comes after the statements that it depends on.

    Streams come first, then tables, then views, each in the order of their creation. CQs follow by subscriber and name.
    """
    sources = ((owner, text) for _, owner, text in sorted(_sources(state), key=lambda each: each[0]))
    cqs = (
        (record.subscriber, text)
        for _, record in sorted(state.cqs.items())
        for text in cq_statements(record.cq.name, str(record.cq.text), paused=record.cq.paused)
    )
    yield from sections(chain(sources, cqs))


def _sources(state: CatalogState) -> Iterator[tuple[str, str, str]]:
    """Yield the statements about sources, each with a text to sort the statements by, and the source's owner."""
    known = state.sources
    for kind, describe in (("stream", describe_stream), ("table", describe_table), ("view", describe_view)):
        for source in known[kind].values():
            place = f"{kind} {source.created_at}"
            yield place, source.owner, create_statement(describe(source) | {"access": source.access.kind})
            for names in ("ALL" if source.access.everybody else "", _texts(source.access.readers)):
                if names:
                    yield place, source.owner, f"GRANT READ ON {kind.upper()} {quoted(source.name)} TO {names}"


def _texts(names: Iterable[str]) -> str:
    return ", ".join(map(text_literal, names))


def sections(statements: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield statements of many subscribers in sections; `subscriber_change.by_subscriber` checks their fingerprints.

    Args:
        statements: Pairs of a subscriber and a statement. If the subscriber is empty, the statement belongs to the
            subscriber of the statement before it.
    """
    for subscriber, own in groupby(_with_subscribers(statements), key=lambda each: each[0]):
        if subscriber:
            while some := [text for _, text in islice(own, _SECTION_STATEMENTS)]:
                yield from section(subscriber, some)
        else:
            yield from (text for _, text in own)


def _with_subscribers(statements: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    before = ""
    for subscriber, text in statements:
        before = subscriber or before
        yield before, text
