"""`cq export`: definitions as a script for `cq sql`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from gateway.cli.client import Data, KafkaAt, SubscriberOption, client_of
from gateway.cli.running import settings_of
from gateway.cli.subscriber_change import begins_change
from gateway.sdk import Client, CommandRejection
from gateway.sdk.statements import (
    create_stream,
    create_table,
    create_view,
    described_columns,
    described_options,
    quoted,
)
from grouping.model.errors import InputError
from grouping.statements.script import statements_of

__all__ = ["cq_statements", "create_statement", "export", "exported"]

_AT_ONCE = 1_000
"""Number of CQs that are described together."""


def export(
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
    everything: Annotated[bool, typer.Option("--all", help="CQs of all subscribers, read from cq.catalog.")] = False,
) -> None:
    """Print statements that make all streams, tables and views, and the subscriber's CQs, for `cq sql --file`."""
    if everything:
        if subscriber is not None:
            raise typer.BadParameter("give either --subscriber or --all")
        from gateway.cli.whole_script import whole_script  # the command line starts without them
        from gateway.doctor.catalog import read_catalog

        _print(whole_script(read_catalog(settings_of(data, kafka, None))))
        return
    with client_of(data, kafka, subscriber) as client:
        _print(exported(client))


def _print(statements: Iterable[str]) -> None:
    """Write the statements as bytes, so that no line end within them is converted."""
    for statement in statements:
        in_comment = "--" in statement.rsplit("\n", 1)[-1]
        typer.echo((statement + ("\n;" if in_comment else ";")).encode())


def exported(client: Client) -> Iterator[str]:
    """Yield the statements, each after the statements it depends on.

    Args:
        client: Whose CQs are exported.
    """
    views = sorted(client.listing("VIEWS"), key=lambda view: str(view["created_at"]))
    sources = (*client.listing("STREAMS"), *client.listing("TABLES"), *views)
    # Open access may come from a setting of this gateway; the importing gateway has its own setting.
    for source in sources:
        yield create_statement({**source, "access": None} if source.get("access") == "open" else source)
    names = [str(item["cq"]) for item in client.listing("CQS")]
    for begin in range(0, len(names), _AT_ONCE):
        yield from _queries(client, names[begin : begin + _AT_ONCE])


def _queries(client: Client, names: Sequence[str]) -> Iterator[str]:
    outcomes = client.create_many((f"DESCRIBE CQ {quoted(name)}" for name in names), check=False)
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, CommandRejection):
            continue  # the CQ was dropped or has expired since the listing
        described = outcome.result or {}
        yield from cq_statements(name, str(described["text"]), paused=described["status"] == "paused")


def create_statement(source: Mapping[str, Any]) -> str:
    """Return the statement that creates a stream, a table or a view, from its item of SHOW."""
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
    """Yield the statements that create a CQ; if its text is not one statement, tell the operator and yield nothing."""
    try:
        statements = statements_of(text)
    except InputError:
        statements = []
    if len(statements) != 1 or begins_change(statements[0]):
        typer.echo(f"cq: CQ {quoted(name)} is left out: its text is not one statement", err=True)
        return
    yield from statements
    if paused:
        yield f"PAUSE CQ {quoted(name)}"
