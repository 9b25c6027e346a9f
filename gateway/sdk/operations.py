"""Operations of the clients on the gateway, written once for the sync and the asyncio one.

An operation is a generator: it yields the text of a statement, is sent the accepted reply, and returns its result.
The sync and the asyncio client drive operations, each with its own way of waiting. A rejection ends the operation.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from gateway.sdk import statements
from gateway.sdk.errors import CommandRejection
from gateway.sdk.outbox import CommandUnderWay
from gateway.sdk.results import ContinuousQuery, Reply

__all__ = ["Operation", "accepted"]

T = TypeVar("T")

Operation = Generator[str, Reply, T]
"""A generator that yields statements, is sent their replies, and returns its result."""


def accepted(pending: CommandUnderWay) -> Reply:
    """Return the reply of an accepted command.

    Raises:
        CommandRejection: It was rejected.
        TransportError: Its outcome is not known.
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
    """Carry out CREATE STREAM; topic and format have defaults."""
    return single(statements.create_stream(name, columns, {"topic": name, "format": "json", **options}))


def create_table(
    name: str, columns: Mapping[str, str], primary_key: str | Sequence[str], options: Mapping[str, str | int]
) -> Operation[dict[str, Any]]:
    """Carry out CREATE TABLE; topic and format have defaults."""
    key = [primary_key] if isinstance(primary_key, str) else primary_key
    return single(statements.create_table(name, columns, key, {"topic": name, "format": "json", **options}))


def create_view(name: str, select: str) -> Operation[dict[str, Any]]:
    """Carry out CREATE VIEW."""
    return single(statements.create_view(name, select))


def describing(queries: Iterable[str | ContinuousQuery]) -> list[str]:
    """Return a DESCRIBE for each CQ that is given by name; the descriptions of the others are at hand."""
    return [f"DESCRIBE CQ {statements.quoted(each)}" for each in queries if isinstance(each, str)]


def described(
    queries: Iterable[str | ContinuousQuery], outcomes: Iterable[Reply | CommandRejection]
) -> list[ContinuousQuery]:
    """Return the CQs in order: names are replaced by the CQs in the replies to their DESCRIBEs.

    Raises:
        CommandRejection: A CQ does not exist; the first such CQ in the order of the names.
    """
    found, left = [], iter(outcomes)
    for each in queries:
        if isinstance(each, str):
            outcome = next(left)
            if isinstance(outcome, CommandRejection):
                raise outcome
            found.append(outcome.query)
        else:
            found.append(each)
    return found


def listing(what: str, like: str | None) -> Operation[list[dict[str, Any]]]:
    """Carry out SHOW, page after page, to the end."""
    items: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        reply = yield statements.show(what, like=like, after=after)
        result: dict[str, Any] = reply.result or {}
        items += next((value for value in result.values() if isinstance(value, list)), [])
        after = result.get("next")
        if after is None:
            return items
