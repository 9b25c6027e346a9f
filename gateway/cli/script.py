"""`cq export`: all there is, as the statements that make it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from gateway.cli.client import Data, KafkaAt, Subscriber, client_of
from gateway.sdk import Client, CommandRejection
from gateway.sdk.statements import create_stream, create_table, create_view, quoted

__all__ = ["export", "exported"]

_AT_ONCE = 1_000
"""CQs that are described together."""


def export(data: Data = None, kafka: KafkaAt = None, subscriber: Subscriber = None) -> None:
    """Print statements that make all streams, tables and views, and the subscriber's CQs, for `cq sql --file`."""
    with client_of(data, kafka, subscriber) as client:
        for statement in exported(client):
            in_comment = "--" in statement.rsplit("\n", 1)[-1]
            typer.echo(statement + ("\n;" if in_comment else ";"))


def exported(client: Client) -> Iterator[str]:
    """Yield the statements, each behind those that it needs.

    Args:
        client: Whose CQs are exported.
    """
    for stream in client.listing("STREAMS"):
        options = {**_topic(stream), "partitions": len(stream["start_offsets"])}
        yield create_stream(stream["stream"], _columns(stream), options)
    for table in client.listing("TABLES"):
        yield create_table(table["table"], _columns(table), table["primary_key"], _topic(table))
    for view in sorted(client.listing("VIEWS"), key=lambda view: str(view["created_at"])):
        yield create_view(view["view"], view["select"])
    names = [str(item["cq"]) for item in client.listing("CQS")]
    for begin in range(0, len(names), _AT_ONCE):
        yield from _queries(client, names[begin : begin + _AT_ONCE])


def _queries(client: Client, names: Sequence[str]) -> Iterator[str]:
    outcomes = client.create_many((f"DESCRIBE CQ {quoted(name)}" for name in names), check=False)
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, CommandRejection):
            continue  # it was dropped, or has expired, since it was listed
        described = outcome.result or {}
        yield str(described["text"]).strip().removesuffix(";")
        if described["status"] == "paused":
            yield f"PAUSE CQ {quoted(name)}"


def _columns(source: dict[str, Any]) -> dict[str, str]:
    return {column["name"]: column["type"] for column in source["columns"]}


def _topic(source: dict[str, Any]) -> dict[str, str | int]:
    """Return the options that say how a topic is read."""
    return {name: source[name] for name in ("topic", "format", "framing", "schema") if source.get(name) is not None}
