"""`cq export --all`: the definitions of all subscribers, read from `cq.catalog`, as a script for `cq sql`."""

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
    """Yield the statements, each after the statements it depends on, in sections by subscriber.

    Sources come in the order in which they were created, then CQs by subscriber and name.
    """
    sources = ((owner, text) for _, owner, text in sorted(_sources(state), key=lambda each: each[0]))
    cqs = (
        (record.subscriber, text)
        for _, record in sorted(state.cqs.items())
        for text in cq_statements(record.cq.name, str(record.cq.text), paused=record.cq.paused)
    )
    yield from sections(chain(sources, cqs))


def _sources(state: CatalogState) -> Iterator[tuple[str, str, str]]:
    """Yield for each source its place in the script, its owner and its statement; views come last."""
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
    """Yield statements of many subscribers in sections that `by_subscriber` can check.

    Args:
        statements: Subscriber and text. A text without a subscriber belongs to the subscriber before it.
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
