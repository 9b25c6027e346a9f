"""What the clients can ask of the gateway, written once for the sync and the asyncio one.

An operation is a generator: it yields the text of a statement, is sent the accepted reply, and returns its result.
Each client drives it in its own way of waiting; a rejection ends the operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from gateway.sdk import statements
from gateway.sdk.errors import CommandRejected, SomeRejected
from gateway.sdk.exchange import MOST_UNDER_WAY, Exchange
from gateway.sdk.outbox import Pending
from gateway.sdk.results import ContinuousQuery, Reply

__all__ = ["Operation", "Outcome", "Pipeline", "Progress", "accepted"]

T = TypeVar("T")

Operation = Generator[str, Reply, T]
"""Yields statements, is sent their replies, returns a result."""

Outcome = Reply | CommandRejected
"""What became of one command of many."""

Progress = Callable[[int], None]
"""Told now and then how many commands have been answered."""

_CHUNK = 500


def accepted(pending: Pending) -> Reply:
    """Return the reply of an accepted command.

    Raises:
        CommandRejected: It was rejected.
        TransportError: Its outcome is not known.
    """
    outcome = pending.outcome()
    if isinstance(outcome, CommandRejected):
        raise outcome
    return outcome


def one(text: str) -> Operation[dict[str, Any]]:
    """Carry out a statement; its result as it came."""
    reply = yield text
    return reply.result or {}


def query(text: str) -> Operation[ContinuousQuery]:
    """Carry out a CREATE, ALTER or DESCRIBE CQ."""
    reply = yield text
    return reply.query


def named(verb: str, name: str) -> Operation[dict[str, Any]]:
    """Carry out a statement of a verb and a name, such as `DROP CQ`."""
    return one(f"{verb} {statements.quoted(name)}")


def describe(name: str) -> Operation[ContinuousQuery]:
    """Carry out DESCRIBE CQ."""
    return query(f"DESCRIBE CQ {statements.quoted(name)}")


def alter(name: str, changes: str) -> Operation[ContinuousQuery]:
    """Carry out ALTER CQ, and describe what became of it."""
    yield f"ALTER CQ {statements.quoted(name)} SET {changes}"
    return (yield from describe(name))


def create_stream(name: str, columns: Mapping[str, str], options: Mapping[str, str | int]) -> Operation[dict[str, Any]]:
    """Carry out CREATE STREAM; topic and format have defaults."""
    return one(statements.create_stream(name, columns, {"topic": name, "format": "json", **options}))


def described(queries: Iterable[str | ContinuousQuery]) -> Operation[list[ContinuousQuery]]:
    """Describe CQs that are given by name; the others are known already."""
    found = []
    for each in queries:
        if isinstance(each, str):
            found.append((yield from describe(each)))
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


class Pipeline:
    """Many commands under way at once, in order; both clients advance it and step the exchange in between."""

    def __init__(
        self,
        exchange: Exchange,
        items: Iterable[str | tuple[str, str]],
        *,
        timeout: float,
        progress: Progress | None,
    ) -> None:
        self._exchange = exchange
        self._texts: Iterator[str] = (item if isinstance(item, str) else statements.create_cq(*item) for item in items)
        self._timeout = timeout
        self._progress = progress
        self._waiting: deque[Pending] = deque()
        self._outcomes: list[Outcome] = []
        self._exhausted = False

    def advance(self) -> bool:
        """Take in what is answered and submit what there is room for; True when all is answered.

        Raises:
            TransportError: A command's outcome is not known; those after it may be carried out.
        """
        before = len(self._outcomes)
        while self._waiting and self._waiting[0].done:
            self._outcomes.append(self._waiting.popleft().outcome())
        if self._progress is not None and len(self._outcomes) > before:
            self._progress(len(self._outcomes))
        while not self._exhausted and len(self._waiting) < MOST_UNDER_WAY:
            texts = list(islice(self._texts, _CHUNK))
            self._exhausted = not texts
            self._waiting.extend(self._exchange.submit(texts, timeout=self._timeout))
        return self._exhausted and not self._waiting

    def outcomes(self, *, check: bool) -> list[Outcome]:
        """Return the outcomes in the order given.

        Raises:
            SomeRejected: `check` is set and some were rejected; it carries all outcomes.
        """
        if check and any(isinstance(outcome, CommandRejected) for outcome in self._outcomes):
            raise SomeRejected(self._outcomes)
        return self._outcomes
