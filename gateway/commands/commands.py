"""Commands: read in batches, carried out in order, answered exactly once.

A batch is one unit of work with one commit. Some commands change the streams, tables or views against which later
commands are compiled. The commands between two such commands are compiled first; then their CQs and destinations are
read from Redis together. So a command needs no round trip to Redis of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from gateway.commands.audit_trail import AuditTrail
from gateway.commands.command_traces import CommandOutcome, CommandTraces, UnitTimes
from gateway.commands.prepared import PreparedCommand
from gateway.commands.repeats import Repeats
from gateway.commands.replies import Replies
from gateway.commands.requests import Request, RequestReader
from gateway.commands.statement_table import STATEMENTS
from gateway.commands.statements import Statements
from gateway.kafka import FITTING_BYTES, LARGEST_RECORD, PlaceReader, Record, Topics
from gateway.model.held import NotYet
from gateway.model.loaded import Loaded
from gateway.state.commit import Commits
from gateway.state.work import Work
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds
from gateway.turns.command_queue import CommandQueue
from gateway.turns.command_trials import CommandTrials, deadly
from grouping.model.errors import InputError, OperationalError
from grouping.model.query import Statement
from grouping.settings.settings import Settings

__all__ = ["UNIT_BYTES", "Commands"]

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""The present, epoch milliseconds."""


_READ_AGAIN_SECONDS = 0.1
"""To save memory, the queue keeps only the places of some commands. This is the longest time, in seconds, for reading
the commands at these places."""
UNIT_BYTES = 64 << 20
"""A unit of work ends after about this number of bytes of replies and dead letters, so that Redis and Kafka accept
the unit."""


