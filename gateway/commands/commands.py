"""Commands: read in batches, carried out in their order, answered exactly once.

A batch is one unit of work and one commit. Inside it, runs of commands between changes of streams are compiled first
and looked up together, so that the cost of a command is its compiling, not its round trips.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from gateway.commands.dead_letters import LONGEST_KEY, command_letter
from gateway.commands.rates import CommandRates
from gateway.commands.repeats import Repeats
from gateway.commands.replies import Replies
from gateway.commands.statements import PreparedCommand, Statements
from gateway.ends.ends import Ends
from gateway.kafka import LARGEST_RECORD, Outgoing, PlaceReader, Record, Topics
from gateway.metrics import COMMANDS, DEAD_LETTERS
from gateway.state.command_ids import CommandIds
from gateway.state.commit import Commits
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import Positions
from grouping.model.errors import InputError, OperationalError
from grouping.settings import Settings
from schemas.codec import Command, MalformedCommand, decode_command

__all__ = ["Commands"]

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""The present, epoch milliseconds."""


class _Request(msgspec.Struct, frozen=True):
    """A command record after decoding."""

    record: Record
    key: bytes
    """The subscriber's name as the record has it."""
    command: Command
    remember: bytes
    refusal: InputError | None
    """Why it is not even looked at."""


_UNIT_BYTES = 64 << 20
"""Bytes of the replies and letters of one unit of work, about: thousands of large ones fit neither Redis nor Kafka."""

_KEY_BYTES = 4096
"""Of the longest subscriber's name."""

