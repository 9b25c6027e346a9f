"""Commands: read in batches, carried out in their order, answered exactly once.

A batch is one unit of work and one commit. Inside it, runs of commands between changes of sources are compiled first
and looked up together, so that the cost of a command is its compiling, not its round trips.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gateway.commands.command_queue import CommandQueue
from gateway.commands.repeats import Repeats
from gateway.commands.replies import Replies
from gateway.commands.requests import Request, RequestReader
from gateway.commands.statements import PreparedCommand, Statements
from gateway.ends.ends import Ends
from gateway.kafka import PlaceReader, Record, Topics
from gateway.state.commit import Commits
from gateway.state.work import Work
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import Positions
from grouping.model.errors import InputError, OperationalError
from grouping.settings import Settings

__all__ = ["Commands"]

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""The present, epoch milliseconds."""


_UNIT_BYTES = 64 << 20
"""Bytes of the replies and letters of one unit of work, about: thousands of large ones fit neither Redis nor Kafka."""

_Compiled = tuple[Request, PreparedCommand | InputError]
"""A command after compiling: what it asks for, or what is wrong with it."""


class Commands:
    """Carries out batches of command records."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        positions: Positions,
        statements: Statements,
        commits: Commits,
        ends: Ends,
        clock: Clock,
    ) -> None:
        self._working = working
        self._positions = positions
        self._statements = statements
        self._commits = commits
        self._ends = ends
        self._clock = clock
        self.queue = CommandQueue()
        """Commands that wait; those that are carried out need not have waited here."""
        self._requests = RequestReader(settings)
        self._replies_topic = settings.topics.replies
        self._reply_reader = PlaceReader(settings, self._replies_topic)
        self._reply_partitions = topics.partitions(self._replies_topic) or 1

    def carry_out(self, records: Sequence[Record]) -> None:
        """Carry out a batch of records and commit it, in several units of work where its replies are too large for one.

        Raises:
            OperationalError: A server failed; nothing is answered that is not done.
        """
        try:
            self._carry_out(records)
        except _UnitTooLarge:
            self._begin_anew()
            middle = len(records) // 2
            self.carry_out(records[:middle])
            self.carry_out(records[middle:])

    def _carry_out(self, records: Sequence[Record]) -> None:
        now_ms = self._clock()
        self._positions.begin()
        replies = Replies(self._replies_topic, self._reply_partitions, now_ms)
        requests = [each for record in records if (each := self._requests.read(record, replies, now_ms)) is not None]
        if replies.size > _UNIT_BYTES and len(records) > 1:
            raise _UnitTooLarge
        work = self._run_unless_poisoned(requests, replies, now_ms)
        work.answer(self.queue.finish(records), replies.records, replies.to_remember)
        self._ends.commit(work, now_ms)
        replies.count()
        self._positions.delete_unneeded()

    def _run_unless_poisoned(self, requests: list[Request], replies: Replies, now_ms: int) -> Work:
        """Carry out requests; one that meets a fault of ours is answered alone, and the unit made anew without it."""
        poisoned: set[bytes] = set()
        answered = len(replies.records)
        while True:
            batch = _Batch(now_ms, replies, Work())
            try:
                self._run_all([each for each in requests if each.remember not in poisoned], batch)
                break
            except _Poison as poison:
                log.exception("a command met a fault of the gateway")
                poisoned.add(poison.request.remember)
                replies.cut_back(answered)
                self._begin_anew()
        for request in requests:
            if request.remember in poisoned:
                command = request.command
                reply = replies.reject(command.command_id, command.subscriber, _FAULT)
                replies.add(request.key, command.encoding, reply)
        return batch.work

    def _begin_anew(self) -> None:
        """Let go of the unit of work: what it has changed in memory is read from Redis again."""
        self._working.open()
        self._statements.reload()

    def _run_all(self, requests: list[Request], batch: _Batch) -> None:
        now_ms = batch.now_ms
        looked_up = self._commits.look_up([request.remember for request in requests], now_ms)
        repeats = Repeats(self._reply_reader, looked_up, _UNIT_BYTES)
        run: list[_Compiled] = []
        for request in requests:
            command = request.command
            prepared: PreparedCommand | InputError
            try:
                prepared = request.refusal or self._statements.prepare(command.subscriber, command.text, now_ms)
            except InputError as error:
                prepared = error
            except Exception as error:
                raise _Poison(request) from error
            if isinstance(prepared, PreparedCommand) and prepared.changes_sources:
                self._run(run, repeats, batch)
                self._run([(request, prepared)], repeats, batch)
                run = []
            else:
                run.append((request, prepared))
        self._run(run, repeats, batch)

    def _run(self, run: list[_Compiled], repeats: Repeats, batch: _Batch) -> None:
        """Carry out commands that were compiled against the same sources."""
        self._commits.finish()
        repeats.read()
        fresh = (prepared for request, prepared in run if request.remember not in repeats)
        self._statements.load(prepared for prepared in fresh if isinstance(prepared, PreparedCommand))
        for request, prepared in run:
            try:
                self._one(request, prepared, repeats, batch)
            except OperationalError:
                raise
            except Exception as error:
                raise _Poison(request) from error
            if max(batch.replies.size, repeats.size) > _UNIT_BYTES and len(batch.replies.records) > 1:
                raise _UnitTooLarge

    def _one(self, request: Request, prepared: PreparedCommand | InputError, repeats: Repeats, batch: _Batch) -> None:
        command, replies = request.command, batch.replies
        try:
            first = replies.first(request.remember) or repeats.reply(request.remember)
            if first is not None:
                replies.add(request.key, command.encoding, first)
                return
            if isinstance(prepared, InputError):
                raise prepared
            position = request.position if prepared.changes_sources else ""
            answer = self._statements.carry_out(prepared, position, batch.now_ms)
            batch.work.take(answer.change)
            message = _DONE.get(type(prepared.statement).__name__, "done")
            reply = replies.accept(command.command_id, command.subscriber, message, answer.result, answer.at_ms)
        except InputError as error:
            reply = replies.reject(command.command_id, command.subscriber, error)
        replies.add(request.key, command.encoding, reply, request.remember)


class _Batch(NamedTuple):
    """A batch of commands while they are carried out."""

    now_ms: int
    replies: Replies
    work: Work


class _UnitTooLarge(Exception):
    """The replies so far are too large for one unit of work; there are several commands."""


class _Poison(Exception):
    """A command that met a fault of ours."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.command.command_id)
        self.request = request


_FAULT = InputError(
    "the gateway could not carry out the command",
    code="unavailable",
    detail="It met a fault of its own, which it has logged; nothing was changed.",
    hint="Send it again, or report it.",
)

_DONE = {
    "CreateCq": "created",
    "CreateStream": "created",
    "DropCq": "dropped",
    "DropStream": "dropped",
    "AlterCq": "altered",
    "PauseCq": "paused",
    "ResumeCq": "resumed",
}
