"""Ticks whose digests a Spark job makes: ticks of very many destinations, and ticks for digests of a table's rows.

There is at most one job at a time. A job makes the digests of a single stream.

The gateway writes orders to `cq.orders`, some thousand destinations in a record, and asks the evaluator for a job that
carries the orders out. After the job, the gateway closes each order: cursors move, and the destinations are armed for
their next ticks. An open order holds up the ticks and ends of its stream until no job can write its digests any more.

The gateway carries orders out itself in two cases. In the first case the evaluator does not take the request, and the
gateway withdraws the request. In the second case the evaluator loses its lease during the job; an evaluator without a
lease also loses its JVM, so it writes nothing more. The gateway makes the same digests as a job would make. Orders over
the rows of a table wait for an evaluator instead, since the gateway reads no rows.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.state.timer_state import TimerState
from gateway.timers.cuts import Cut
from gateway.timers.deliver import Delivery
from gateway.timers.digest_orders import OrderDesk
from gateway.timers.firing import CHUNK
from gateway.timers.open_cuts import OpenCuts
from gateway.timers.order_log import OrderLog
from grouping.digests.cursor import Cursor
from grouping.digests.jobs import DigestJobs, Job
from grouping.digests.orders import DigestOutcome, Order, OrderOutcome, carry_out, ordered_parts
from grouping.digests.pending_log import PendingLog
from grouping.model.ids import DestinationId, StreamId
from grouping.plan.table_changes import is_changes
from grouping.settings.settings import Settings
from grouping.store.lease import LIFETIME_MS
from grouping.store.ownership import Owner

__all__ = ["BigTicks"]

log = logging.getLogger(__name__)

_MOST_ORDERS = 200
"""The largest number of orders of a job. The limit bounds the memory of the answers. A job with this number of orders
is for about half a million destinations."""
_PATIENCE_MS = 3000
"""How long a request waits for an evaluator. An evaluator that works takes the request far sooner."""


class BigTicks:
    """The tick whose digests a Spark job makes; at most one at a time. For use by the gateway's main thread only."""

    def __init__(
        self,
        settings: Settings,
        orders: OrderLog,
        ordering: OrderDesk,
        delivery: Delivery,
        state: TimerState,
        pending: PendingLog,
        cuts: OpenCuts,
        clock: Callable[[], int],
    ) -> None:
        self._from = settings.timers.spark_from
        self._orders = orders
        self._ordering = ordering
        self._delivery = delivery
        self._state = state
        self._pending = pending
        self._cuts = cuts
        self._clock = clock
        self._jobs = DigestJobs(settings)
        self._of_rows: dict[StreamId, DestinationId] = {}
        """Stream → a destination with digests of a table's rows that was due at the last call of `has_rows`."""
        self._begin(None)

    def _begin(self, stream_id: StreamId | None) -> None:
        self.stream_id = stream_id
        """The stream of the tick under way; None without a tick."""
        self._ordering_still = False
        self._job: Job | None = None
        self._only_redis = ""
        """The run id of the Redis server through which all jobs for these orders were requested; empty if there was
        more than one server, or if this is unknown."""
        self._asked_ms = 0
        self._lost_ms: int | None = None
        """When the gateway first saw that the evaluator with the job has no lease; None while it has one."""
        self._answers: dict[int, bytes] | None = None
        """Offset of an order → the job's answer; None while a job may still carry the orders out."""

    def recover(self, closed: int) -> None:
        """Read the open orders from Kafka, beginning at the offset `closed`."""
        self._begin(self._orders.recover(closed))
        if self.stream_id is None:
            self._jobs.forget()  # a restarted Redis may hold a finished job
        else:
            job = self._jobs.look()
            if job is not None and job.first <= self._orders.open[0] and self._orders.open[-1] < job.end:
                self._job = job

    def has_rows(self, stream_id: StreamId, due_ms: int) -> bool:
        """Tell whether digests of a table's rows are due; only the evaluator can make such digests."""
        if not is_changes(stream_id):
            return False
        known = self._of_rows.pop(stream_id, None)
        if known is None or not 0 < (self._state.armed(stream_id, known) or 0) <= due_ms:
            names = [name for name, tick_ms in self._state.due(stream_id, due_ms, CHUNK) if tick_ms]
            memberships = zip(names, self._state.memberships(names), strict=True)
            known = next((name for name, found in memberships if found is not None and found.destination.of_rows), None)
        if known is not None:
            self._of_rows[stream_id] = known  # the ticks may wait for an evaluator, and each step asks again
        return known is not None

    def take(self, stream_id: StreamId, due_ms: int, least: int | None = None) -> bool:
        """Take over a stream's due ticks if there are enough of them and an evaluator has the stream.

        Args:
            stream_id: The stream.
            due_ms: The instant up to which ticks are due.
            least: The smallest number of due ticks to take over; None for the setting `timers.spark_from`.

        Returns:
            Whether the ticks were taken over.
        """
        least = self._from if least is None else least
        if not least or self.stream_id is not None or self._state.due_count(stream_id, due_ms) < least:
            return False
        if self._jobs.leader(stream_id) is None:
            return False
        self._begin(stream_id)
        self._ordering_still = True
        self._ordering.begin(stream_id, due_ms)
        return True

    def step(self) -> bool:
        """Do a bounded amount of work; return whether there is more to do now."""
        if self.stream_id is None:
            return False
        if self._ordering_still:
            self._order()
        elif self._answers is None:
            self._look()
        elif self._orders.open:
            self._close(self._answers)
        else:
            self._jobs.forget()
            self._orders.trim()
            self._begin(None)
        return self._ordering_still or self._answers is not None

    # -- asking --------------------------------------------------------------------------------------------------------

    def _order(self) -> None:
        order = self._ordering.order()
        if order is not None and order.digests:
            self._orders.write(order)
        if order is None or len(self._orders.open) >= _MOST_ORDERS:
            self._ordering_still = False
            self._ordering.begin(StreamId(""), 0)
            leader = self._leader()
            if leader is not None and self._orders.open:
                self._only_redis = self._ask(leader)
            else:
                self._give_up()

    @property
    def _needs_spark(self) -> bool:
        """Whether only an evaluator can carry the orders out, since they may be over the rows of an existing table."""
        return self.stream_id is not None and is_changes(self.stream_id) and self._ordering.is_live(self.stream_id)

    def _give_up(self) -> None:
        """Stop waiting for the job: carry the orders out here, or, if they need an evaluator, ask the next one."""
        self._job = self._lost_ms = None
        self._answers = None if self._orders.open and self._needs_spark else {}

    def _leader(self) -> Owner | None:
        return None if self.stream_id is None else self._jobs.leader(self.stream_id)

    def _ask(self, evaluator: Owner) -> str:
        """Ask an evaluator for a job that carries out the open orders.

        Returns:
            The run id of the Redis server that holds the request.
        """
        orders = self._orders
        number = secrets.token_hex(8)
        first, end = orders.open[0], orders.open[-1] + 1
        start, of_rows = orders.answers_end(), self._needs_spark
        self._job = Job(number, evaluator.token, first, end, start, name=evaluator.name, of_rows=of_rows)
        self._asked_ms, self._lost_ms = self._clock(), None
        log.info("digests ordered", extra={"orders": len(orders.open), "evaluator": evaluator.pack()})
        return self._jobs.ask(self._job)

    def _look(self) -> None:
        """Check the progress of the job."""
        now_ms, job = self._clock(), self._job
        found = self._jobs.look()
        if job is not None and found is not None and found.job_id == job.job_id and found.state == "done":
            log.info("orders carried out", extra={"orders": len(self._orders.open)})
            self._answers = self._orders.answers(job.answers_from)
            return
        if job is None or not self._jobs.has_evaluator(job):
            self._without(job, now_ms)
            return
        self._lost_ms = None
        if found is None or found.job_id != job.job_id:
            # Redis has lost the request. The evaluator may still run the lost job; the new job runs afterwards.
            self._only_redis = ""
            self._ask(Owner(job.name, job.evaluator))
        elif found.state == "asked" and now_ms >= self._asked_ms + _PATIENCE_MS and not self._needs_spark:
            self._withdraw(job)

    def _without(self, job: Job | None, now_ms: int) -> None:
        """Continue without an evaluator for the job: the evaluator lost its lease, or a restart has lost the job."""
        if job is None and (leader := self._leader()) is not None:
            self._ask(leader)
            return
        if job is not None and not self._needs_spark and self._withdraw(job):
            return
        self._lost_ms = now_ms if self._lost_ms is None else self._lost_ms
        if now_ms >= self._lost_ms + LIFETIME_MS["evaluator"]:
            log.warning("the evaluator of orders is gone", extra={"orders": len(self._orders.open)})
            self._give_up()

    def _withdraw(self, job: Job) -> bool:
        """Carry the orders out here if certainly no evaluator took the request; return whether this is certain."""
        if not self._only_redis or self._jobs.withdraw(job) != self._only_redis:
            self._only_redis = ""
            return False
        log.info(
            "no evaluator takes the orders, the gateway carries them out", extra={"orders": len(self._orders.open)}
        )
        self._answers = {}
        return True

    # -- closing -------------------------------------------------------------------------------------------------------

    def _close(self, answers: dict[int, bytes]) -> None:
        """Close the first open order; carry it out first if the job did not."""
        offset = self._orders.open[0]
        left: dict[str, Cut] = {}

        def cuts() -> dict[str, Cut]:
            left.update(self._left(offset, answered))
            return left

        body = answers.pop(offset, None)
        if body is not None:
            answer = _decode(body)
            answered = list(answer.digests)
            records = (self._delivery.cursor(*moved) for moved in _cursors(answered).items())
            self._delivery.close(offset, records, answered, cuts)
        elif self._needs_spark:
            self._give_up()
            return
        else:
            order = self._orders.at(offset).only(of_rows=False)
            answered = []
            self._delivery.close(offset, self._made(order, answered), answered, cuts)
            answer = OrderOutcome(order.stream_id, order.fired_ms, tuple(answered))
        self._orders.open.popleft()
        for key, cut in left.items():
            self._cuts.keep(key, cut, self._clock())
        self._ordering.carried_out(answer, _cursors(answered))

    def _left(self, offset: int, answered: list[DigestOutcome]) -> dict[str, Cut]:
        """Return name → cut for those digests of an order that could not be made, because the disk was full.

        The result is empty if all digests were made.
        """
        failures = {each.destination_id: each.failure for each in answered if each.failure}
        if not failures:
            return {}
        log.error(
            "the disk has no space for digests, they are tried again", extra={"reasons": sorted(set(failures.values()))}
        )
        order = self._orders.at(offset)
        named = tuple(
            (each.destination_id, each.tick_ms, each.from_ms)
            for each in order.digests
            if each.destination_id in failures
        )
        reached = {each.places.partition: each.reached for each in order.digests if each.places is not None}
        return {f"order-{offset}": Cut(order.stream_id, order.covered, named, order.fired_ms, reached=reached)}

    def _made(self, order: Order, answered: list[DigestOutcome]) -> Iterator[OutgoingRecord]:
        """Yield the records of an order's digests, with the cursors that move."""
        for each, digest, outcome in carry_out(self._pending, order):
            answered.append(outcome)
            if digest is not None:
                for body, headers in ordered_parts(order, each, digest):
                    yield OutgoingRecord(each.topic, each.destination_id.encode(), body, headers, each.partition)
            if outcome.cursor is not None:
                yield self._delivery.cursor(outcome.incarnation, outcome.cursor)


_decode = msgspec.msgpack.Decoder(OrderOutcome).decode


def _cursors(answered: list[DigestOutcome]) -> dict[str, Cursor]:
    return {each.incarnation: each.cursor for each in answered if each.cursor is not None}
