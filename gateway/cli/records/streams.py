"""`cq streams describe`; also makes a `Stream` from the result of DESCRIBE STREAM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.client import AsJson, Data, KafkaAt, SubscriberOption, client_of, show_result
from gateway.sdk import Client
from gateway.sdk.statements import quoted
from grouping.model.catalog import Stream, StreamColumn
from grouping.model.ids import StreamId

__all__ = ["declared_stream", "streams"]

streams = typer.Typer(help="Streams: how they are declared.", no_args_is_help=True)


@streams.callback()
def _streams() -> None:
    """Streams: how they are declared."""


@streams.command()
def describe(
    name: Annotated[str, typer.Argument(help="The stream.")],
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a stream's topic, columns, options and owner, and which records did not fit."""
    with client_of(data, kafka, subscriber) as client:
        described = _described(client, name)
    if as_json:
        print(msgspec.json.encode(described).decode())
        return
    columns = described.pop("columns")
    show_result(f"stream {described.pop('stream')}", {key: each for key, each in described.items() if each is not None})
    table = Table(box=None, pad_edge=False)
    for title in ("column", "type", "from"):
        table.add_column(title, overflow="fold")
    for column in columns:
        table.add_row(*(Text(column.get(key, "")) for key in ("name", "type", "from")))
    Console(highlight=False, soft_wrap=True).print(table)


def declared_stream(client: Client, name: str) -> Stream:
    """Return a stream by its name.

    Raises:
        CommandRejection: There is no such stream.
    """
    return _stream(_described(client, name))


def _described(client: Client, name: str) -> dict[str, Any]:
    return client.execute(f"DESCRIBE STREAM {quoted(name)}").result or {}


def _stream(described: Mapping[str, Any]) -> Stream:
    """Return a stream from the result of its DESCRIBE STREAM.

    Example:
        >>> columns = [{"name": "p", "type": "DOUBLE", "from": "'$.data.p'"}]
        >>> told = {"stream": "quotes", "id": "s_1", "topic": "q", "format": "json", "framing": None}
        >>> told |= {"columns": columns, "start_offsets": {"0": 5}, "generation": 1, "created_at": "", "lenient": True}
        >>> _stream(told).lenient, _stream(told).columns[0].place.path
        (True, ('data', 'p'))
    """
    return Stream(
        stream_id=StreamId(described["id"]),
        name=described["stream"],
        columns=msgspec.convert(described["columns"], tuple[StreamColumn, ...]),
        topic=described["topic"],
        format=described["format"],
        start_offsets=described["start_offsets"],
        created_at=described["created_at"],
        avro_schema=described.get("schema"),
        framing=described["framing"] or "single-object",
        generation=described["generation"],
        lenient=described.get("lenient", False),
        timestamps=described.get("timestamps", ""),
        explode=described.get("explode", msgspec.UNSET),
        decimals=described.get("decimals", msgspec.UNSET),
        schemas=described.get("schemas", msgspec.UNSET),
        registry=described.get("registry", msgspec.UNSET),
        descriptor=described.get("descriptor", msgspec.UNSET),
        message=described.get("message", msgspec.UNSET),
        schema_id=described.get("schema_id", msgspec.UNSET),
    )
