"""Operations of the clients on the gateway, written once for both the sync and the asyncio client.

An operation is a generator, which may have several statements. The generator yields the text of a statement, the client
sends the accepted reply into the generator, and in the end the generator returns the operation's result. If a statement
is rejected, the client raises the error, and the operation does not continue. The clients differ only in how they wait.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gateway.sdk import statements
from gateway.sdk.errors import CommandRejection
from gateway.sdk.outbox import CommandUnderWay
from gateway.sdk.records.cursor import decode_cursor
from gateway.sdk.results import ContinuousQuery, Reply

__all__ = ["Operation", "accepted"]

T = TypeVar("T")

Operation = Generator[str, Reply, T]
"""A generator that yields statements, receives their replies, and returns its result."""


def accepted(pending: CommandUnderWay) -> Reply:
    """Return the reply of an accepted command.

    Raises:
        CommandRejection: The command was rejected.
        TransportError: The outcome of the command is not known.
    """
    outcome = pending.outcome()
    if isinstance(outcome, CommandRejection):
        raise outcome
    return outcome


def single(text: str) -> Operation[dict[str, Any]]:
    """Carry out a statement, and return its result unchanged."""
    reply = yield text
    return reply.result or {}


def query(text: str) -> Operation[ContinuousQuery]:
    """Carry out a CREATE, ALTER or DESCRIBE CQ."""
    reply = yield text
    return reply.query


def named(verb: str, name: str) -> Operation[dict[str, Any]]:
    """Carry out a statement of a verb and a name, such as `DROP CQ`."""
    return single(f"{verb} {statements.quoted(name)}")


def describe(name: str) -> Operation[ContinuousQuery]:
    """Carry out DESCRIBE CQ."""
    return query(f"DESCRIBE CQ {statements.quoted(name)}")


def alter(name: str, changes: str) -> Operation[ContinuousQuery]:
    """Carry out ALTER CQ, and describe the changed CQ."""
    yield f"ALTER CQ {statements.quoted(name)} SET {changes}"
    return (yield from describe(name))


def create_stream(name: str, columns: Mapping[str, str], options: Mapping[str, str | int]) -> Operation[dict[str, Any]]:
    """Carry out CREATE STREAM. By default the topic has the stream's name, and the format is JSON."""
    return single(statements.create_stream(name, columns, {"topic": name, "format": "json", **options}))


def create_table(
    name: str, columns: Mapping[str, str], primary_key: str | Sequence[str], options: Mapping[str, str | int]
) -> Operation[dict[str, Any]]:
    """Carry out CREATE TABLE. By default the topic has the table's name, and the format is JSON."""
    key = [primary_key] if isinstance(primary_key, str) else primary_key
    return single(statements.create_table(name, columns, key, {"topic": name, "format": "json", **options}))


def create_view(name: str, select: str) -> Operation[dict[str, Any]]:
    """Carry out CREATE VIEW."""
    return single(statements.create_view(name, select))


def describing(queries: Iterable[str | ContinuousQuery]) -> list[str]:
    """Return a DESCRIBE for each CQ that is given by name. A `ContinuousQuery` is its own description."""
    return [f"DESCRIBE CQ {statements.quoted(each)}" for each in queries if isinstance(each, str)]


def described(
    queries: Iterable[str | ContinuousQuery], outcomes: Iterable[Reply | CommandRejection], cursor: str | None
) -> list[ContinuousQuery]:
    """Return the CQs in order; each name is replaced by the CQ in the reply to its DESCRIBE.

    A CQ that was dropped after the cursor was taken may still have unread results, so the cursor's CQ is returned.

    Raises:
        CommandRejection: A DESCRIBE was rejected. If there are several, the first one is raised.
        BadCursor: The text is not a cursor.
    """
    found, left = [], iter(outcomes)
    held = {} if cursor is None else {place.query.cq.casefold(): place.query for place in decode_cursor(cursor)}
    for each in queries:
        if isinstance(each, str):
            outcome = next(left)
            if isinstance(outcome, Reply):
                found.append(outcome.query)
            elif outcome.code == "unknown-cq" and each.casefold() in held:
                found.append(held[each.casefold()])
            else:
                raise outcome
        else:
            found.append(each)
    return found


def listing(what: str, like: str | None) -> Operation[list[dict[str, Any]]]:
    """Carry out SHOW for all pages of the list."""
    items: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        reply = yield statements.show(what, like=like, after=after)
        result: dict[str, Any] = reply.result or {}
        items += next((value for value in result.values() if isinstance(value, list)), [])
        after = result.get("next")
        if after is None:
            return items