_Compiled = tuple[_Request, PreparedCommand | InputError]
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
        self._settings = settings
        self._working = working
        self._positions = positions
        self._statements = statements
        self._commits = commits
        self._ends = ends
        self._clock = clock
        self._rates = CommandRates(settings.limits.commands_per_second)
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
            self._working.open()
            self._statements.reload()
            middle = len(records) // 2
            self.carry_out(records[:middle])
            self.carry_out(records[middle:])

    def _carry_out(self, records: Sequence[Record]) -> None:
        now_ms = self._clock()
        self._positions.begin()
        self._replies = Replies(self._replies_topic, self._reply_partitions, now_ms)
        requests = [request for record in records if (request := self._decode(record, now_ms)) is not None]
        if self._replies.size > _UNIT_BYTES and len(records) > 1:
            raise _UnitTooLarge
        self._run_unless_poisoned(requests, now_ms)
        offsets = {record.partition: record.offset + 1 for record in records}
        self.commit(offsets, self._replies.records, self._replies.to_remember, now_ms)
        self._replies.count()
        self._positions.delete_unneeded()

    def commit(
        self, offsets: dict[int, int], records: list[Outgoing], to_remember: dict[int, bytes], now_ms: int
    ) -> None:
        """Write the unit of work as it stands, with its catalog records and the ends that it brought.

        Kafka's half goes on; `Commits.finish` waits for it.
        """
        self._statements.counts.forget(self._working.cleared_numbers)
        changes, notices = self._statements.registry.finish(now_ms)
        changes += self._ends.note(notices)
        catalog = self._settings.topics.catalog
        records += [Outgoing(catalog, key, value, (), 0) for key, value in changes]
        self._commits.begin(offsets, records, to_remember, now_ms)

    # -- decoding ------------------------------------------------------------------------------------------------------

    def _decode(self, record: Record, now_ms: int) -> _Request | None:
        key = record.key
        try:
            command = _command(key, record.value)
        except MalformedCommand as error:
            self._refuse_malformed(record, error)
            return None
        assert key, "a command has one"
        if command.subscriber.encode("utf-8", "surrogatepass") != key:
            refusal = InputError(
                f'the subscriber "{_clip(command.subscriber)}" is not the record\'s key',
                code="not-allowed",
                detail=f'The key is "{_clip(_text(key))}".',
                hint="Send the command with the subscriber's name as the record's key.",
            )
            self._replies.add(key, command.encoding, self._replies.reject(command.command_id, _text(key), refusal))
            return None
        remember = CommandIds.key(key, command.command_id)
        return _Request(record, key, command, remember, self._rates.refusal(key, now_ms))

    def _refuse_malformed(self, record: Record, error: MalformedCommand) -> None:
        key = record.key
        if key and len(key) <= LONGEST_KEY:
            refusal = InputError(
                "the record is no command",
                code="malformed-command",
                detail=error.detail,
                hint="Send an object with command_id, subscriber and text.",
            )
            self._replies.add(key, error.encoding, self._replies.reject(error.command_id, _text(key), refusal))
        else:
            COMMANDS.labels("malformed-command").inc()
        DEAD_LETTERS.labels("malformed-command").inc()
        source = f"{record.topic}/{record.partition}/{record.offset}"
        topic = self._settings.topics.deadletters
        self._replies.add_letter(command_letter(topic, source, error.detail, key, record.value))

    # -- carrying out --------------------------------------------------------------------------------------------------

    def _run_unless_poisoned(self, requests: list[_Request], now_ms: int) -> None:
        """Carry out requests; one that meets a fault of ours is answered alone, and the unit made anew without it."""
        poisoned: set[bytes] = set()
        answered = len(self._replies.records)
        while True:
            try:
                self._run_all([each for each in requests if each.remember not in poisoned], now_ms)
                break
            except _Poison as poison:
                log.exception("a command met a fault of the gateway")
                poisoned.add(poison.request.remember)
                self._replies.cut_back(answered)
                self._working.open()
                self._statements.reload()
        for request in requests:
            if request.remember in poisoned:
                command = request.command
                reply = self._replies.reject(command.command_id, command.subscriber, _FAULT)
                self._replies.add(request.key, command.encoding, reply)

    def _run_all(self, requests: list[_Request], now_ms: int) -> None:
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
            if isinstance(prepared, PreparedCommand) and prepared.on_streams:
                self._run(run, repeats, now_ms)
                self._run([(request, prepared)], repeats, now_ms)
                run = []
            else:
                run.append((request, prepared))
        self._run(run, repeats, now_ms)

    def _run(self, run: list[_Compiled], repeats: Repeats, now_ms: int) -> None:
        """Carry out commands that were compiled against the same streams."""
        self._commits.finish()
        repeats.read()
        fresh = (prepared for request, prepared in run if request.remember not in repeats)
        self._statements.load(prepared for prepared in fresh if isinstance(prepared, PreparedCommand))
        for request, prepared in run:
            try:
                self._one(request, prepared, repeats, now_ms)
            except OperationalError:
                raise
            except Exception as error:
                raise _Poison(request) from error
            if max(self._replies.size, repeats.size) > _UNIT_BYTES and len(self._replies.records) > 1:
                raise _UnitTooLarge

    def _one(self, request: _Request, prepared: PreparedCommand | InputError, repeats: Repeats, now_ms: int) -> None:
        command, replies = request.command, self._replies
        try:
            first = replies.first(request.remember) or repeats.reply(request.remember)
            if first is not None:
                replies.add(request.key, command.encoding, first)
                return
            if isinstance(prepared, InputError):
                raise prepared
            position = f"{request.record.partition}/{request.record.offset}" if prepared.on_streams else ""
            result, at_ms = self._statements.carry_out(prepared, position, now_ms)
            message = _DONE.get(type(prepared.statement).__name__, "done")
            reply = replies.accept(command.command_id, command.subscriber, message, result, at_ms)
        except InputError as error:
            reply = replies.reject(command.command_id, command.subscriber, error)
        replies.add(request.key, command.encoding, reply, request.remember)


class _UnitTooLarge(Exception):
    """The replies so far are too large for one unit of work; there are several commands."""


class _Poison(Exception):
    """A command that met a fault of ours."""

    def __init__(self, request: _Request) -> None:
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


def _command(key: bytes | None, value: bytes | None) -> Command:
    """Return the command that a record is.

    Raises:
        MalformedCommand: It is none; a key that is longer than any name is a fault of its own, for replies repeat it.
    """
    if value is not None and len(value) > LARGEST_RECORD:
        raise MalformedCommand(f"The record has {len(value)} bytes; it may have {LARGEST_RECORD}.")
    command = decode_command(value)
    if not key:
        raise MalformedCommand("The record has no key.", encoding=command.encoding)
    if len(key) > _KEY_BYTES:
        raise MalformedCommand(
            f"Its key has {len(key)} bytes; it may have {_KEY_BYTES}.",
            encoding=command.encoding,
            command_id=command.command_id,
        )
    return command


def _text(key: bytes) -> str:
    return key.decode("utf-8", "replace")


def _clip(name: str) -> str:
    return name if len(name) <= 100 else name[:100] + "…"
