"""Makes the statements that create a stream, a table, a view or a CQ again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from gateway.cli.scripts.script import statements_of
from gateway.cli.scripts.subscriber_change import begins_change
from gateway.sdk.statements import (
    create_stream,
    create_table,
    create_view,
    described_columns,
    described_options,
    quoted,
)
from grouping.model.errors import InputError

__all__ = ["cq_statements", "create_statement"]


def create_statement(source: Mapping[str, Any]) -> str:
    """Return the statement that creates a stream, a table or a view, from its item in the reply to SHOW."""
    if "stream" in source:
        options = {**described_options(source), "partitions": len(source["start_offsets"])}
        key, event_time = source.get("partition_key", ()), source.get("event_time")
        return create_stream(source["stream"], described_columns(source), options, key, event_time)
    if "table" in source:
        return create_table(
            source["table"], described_columns(source), source["primary_key"], described_options(source)
        )
    access = source.get("access")
    return create_view(source["view"], source["select"], {"access": access} if access is not None else None)


def cq_statements(name: str, text: str, *, paused: bool) -> Iterator[str]:
    """Yield the statements that create a CQ. If `cq sql` cannot send the CQ's text, print a note instead."""
    try:
        statements = statements_of(text)
    except InputError:
        statements = []
    if len(statements) != 1 or begins_change(statements[0]):
        typer.echo(
            f"cq: CQ {quoted(name)} is left out: its text is not a single statement that `cq sql` can send", err=True
        )
        return
    yield from statements
    if paused:
        yield f"PAUSE CQ {quoted(name)}"
