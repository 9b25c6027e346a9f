"""The sync client: sends statements to the gateway, and makes subscriptions to results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from gateway.sdk import operations
from gateway.sdk.operations import Operation, accepted
from gateway.sdk.pipeline import Item, Outcome, Pipeline, Rejected, ReplyProgress, Tally, checked, counted
from gateway.sdk.results import ContinuousQuery, Reply
from gateway.sdk.session import Session
from gateway.sdk.signing import SigningKey
from gateway.sdk.statements import CqClauses, create_cq
from gateway.sdk.subscription import Subscription
from gateway.sdk.tables import Table, TableForm

__all__ = ["Client", "connect"]

T = TypeVar("T")

_STEP = 0.1
"""How long a single wait for replies lasts, in seconds. A wait must be short, so that Python notices Ctrl-C."""


class Client:
    """A subscriber's connection to the gateway; safe to use from several threads.

    As a context manager, the client closes itself at the end. Each method that sends a statement raises
    `CommandRejection` (or a subclass) if the statement is rejected, `NoReply` if no reply came in time, and
    `TransportError` if Kafka cannot be reached.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def subscriber(self) -> str:
        """The name under which commands are sent."""
        return self._session.subscriber

    def execute(self, text: str, *, timeout: float | None = None, command_id: str | None = None) -> Reply:
        """Carry out a statement, and return the accepted reply.

        Args:
            text: The statement.
            timeout: Seconds to wait for the reply; by default the client's own timeout.
            command_id: The id of an earlier command without a reply, to send this command again. The gateway never
                carries out two commands with the same id.

        Example:
            client.execute("DROP CQ intel")
        """
        wait = self._session.timeout if timeout is None else timeout
        [pending] = self._session.exchange.submit([text], timeout=wait, command_id=command_id)
        while not pending.done:
            self._session.exchange.step(_STEP)
        return accepted(pending)

    def create(self, name: str, select: str, **clauses: Unpack[CqClauses]) -> ContinuousQuery:
        """Create a CQ, with the arguments of `gateway.sdk.statements.create_cq`.

        Example:
            client.create("intel", "SELECT symbol, price FROM quotes WHERE symbol = 'INTC' AND price < 100")
        """
        return self._run(operations.query(create_cq(name, select, **clauses)))

    def create_many(
        self,
        items: Iterable[Item],
        *,
        progress: ReplyProgress | None = None,
        timeout: float = 60.0,
        check: bool = True,
    ) -> list[Outcome]:
        """Carry out many statements in their order, thousands of them under way at once.

        Args:
            items: Statements, or pairs of a CQ's name and its SELECT.
            progress: Called now and then with the number of answered statements.
            timeout: Seconds from the submission of a statement until its reply must have come.
            check: Whether to raise `PartialRejection` if statements were rejected. The error is raised after all
                statements were answered.

        Returns:
            The outcomes in the order of the items. An outcome is a reply or, without `check`, a `CommandRejection`.

        Raises:
            PartialRejection: Statements were rejected. The error has all outcomes.
        """
        outcomes: list[Outcome] = []
        self._drive(Pipeline(self._session.exchange, items, outcomes.append, timeout=timeout, progress=progress))
        return checked(outcomes, check)

    def create_all(
        self,
        items: Iterable[Item],
        *,
        progress: ReplyProgress | None = None,
        rejected: Rejected | None = None,
        timeout: float = 60.0,
    ) -> Tally:
        """Carry out any number of statements, even millions, as `create_many` does, but keep no accepted replies.

        Args:
            items: Statements, or pairs of a CQ's name and its SELECT. Items are consumed as the statements are sent.
            progress: Called now and then with the number of answered statements.
            rejected: Called for each rejection, with the item's index from 0 and the rejection.
            timeout: Seconds from the submission of a statement until its reply must have come.

        Example:
            tally = client.create_all((f"q{n}", f"SELECT symbol FROM quotes WHERE price < {n}") for n in range(10**6))
        """
        tally, exchange = Tally(), self._session.exchange
        self._drive(Pipeline(exchange, items, counted(tally, rejected), timeout=timeout, progress=progress))
        return tally

    def alter(self, name: str, changes: str) -> ContinuousQuery:
        """Change a CQ's clauses, such as `EVERY '1 hour', EXPIRE AFTER '2 days'`."""
        return self._run(operations.alter(name, changes))

    def drop(self, name: str) -> None:
        """Drop a CQ; events that are published afterwards are not evaluated for it."""
        self._run(operations.named("DROP CQ", name))

    def pause(self, name: str) -> None:
        """Pause a CQ: until `resume` no event is evaluated for it. The CQ keeps its destination."""
        self._run(operations.named("PAUSE CQ", name))

    def resume(self, name: str) -> None:
        """Resume a paused CQ: later events are evaluated for it again."""
        self._run(operations.named("RESUME CQ", name))

    def describe(self, name: str) -> ContinuousQuery:
        """Describe one of the subscriber's own CQs."""
        return self._run(operations.describe(name))

    def listing(self, what: str = "CQS", *, like: str | None = None) -> list[dict[str, Any]]:
        """List the `CQS`, `STREAMS`, `TABLES`, `VIEWS`, `GROUPS`, `COMPUTATIONS`, … with names that match `like`."""
        return self._run(operations.listing(what, like))

    def explain(self, text: str) -> dict[str, Any]:
        """Explain a SELECT, `CQ name` or `CQ name FOR '…'`; the result has `plan` and `text`."""
        return self._run(operations.single(f"EXPLAIN {text}"))

    def create_stream(self, name: str, columns: Mapping[str, str], **options: str | int) -> dict[str, Any]:
        """Declare a stream over a topic.

        Args:
            name: The stream's name.
            columns: Column → type.
            options: Options of `WITH`: `topic` (default: the name), `format` (default: `json`), `partitions`, …

        Example:
            client.create_stream("quotes", {"symbol": "STRING", "price": "DOUBLE"}, partitions=2)
        """
        return self._run(operations.create_stream(name, columns, options))

    def drop_stream(self, name: str) -> None:
        """Drop a stream that no CQ and no view reads; its topic stays."""
        self._run(operations.named("DROP STREAM", name))

    def describe_stream(self, name: str) -> dict[str, Any]:
        """Describe a stream."""
        return self._run(operations.named("DESCRIBE STREAM", name))

    def create_table(
        self, name: str, columns: Mapping[str, str], primary_key: str | Sequence[str], **options: str | int
    ) -> dict[str, Any]:
        """Declare a table over a topic.

        Args:
            name: The table's name.
            columns: Column → type.
            primary_key: The column or the columns whose values identify a row.
            options: Options of `WITH`: `topic` (default: the name), `format` (default: `json`), `partitions`, …

        Example:
            client.create_table("profiles", {"symbol": "STRING", "industry": "STRING"}, "symbol", partitions=2)
        """
        return self._run(operations.create_table(name, columns, primary_key, options))

    def drop_table(self, name: str) -> None:
        """Drop a table that no CQ and no view reads; its topic stays."""
        self._run(operations.named("DROP TABLE", name))

    def describe_table(self, name: str) -> dict[str, Any]:
        """Describe a table."""
        return self._run(operations.named("DESCRIBE TABLE", name))

    def table(self, name: str) -> Table:
        """Return a writer of a table's rows.

        Raises:
            GatewayError: The values of the topic's records are not JSON, or a column is read from the records' keys.

        Example:
            client.table("profiles").put({"symbol": "SAP", "industry": "Software"})
        """
        return Table(self._session.publisher, TableForm.of(self.describe_table(name)))

    def create_view(self, name: str, select: str) -> dict[str, Any]:
        """Create a view, a name for a SELECT from which CQs and other views may read."""
        return self._run(operations.create_view(name, select))

    def drop_view(self, name: str) -> None:
        """Drop a view that no CQ and no other view reads."""
        self._run(operations.named("DROP VIEW", name))

    def describe_view(self, name: str) -> dict[str, Any]:
        """Describe a view."""
        return self._run(operations.named("DESCRIBE VIEW", name))

    def describe_function(self, name: str) -> dict[str, Any]:
        """Describe a function of expressions: its form, an example, and whether an index can find its matches."""
        return self._run(operations.named("DESCRIBE FUNCTION", name))

    def publish(
        self, topic: str, rows: Iterable[Mapping[str, Any]], *, key: str | None = None, timeout: float = 30.0
    ) -> int:
        """Write rows as JSON to a stream's topic, wait until Kafka has them, and return the number of rows.

        Args:
            topic: The stream's topic.
            rows: Column → value. Times and dates are written as texts of ISO 8601, decimals as texts too.
            key: The column whose value becomes the record's key; None for records without a key.
            timeout: Seconds to wait for Kafka after the last row was queued.
        """
        return self._session.publisher.publish(topic, rows, key=key, timeout=timeout)

    def subscribe(
        self, *queries: str | ContinuousQuery, cursor: str | None = None, skip_lost: bool = True
    ) -> Subscription:
        """Follow the results of CQs.

        Args:
            queries: Names of CQs, or results of `create` and `describe`. If there are none, the CQs of the cursor are
                followed. A CQ in the cursor may have been dropped meanwhile.
            cursor: A text from `Subscription.cursor`. For a CQ in the cursor, reading resumes there; for any other CQ,
                reading begins with the oldest results that Kafka keeps.
            skip_lost: Whether reading continues after results that retention deleted before they were read. With False,
                `ResultsGone` is raised for deleted results.

        Raises:
            BadCursor: The text is not a cursor.
            FilterUnavailable: A destination is virtual, and DuckDB is not installed.
        """
        outcomes: list[Outcome] = []
        self._drive(self._session.send_many(operations.describing(queries), outcomes.append))
        return self._session.follow(operations.described(queries, outcomes, cursor), cursor, skip_lost=skip_lost)

    def close(self) -> None:
        """Close the connections. Subscriptions stay open until they are closed themselves."""
        self._session.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _drive(self, pipeline: Pipeline) -> None:
        while not pipeline.advance():
            self._session.exchange.step(_STEP)

    def _run(self, operation: Operation[T]) -> T:
        try:
            text = next(operation)
            while True:
                text = operation.send(self.execute(text))
        except StopIteration as done:
            result: T = done.value
            return result


def connect(
    bootstrap: str,
    subscriber: str,
    *,
    prefix: str = "cq.",
    timeout: float = 30.0,
    extra: Mapping[str, str] | None = None,
    signing_key: SigningKey | None = None,
) -> Client:
    """Connect to a gateway through its Kafka servers, and return a client.

    Args:
        bootstrap: Kafka's bootstrap servers, as `HOST:PORT` separated by commas.
        subscriber: The name under which commands are sent. New CQs belong to this subscriber.
        prefix: The prefix of the gateway's topics.
        timeout: Seconds to wait for the reply to a command, unless a call has its own timeout.
        extra: Further librdkafka options, such as options for TLS.
        signing_key: The key that signs commands, if the gateway requires tokens.

    Raises:
        TransportError: Kafka cannot be reached, or the gateway's topics do not exist.

    Example:
        with connect("127.0.0.1:9092", "alice") as client:
            client.create("intel", "SELECT symbol, price FROM quotes WHERE symbol = 'INTC'")
    """
    session = Session(bootstrap, subscriber, prefix=prefix, timeout=timeout, extra=extra, signing_key=signing_key)
    try:
        session.exchange.listen(timeout)
    except BaseException:
        session.close()
        raise
    return Client(session)
