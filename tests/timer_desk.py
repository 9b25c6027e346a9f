"""The gateway's timers alone: CQs are put into the working copy, and matches on `cq.pending`, directly.

Only the timers run here, with a movable clock, without commands and evaluator.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tenacity
from confluent_kafka import Message, Producer
from numpy.typing import NDArray

from gateway.commands.commands import Commands
from gateway.commands.statements import Statements
from gateway.commands.stored_queries import StoredQueries
from gateway.ends.ends import Ends
from gateway.ends.last_digests import LastDigests
from gateway.ends.lifetimes import Lifetimes
from gateway.kafka import LARGEST_RECORD, CommandConsumer, Topics
from gateway.model.records import PENDING_PARTITIONS, Cq, Destination, feed_of
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey
from gateway.registry.visibility import shorten_visibility
from gateway.state.catalog_records import cq_record, definition_record, source_record
from gateway.state.commit import Commits
from gateway.state.recovery.recovery import Recovery
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.work import Change, Work
from gateway.state.working_copy import WorkingCopy
from gateway.throttling.throttles import Throttles
from gateway.timers.pending_index import store_key
from gateway.timers.timers import Timers
from gateway.topics.positions import TopicEnds
from gateway.topics.result_topics import ResultTopics, result_config
from grouping.compiler.compiler import compile_select
from grouping.digests.cursor import VisibilityInterval
from grouping.digests.pending_matches import pack_pending
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import OperationalError
from grouping.model.group import ConstantValue, DestinationIds, canonical_constants
from grouping.model.ids import StreamId
from grouping.model.query import DigestClause
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText
from grouping.store.connection import connect
from schemas.partition import partition_of

__all__ = ["Desk"]

_UNIT = 5000
_RECORD_ITEMS = 4000


class Desk:
    """Timers, ends and lifetimes wired as in the gateway, on one stream `t` with the column `k`."""

    columns = (StreamColumn("k", "BIGINT"),)
    """Columns of the stream."""
    select = "SELECT k FROM t WHERE k = 0"
    """The query of all CQs, which differ in its constants."""

    def __init__(self, settings: Settings, now_ms: int) -> None:
        """Begin with empty servers at that time."""
        self.now_ms = now_ms
        self.settings = settings
        self.topics = topics = Topics(settings)
        self._source = f"{settings.prefix}t"
        self._make_topics()
        self.working = WorkingCopy(settings)
        self.consumer = consumer = CommandConsumer(settings, settings.topics.commands, 4)
        self.commits = commits = Commits(settings, self.working, consumer)
        self.timers = Timers(settings, self.working, topics, commits, lambda: self.now_ms)
        last_digests = LastDigests(settings, self.working, self.timers, commits)
        result_topics = ResultTopics(settings, topics, commits)
        self.throttles = Throttles(settings, self.working, topics, commits, lambda: self.now_ms)
        """Begins with `recover`, for which a test makes the topics."""
        self._ends = Ends(settings, self.working, result_topics, commits, last_digests, self.throttles)
        self._positions = positions = TopicEnds(
            settings, topics, result_topics, self.working, settings.results.partitions
        )
        upkeep = TableUpkeep(settings, self.working)
        self._statements = Statements(settings, self.working, topics, positions, upkeep, commits.counts, lambda _: {})
        self.stored_queries = StoredQueries(self.working, self._statements, positions)
        self._commands = Commands(
            settings, self.working, topics, positions, self._statements, commits, lambda: self.now_ms
        )
        self._lifetimes = Lifetimes(settings.evaluator, self.working, self._statements.registry, self.timers, topics)
        self.recovery = Recovery(settings, self.working, topics, consumer, commits)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OperationalError),
            wait=tenacity.wait_fixed(0.5),
            stop=tenacity.stop_after_delay(60),
        )
        self.epoch = retrying(self.recovery.run, now_ms)  # a broker that has just begun has no coordinators yet
        self._stream = Stream("s_bench", "t", self.columns, self._source, "json", {"0": 0, "1": 0}, "")
        self.working.unit.sources.add_stream(self._stream)
        self._registry = self._statements.registry
        self.quarantines = self._statements.quarantines
        self._query = compile_select(self.select, Catalog([self._stream]))
        plan, select = self._query.plan, self._query.select
        definitions = (
            definition_record("s_bench", plan.group_id, plan),
            definition_record("s_bench", select.select_id, select),
        )
        self._commit(Change(catalog=(source_record(self._stream), *definitions)))
        self._producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 20})
        self._offset = 0
        self._further: dict[str, int] = {}
        self._lock = threading.Lock()
        self._evaluator = connect(settings)
        self._begin()

    def _make_topics(self) -> None:
        """Make all topics, topics of one configuration at once, for each call takes a while."""
        settings, names = self.settings, self.settings.topics
        keep, large = {"retention.ms": "-1"}, {"max.message.bytes": str(LARGEST_RECORD)}
        self.topics.create(
            {names.commands: 4, names.replies: 4, names.deadletters: 1, names.audit: 1, self._source: 2}, large
        )
        self.topics.create({names.results: settings.results.partitions}, result_config(settings))
        self.topics.create({names.catalog: 1, names.ticks: 1, names.positions: 1}, {"cleanup.policy": "compact"} | keep)
        self.topics.create({names.pending: PENDING_PARTITIONS, names.orders: 2}, large | keep)

    def recover(self) -> None:
        """Do the work of a gateway that starts, or meets another Redis."""
        self.epoch = self.recovery.run(self.now_ms)
        self._commands.trials.begin(self.commits.in_hand())
        self._begin()

    def _begin(self) -> None:
        self._tell()
        self._statements.reload()
        self.stored_queries.reload()
        self.timers.recover()
        self._ends.reload()

    def _commit(self, *changes: Change) -> None:
        work = Work()
        for change in changes:
            work.take(change)
        self.commits.write_unit(work, self.now_ms)
        self.working.begin()

    def constants(self, number: int) -> tuple[ConstantValue, ...]:
        """Return the constants of a CQ."""
        return (number,)

    def destination(self, number: int, trigger: TriggerSpec) -> Destination:
        """Return the destination for matches of ``k = number`` with a trigger."""
        query = self._query
        constants = canonical_constants(query.row.__class__(query.row.types, self.constants(number)))
        group, select = query.plan.group_id, query.select.select_id
        ids = DestinationIds(group, select, trigger.trigger, trigger.phase_ms, DigestClause(), "shared")
        name = ids.of(constants)
        partition = partition_of(name.encode(), self.settings.results.partitions)
        return Destination(
            name, self._stream.stream_id, group, select, constants, "shared", partition, trigger,
            word="shared", slots=query.plan.kept.slots if query.plan.kept else None,
        )  # fmt: skip

    def create(self, triggers: Sequence[TriggerSpec], expire_ms: int | None = None) -> None:
        """Have one CQ for each trigger, the constant being its number."""
        for first in range(0, len(triggers), _UNIT):
            chunk = range(first, min(first + _UNIT, len(triggers)))
            self.put([(f"c{number}", number, triggers[number]) for number in chunk], expire_ms)
            self.timers.step()

    def put(self, wanted: Sequence[tuple[str, int, TriggerSpec]], expire_ms: int | None = None) -> None:
        """Have CQs of these names, constants and triggers, in one unit of work."""
        places = [self.destination(number, trigger) for _, number, trigger in wanted]
        keys = [CqKey("bench", name) for name, _, _ in wanted]
        self.working.load(keys, places)
        records = []
        for key, place in zip(keys, places, strict=True):
            cq = Cq(key.name, CqText.cut(""), place.destination_id, self.now_ms, 0, None, expire_ms)
            self.working.unit.put(key, cq, place, self._query.plan, self._query.select)
            records.append(cq_record(key, cq, place))
        self._commit(Change(catalog=tuple(records)))

    def carry_out(self, messages: Sequence[Message]) -> None:
        """Carry out commands, up to their replies."""
        self._commands.queue.add(messages)
        while self._commands.queue:
            self._commands.take_turns(_UNIT)
        self.commits.finish()

    def take_turns(self, messages: Sequence[Message]) -> int:
        """Have commands wait for their turns, and carry out a unit that waits for nothing; return its size."""
        self._commands.queue.add(messages)
        count = self._commands.take_turns(_UNIT)
        self.commits.finish()
        return count

    def pause(self, name: str, paused: bool) -> None:
        """Pause or resume a CQ."""
        key = CqKey("bench", name)
        self._commit(self._registry.pause(self.working.load([key]), key, name, paused, self.now_ms))

    def drop(self, name: str) -> None:
        """Drop a CQ."""
        self._positions.begin()
        key = CqKey("bench", name)
        self._commit(self._registry.drop(self.working.load([key]), key, name, self.now_ms))

    def publish(self, partition: int = 0) -> None:
        """Have an event on the topic that is not evaluated until `evaluate` says so, or a match follows."""
        self._producer.produce(self._source, b"{}", partition=partition)
        self._producer.flush()

    def evaluate(self, count: int, further: Mapping[str, int] | None = None) -> None:
        """Have further events evaluated that match nobody, also on added partitions."""
        self._offset += count
        self._further |= further or {}
        self._tell()

    def match(self, stores: Sequence[tuple[bytes, int]], times: Sequence[int]) -> None:
        """Write one match for each store (its bytes and its partition), and have them evaluated."""
        with self._lock:
            first, self._offset = self._offset, self._offset + len(stores)
        by_partition: dict[int, list[int]] = {}
        for number, (_, partition) in enumerate(stores):
            by_partition.setdefault(partition, []).append(number)
        for partition, numbers in by_partition.items():
            for begin in range(0, len(numbers), _RECORD_ITEMS):
                self._write(partition, numbers[begin : begin + _RECORD_ITEMS], first, stores, times)
        self._producer.flush()
        self._tell()

    def _tell(self) -> None:
        """Tell the evaluator's commit after a micro-batch, and after Redis has begun a new life."""
        pinned = f"{self.epoch}:{self.working.inventory.versions[self._stream.stream_id]}"
        body = json.dumps({"batch": 1, "offsets": {"0": self._offset, "1": 0, **self._further}, "pinned": pinned})
        self._evaluator.set(self.working.connection.keys.committed(self._stream.stream_id), body)

    def _write(
        self, partition: int, numbers: list[int], first: int, stores: Sequence[tuple[bytes, int]], times: Sequence[int]
    ) -> None:
        ids = np.frombuffer(b"".join(stores[number][0] for number in numbers), np.uint8).reshape(-1, 12)
        places = np.array(numbers)
        body = self._packed(ids, places + first, np.array([times[number] for number in numbers]))
        self._producer.produce(self.settings.topics.pending, body, partition=partition)

    def _packed(self, ids: NDArray[np.uint8], offsets: NDArray[np.int64], times: NDArray[np.int64]) -> bytes:
        """Return a record of one match for each store."""
        values = [b'{"k":%d}' % number for number in range(len(ids))]
        places = (np.zeros(len(ids), np.int32), offsets, times)
        return pack_pending(*self._found_with, ids, places, np.arange(len(ids), dtype=np.int32), values)

    @property
    def _found_with(self) -> tuple[StreamId, tuple[int, int]]:
        """The stream, and the version of its tables that matches meet."""
        return self._stream.stream_id, (self.epoch, self.working.inventory.versions[self._stream.stream_id])

    def stores(self, numbers: Iterable[int], trigger: TriggerSpec) -> list[tuple[bytes, int]]:
        """Return the stores of these constants, with their partitions."""
        feeds = (feed_of(self.destination(number, trigger)) for number in numbers)
        return [(store_key(feed.destination_id), feed.partition) for feed in feeds]

    def visibility(self, destination_id: str) -> tuple[VisibilityInterval, ...]:
        """Return the versions that a destination saw, as far as they are remembered."""
        self.working.begin()
        membership = self.working.load_memberships([destination_id]).membership(destination_id)
        return () if membership is None else membership.timed.visibility

    def look_after(self) -> bool:
        """Do the gateway's work of a few times a second, and return whether a CQ or a destination went."""
        self.working.begin()
        shortened = shorten_visibility(self.working, self.timers.shortened())
        compared = self.stored_queries.step(self.now_ms)
        gone = self._lifetimes.step(self.now_ms)
        ended = self._ends.step(self.now_ms, self.epoch)
        work = Work()
        for change in (shortened, compared, gone, ended):
            work.take(change)
        if work:
            self.commits.write_unit(work, self.now_ms)
        else:
            self.commits.finish()
        return bool(gone.catalog or ended.records or ended.catalog)
