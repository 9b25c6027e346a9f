"""`cq export`: writes definitions of sources and CQs as a script for `cq sql`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from gateway.cli.client import Data, KafkaAt, SubscriberOption, client_of
from gateway.cli.running import settings_of
from gateway.cli.scripts.definitions import cq_statements, create_statement
from gateway.sdk import Client, CommandRejection
from gateway.sdk.statements import quoted

__all__ = ["export", "exported"]

_AT_ONCE = 1_000
"""The number of CQs that are described together."""


def export(
    data: Data = None,
    kafka: KafkaAt = None,
    subscriber: SubscriberOption = None,
    everything: Annotated[bool, typer.Option("--all", help="CQs of all subscribers, read from cq.catalog.")] = False,
) -> None:
    """Print statements for `cq sql --file` that create all streams, tables and views, and the subscriber's CQs."""
    if everything:
        if subscriber is not None:
            raise typer.BadParameter("give either --subscriber or --all")
        from gateway.cli.scripts.whole_script import whole_script  # imported here, so that other commands start faster
        from gateway.doctor.catalog import read_catalog

        _print(whole_script(read_catalog(settings_of(data, kafka, None))))
        return
    with client_of(data, kafka, subscriber) as client:
        _print(exported(client))


def _print(statements: Iterable[str]) -> None:
    """Write the statements as bytes, so that line ends within the statements are not converted."""
    for statement in statements:
        in_comment = "--" in statement.rsplit("\n", 1)[-1]
        typer.echo((statement + ("\n;" if in_comment else ";")).encode())


def exported(client: Client) -> Iterator[str]:
    """Yield the statements. A statement comes after the statements that it depends on.

    Args:
        client: The client of the subscriber whose CQs are exported.
    """
    views = sorted(client.listing("VIEWS"), key=lambda view: str(view["created_at"]))
    sources = (*client.listing("STREAMS"), *client.listing("TABLES"), *views)
    # Open access is left out, since it may come from a setting of this gateway. The gateway that carries out the script
    # has its own setting.
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