class Commands:
    """Carries out batches of command records."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        positions: TopicEnds,
        statements: Statements,
        commits: Commits,
        clock: Clock,
    ) -> None:
        self._working = working
        self._positions = positions
        self._statements = statements
        self._commits = commits
        self._clock = clock
        self.trials = CommandTrials(commits.take_in_hand)
        """Notes the commands of each unit in Redis, so that the next gateway can find a command that kills gateways."""
        self._held_since: dict[bytes | None, tuple[str, int]] = {}
        """Subscriber with a held command → the command's position, and when the command was first tried."""
        limits = settings.limits
        self._requests = RequestReader(
            settings, lambda name: working.inventory.limit(name, "commands_per_second", limits)
        )
        self._command_reader = PlaceReader(settings, settings.topics.commands)
        self.queue = CommandQueue(
            is_genuine=self._requests.is_genuine if self._requests.checks_tokens else None,
            read_again=lambda places: self._command_reader.read(places, _READ_AGAIN_SECONDS),
        )
        """Commands that wait for their turn."""
        self._audit = AuditTrail(settings)
        self._traces = CommandTraces.of(settings)
        self._replies_topic = settings.topics.replies
        self._reply_reader = PlaceReader(settings, self._replies_topic)
        # The gateway waits for the topic, which a broker may not know yet if it is new. The number of partitions must
        # be right, since a client reads only the partition of its key.
        self._reply_partitions = topics.await_forms([self._replies_topic])[self._replies_topic].partitions

    def take_turns(self, most: int) -> int:
        """Carry out the commands whose turn has come, in one unit of work, and return their number.

        Args:
            most: The largest number of commands in the unit.

        Raises:
            OperationalError: A server failed; only commands that were carried out have replies.
        """
        self._requests.refresh(self._clock())
        records, seconds, alone = self.queue.take(most)
        if not records:
            return 0
        fitting = self.trials.fitting(records)
        left = [*self._unit(records[:fitting], seconds, patient=alone), *records[fitting:]]
        self.queue.put_back(left)
        return len(records) - len(left)

    def _unit(self, records: Sequence[Record], seconds: float, *, patient: bool) -> list[Record]:
        """Carry out records as one unit of work, commit the unit, and return the records that are left, in order.

        Args:
            records: The records.
            seconds: How long the unit may begin further commands, in seconds from now.
            patient: Whether the unit waits for Kafka's answers, for example about new topics. Otherwise a command that
                needs an answer is held, and other subscribers' commands go on.
        """
        began_ns = time.time_ns()
        requests = [self._requests.read(record) for record in records]
        refused: dict[int, InputError] = {}
        """Number of a request → the reason why the gateway must not carry it out."""
        for number in self.trials.take(records, [request.remember for request in requests]):
            requests[number] = self._requests.checked(requests[number])
            refused[number] = requests[number].refusal or deadly()
        while True:
            now_ms = self._clock()
            self._positions.begin(patient=patient)
            replies = Replies(self._replies_topic, self._reply_partitions, now_ms)
            batch = _Batch(now_ms, replies, Work(), [], {}, {}, set(), [])
            restart = self._carry_out_all(requests, refused, batch, time.monotonic() + seconds)
            if restart is None:
                break
            if restart.refusal is not None:
                refused[restart.number] = restart.refusal
            else:
                requests = requests[: len(requests) // 2]
            self._working.open()  # discard the changes in memory: read the state from Redis again
            self._statements.reload()
        self.queue.hold(batch.held)
        self.queue.charge(
            {(records[number].partition, records[number].offset): cost for number, cost in batch.costs.items()}
        )
        if batch.done:
            done = [records[number] for number in batch.done]
            batch.work.answer(self.queue.finish(done, batch.accepted), batch.replies.records, batch.replies.to_remember)
            ran_ns = time.time_ns()
            self._commits.write_unit(batch.work, now_ms)
            batch.replies.count()
            log.debug("commands answered", extra={"commands": len(done)})
            if self._traces is not None:
                times = UnitTimes(began_ns, ran_ns, time.time_ns())
                self._commits.once_published(partial(self._traces.tell, batch.answered, times))
        self._positions.finish()
        numbers = frozenset(batch.done)
        return [record for number, record in enumerate(records) if number not in numbers]

    def _carry_out_all(
        self, requests: Sequence[Request], refused: Mapping[int, InputError], batch: _Batch, until: float
    ) -> _Restart | None:
        """Carry out requests until the time is up, but at least the first request.

        Args:
            requests: The requests.
            refused: Number of a request → the reason why the gateway must not carry it out.
            batch: Collects the outcomes.
            until: The time after which no further request is begun, by the monotonic clock.

        Returns:
            Why the unit must begin again; None if the unit can be committed.
        """
        ids = [request.remember for request in requests if request.remember is not None]
        repeats = Repeats(self._reply_reader, self._commits.look_up(ids, batch.now_ms), UNIT_BYTES)
        compiled: list[_Compilation] = []
        for number, read in enumerate(requests):
            if number and time.monotonic() > until:
                break
            began = time.perf_counter()
            prepared: PreparedCommand[Statement] | InputError
            if number in refused:
                request, prepared = read, refused[number]
            else:
                request, prepared = self._prepared(read, batch.now_ms)
            batch.costs[number] = time.perf_counter() - began
            if isinstance(prepared, PreparedCommand) and STATEMENTS[prepared.title].changes_sources:
                alone = [_Compilation(number, request, prepared)]
                if restart := self._carry_out(compiled, repeats, batch) or self._carry_out(alone, repeats, batch):
                    return restart
                compiled = []
            else:
                compiled.append(_Compilation(number, request, prepared))
        return self._carry_out(compiled, repeats, batch)

    def _prepared(self, read: Request, now_ms: int) -> tuple[Request, PreparedCommand[Statement] | InputError]:
        """Check and compile a request whose turn has come, and return the checked request with its result."""
        request = read
        try:
            request = self._requests.checked(read)
            refusal = self._requests.refusal(request, now_ms)
            held = self._held_since.get(request.record.key)
            asked_ms = held[1] if held is not None and held[0] == request.record.position else now_ms
            return request, refusal or self._statements.prepare(request.subscriber, request.text, asked_ms)
        except InputError as error:
            return request, error
        except Exception:
            log.exception("a command failed because of a fault of the gateway")
            return request, _FAULT  # compiling has not changed the unit

    def _carry_out(self, compiled: Sequence[_Compilation], repeats: Repeats, batch: _Batch) -> _Restart | None:
        """Carry out commands that were compiled against the same sources.

        Returns:
            Why the unit must begin again; None if it can go on.
        """
        self._commits.finish()
        repeats.read()
        known = repeats.keys
        fresh = [each.prepared for each in compiled if each.request.remember not in known]
        loaded = self._statements.load([prepared for prepared in fresh if isinstance(prepared, PreparedCommand)])
        for each in compiled:
            number, request, prepared = each.number, each.request, each.prepared
            key, began = request.record.key, time.perf_counter()
            replies, changes = len(batch.replies.records), len(batch.work.catalog)
            try:
                if key not in batch.held:
                    self._answer(request, prepared, loaded, repeats, batch)
                    batch.done.append(number)
                    self._held_since.pop(key, None)
            except NotYet as later:
                batch.held[key] = later.is_ready
                assert isinstance(prepared, PreparedCommand), "a refused command is not held"
                self._held_since[key] = request.record.position, prepared.asked_ms
            except OperationalError:
                raise
            except Exception:
                log.exception("a command failed because of a fault of the gateway")
                return _Restart(number, _FAULT)
            if isinstance(prepared, PreparedCommand) and not batch.fits(replies, changes):
                return _Restart(number, _TOO_LARGE)
            batch.costs[number] += time.perf_counter() - began
            if key in batch.held:
                self._requests.hold(request)
            if max(batch.replies.size, repeats.size) > UNIT_BYTES and number:
                return _Restart(number)
        return None

    def _answer(
        self,
        request: Request,
        prepared: PreparedCommand[Statement] | InputError,
        loaded: Loaded,
        repeats: Repeats,
        batch: _Batch,
    ) -> None:
        replies, remember = batch.replies, request.remember
        try:
            if remember is not None and (first := replies.first(remember) or repeats.reply(remember)) is not None:
                replies.add(request, first, repeated=True)
                return
            if isinstance(prepared, InputError):
                raise prepared
            answer = self._statements.carry_out(prepared, loaded, request.record, batch.now_ms)
            batch.work.take(answer.change)
            message, at_ms = STATEMENTS[prepared.title].reply, max(batch.now_ms, answer.not_before_ms)
            reply = replies.accept(request.command_id, request.subscriber, message, answer.result, at_ms)
            batch.accepted.add(request.record.key)
        except InputError as error:
            reply = replies.reject(request.command_id, request.subscriber, error)
        replies.add(request, reply)
        if self._traces is not None:
            title = prepared.title if isinstance(prepared, PreparedCommand) else ""
            batch.answered.append(CommandOutcome(request, title, reply.code))
        if isinstance(prepared, PreparedCommand):
            replies.records += self._audit.records(request, prepared.title, reply)
        else:
            replies.records += self._audit.refused(request, reply)


class _Compilation(msgspec.Struct, frozen=True):
    """A command after compilation: a prepared command or an error."""

    number: int
    """The number of the request in its unit of work."""
    request: Request
    prepared: PreparedCommand[Statement] | InputError


class _Batch(NamedTuple):
    """A batch of commands while they are carried out."""

    now_ms: int
    replies: Replies
    work: Work
    done: list[int]
    """Numbers of the requests that were carried out, in their order."""
    held: dict[bytes | None, Callable[[], bool]]
    """Subscriber with a command that must wait → a function that tells whether the command can run now."""
    costs: dict[int, float]
    """Number of a request → the seconds spent on it."""
    accepted: set[bytes | None]
    """Subscribers with an accepted command in this unit."""
    answered: list[CommandOutcome]
    """The outcomes for the traces; empty without traces."""

    def fits(self, first_reply: int, first_change: int) -> bool:
        """Tell whether all records of the last command are small enough for Kafka.

        Args:
            first_reply: The index of the command's first record among the replies.
            first_change: The index of the command's first catalog change.
        """
        sizes = [len(key) + len(value or b"") for key, value in self.work.catalog[first_change:]]
        sizes += [record.size for record in self.replies.records[first_reply:]]
        return max(sizes, default=0) <= FITTING_BYTES


class _Restart(NamedTuple):
    """A unit of work must begin again, without the changes that it has made."""

    number: int
    """Number of the request at which the unit stopped."""
    refusal: InputError | None = None
    """The refusal of this command, if the gateway failed while it carried the command out, or if the command's records
    are too large for Kafka. None if the replies of several commands together are too large for one unit."""


_FAULT = InputError(
    "the gateway could not carry out the command",
    code="unavailable",
    detail="The gateway had an internal error, which is in the gateway's log; nothing was changed.",
    hint="Send the command again, or report the error.",
)

_TOO_LARGE = InputError(
    "the command's reply, or its record of the catalog, is too large",
    code="quota-exceeded",
    detail=f"A record can have at most {LARGEST_RECORD:,} bytes; nothing was changed.",
    hint="Ask for less, or divide the query into several.",
)
