"""The client and its subscriptions for asyncio. They have the methods of the sync client, as coroutines.

The Kafka driver blocks, so each client and each subscription has a thread of its own. A cancelled task does not wait
for its thread. The thread itself waits for only a fraction of a second at a time, so `aclose` can end it soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack

from gateway.sdk import operations
from gateway.sdk.operations import Operation, accepted
from gateway.sdk.pipeline import Item, Outcome, Pipeline, Rejected, ReplyProgress, Tally, checked, counted
from gateway.sdk.results import ContinuousQuery, Digest, End, Match, Reply
from gateway.sdk.session import Session
from gateway.sdk.signing import SigningKey
from gateway.sdk.statements import CqClauses, create_cq
from gateway.sdk.subscription import Subscription
from gateway.sdk.tables import AsyncTable, Table, TableForm

__all__ = ["AsyncClient", "AsyncSubscription", "AsyncTable", "connect"]

P = ParamSpec("P")
T = TypeVar("T")

_STEP = 0.1


class _Thread:
    """A thread that waits on behalf of tasks."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call in the thread, and await its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    async def end(self, last: Callable[[], None]) -> None:
        """Run a last call in the thread, and end the thread."""
        await self.run(last)
        self._executor.shutdown(wait=True)


class AsyncSubscription:
    """The results of some CQs, for `async for` and `async with`. See `Subscription`."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._thread = _Thread("cq-subscription")
        self._closed = False

    @property
    def cursor(self) -> str:
        """Opaque text for `subscribe(cursor=…)` in any process. Reading resumes after the last returned result."""
        return self._subscription.cursor

    @property
    def queries(self) -> list[ContinuousQuery]:
        """The CQs that are followed."""
        return self._subscription.queries

    @property
    def ends(self) -> Mapping[str, End]:
        """The CQs that have ended: name → end."""
        return self._subscription.ends

    @property
    def snapshots(self) -> Mapping[str, int]:
        """Complete snapshots (EMIT CHANGES WITH SNAPSHOT): name of the CQ → number of rows in its snapshot."""
        return self._subscription.snapshots

    @property
    def ended(self) -> bool:
        """Whether all followed CQs have ended."""
        return self._subscription.ended

    async def next(self) -> Match | Digest | None:
        """Return the next result; None when all CQs have ended. For a time limit use `asyncio.timeout`.

        Raises:
            ClientClosed: The subscription was closed.
            ResultsGone: Results were deleted before they were read.
            TransportError: Kafka refuses the read. An unreachable Kafka is not an error: the method waits.
        """
        while (result := self._subscription.take()) is None and not self.ended:
            await self._thread.run(self._subscription.fetch, _STEP)
        return result

    def refresh(self, queries: Sequence[ContinuousQuery]) -> None:
        """Take in the changed clauses of followed CQs. Later results are chosen by the new START and EXPIRE."""
        self._subscription.refresh(queries)

    async def aclose(self) -> None:
        """Stop reading. `cursor` can still be read afterwards."""
        if not self._closed:
            self._closed = True
            await self._thread.end(self._subscription.close)

    async def __aiter__(self) -> AsyncIterator[Match | Digest]:
        """Iterate until all CQs have ended."""
        while (result := await self.next()) is not None:
            yield result

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.aclose()


class AsyncClient:
    """A subscriber's connection to the gateway for asyncio; any number of tasks may use it at once. See `Client`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._thread = _Thread("cq-client")
        self._closed = False

    @property
    def subscriber(self) -> str:
        """The name under which commands are sent."""
        return self._session.subscriber

    async def execute(self, text: str, *, timeout: float | None = None, command_id: str | None = None) -> Reply:
        """Carry out a statement, and return the accepted reply. See `Client.execute`."""
        wait = self._session.timeout if timeout is None else timeout
        submit = self._session.exchange.submit
        [pending] = await self._thread.run(submit, [text], timeout=wait, command_id=command_id)
        while not pending.done:
            await self._thread.run(self._session.exchange.step, _STEP)
        return accepted(pending)

    async def create(self, name: str, select: str, **clauses: Unpack[CqClauses]) -> ContinuousQuery:
        """Create a CQ, with the arguments of `gateway.sdk.statements.create_cq`."""
        return await self._run(operations.query(create_cq(name, select, **clauses)))

    async def create_many(
        self,
        items: Iterable[Item],
        *,
        progress: ReplyProgress | None = None,
        timeout: float = 60.0,
        check: bool = True,
    ) -> list[Outcome]:
        """Carry out many statements in their order, thousands of them under way at once. See `Client.create_many`."""
        outcomes: list[Outcome] = []
        await self._drive(Pipeline(self._session.exchange, items, outcomes.append, timeout=timeout, progress=progress))
        return checked(outcomes, check)

    async def create_all(
        self,
        items: Iterable[Item],
        *,
        progress: ReplyProgress | None = None,
        rejected: Rejected | None = None,
        timeout: float = 60.0,
    ) -> Tally:
        """Carry out any number of statements, even millions. See `Client.create_all`."""
        tally, exchange = Tally(), self._session.exchange
        await self._drive(Pipeline(exchange, items, counted(tally, rejected), timeout=timeout, progress=progress))
        return tally

    async def alter(self, name: str, changes: str) -> ContinuousQuery:
        """Change a CQ's clauses, such as `EVERY '1 hour', EXPIRE AFTER '2 days'`."""
        return await self._run(operations.alter(name, changes))

    async def drop(self, name: str) -> None:
        """Drop a CQ; events that are published afterwards are not evaluated for it."""
        await self._run(operations.named("DROP CQ", name))

    async def pause(self, name: str) -> None:
        """Pause a CQ: until `resume` no event is evaluated for it. The CQ keeps its destination."""
        await self._run(operations.named("PAUSE CQ", name))

    async def resume(self, name: str) -> None:
        """Resume a paused CQ: later events are evaluated for it again."""
        await self._run(operations.named("RESUME CQ", name))

    async def describe(self, name: str) -> ContinuousQuery:
        """Describe one of the subscriber's own CQs."""
        return await self._run(operations.describe(name))

    async def listing(self, what: str = "CQS", *, like: str | None = None) -> list[dict[str, Any]]:
        """List the `CQS`, `STREAMS`, `TABLES`, `VIEWS`, `GROUPS`, `COMPUTATIONS`, … with names that match `like`."""
        return await self._run(operations.listing(what, like))

    async def explain(self, text: str) -> dict[str, Any]:
        """Explain a SELECT, `CQ name` or `CQ name FOR '…'`; the result has `plan` and `text`."""
        return await self._run(operations.single(f"EXPLAIN {text}"))

    async def create_stream(self, name: str, columns: Mapping[str, str], **options: str | int) -> dict[str, Any]:
        """Declare a stream over a topic. See `Client.create_stream`."""
        return await self._run(operations.create_stream(name, columns, options))

    async def drop_stream(self, name: str) -> None:
        """Drop a stream that no CQ and no view reads; its topic stays."""
        await self._run(operations.named("DROP STREAM", name))

    async def describe_stream(self, name: str) -> dict[str, Any]:
        """Describe a stream."""
        return await self._run(operations.named("DESCRIBE STREAM", name))

    async def create_table(
        self, name: str, columns: Mapping[str, str], primary_key: str | Sequence[str], **options: str | int
    ) -> dict[str, Any]:
        """Declare a table over a topic. See `Client.create_table`."""
        return await self._run(operations.create_table(name, columns, primary_key, options))

    async def drop_table(self, name: str) -> None:
        """Drop a table that no CQ and no view reads; its topic stays."""
        await self._run(operations.named("DROP TABLE", name))

    async def describe_table(self, name: str) -> dict[str, Any]:
        """Describe a table."""
        return await self._run(operations.named("DESCRIBE TABLE", name))

    async def table(self, name: str) -> AsyncTable:
        """Return a writer of a table's rows. See `Client.table`."""
        return AsyncTable(Table(self._session.publisher, TableForm.of(await self.describe_table(name))))

    async def create_view(self, name: str, select: str) -> dict[str, Any]:
        """Create a view, a name for a SELECT from which CQs and other views may read."""
        return await self._run(operations.create_view(name, select))

    async def drop_view(self, name: str) -> None:
        """Drop a view that no CQ and no other view reads."""
        await self._run(operations.named("DROP VIEW", name))

    async def describe_view(self, name: str) -> dict[str, Any]:
        """Describe a view."""
        return await self._run(operations.named("DESCRIBE VIEW", name))

    async def describe_function(self, name: str) -> dict[str, Any]:
        """Describe a function of expressions: its form, an example, and whether an index can find its matches."""
        return await self._run(operations.named("DESCRIBE FUNCTION", name))

    async def publish(
        self, topic: str, rows: Iterable[Mapping[str, Any]], *, key: str | None = None, timeout: float = 30.0
    ) -> int:
        """Write rows as JSON to a stream's topic and wait until Kafka has them. See `Client.publish`."""
        return await asyncio.to_thread(self._session.publisher.publish, topic, rows, key=key, timeout=timeout)

    async def subscribe(
        self, *queries: str | ContinuousQuery, cursor: str | None = None, skip_lost: bool = True
    ) -> AsyncSubscription:
        """Follow the results of CQs. See `Client.subscribe`."""
        outcomes: list[Outcome] = []
        await self._drive(self._session.send_many(operations.describing(queries), outcomes.append))
        found = operations.described(queries, outcomes, cursor)
        return AsyncSubscription(await self._thread.run(self._session.follow, found, cursor, skip_lost=skip_lost))

    async def aclose(self) -> None:
        """Close the connections. Subscriptions stay open until they are closed themselves."""
        if not self._closed:
            self._closed = True
            await self._thread.end(self._session.close)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.aclose()

    async def _drive(self, pipeline: Pipeline) -> None:
        while not pipeline.advance():
            await self._thread.run(self._session.exchange.step, _STEP)

    async def _run(self, operation: Operation[T]) -> T:
        try:
            text = next(operation)
            while True:
                text = operation.send(await self.execute(text))
        except StopIteration as done:
            result: T = done.value
            return result


async def connect(
    bootstrap: str,
    subscriber: str,
    *,
    prefix: str = "cq.",
    timeout: float = 30.0,
    extra: Mapping[str, str] | None = None,
    signing_key: SigningKey | None = None,
) -> AsyncClient:
    """Connect to a gateway through its Kafka servers, and return a client. See `client.connect`.

    Raises:
        TransportError: Kafka cannot be reached, or the gateway's topics do not exist.

    Example:
        async with await aio.connect("127.0.0.1:9092", "alice") as client:
            async with await client.subscribe("intel") as results:
                async for match in results:
                    print(match.row)
    """
    session = Session(bootstrap, subscriber, prefix=prefix, timeout=timeout, extra=extra, signing_key=signing_key)
    client = AsyncClient(session)
    try:
        await asyncio.to_thread(session.exchange.listen, timeout)
    except BaseException:
        await client.aclose()
        raise
    return client
