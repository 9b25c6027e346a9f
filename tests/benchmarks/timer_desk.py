"""The gateway's timers alone: CQs are put into the working copy, and matches on `cq.pending`, directly.

What commands and the evaluator cost is measured elsewhere; here the clock can be moved, and nothing else runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence

import numpy as np
import tenacity
from confluent_kafka import Producer

from gateway.commands import Commands
from gateway.commit import Commits
from gateway.ends import Ends
from gateway.kafka import CommandConsumer, Topics
from gateway.positions import Positions, result_config
from gateway.records import PENDING_PARTITIONS, Cq, Destination, TriggerSpec, feed_of
from gateway.recovery import Recovery
from gateway.statements import Statements
from gateway.table_upkeep import TableUpkeep
from gateway.timers.last_digests import LastDigests
from gateway.timers.lifetimes import Lifetimes
from gateway.timers.pending_index import store_key
from gateway.timers.timers import Timers
from gateway.unit import CqKey
from gateway.working_copy import WorkingCopy
from grouping.catalog import Catalog, Stream, StreamColumn
from grouping.compiler import compile_select
from grouping.cq_text import CqText
from grouping.errors import OperationalError
from grouping.group import CompiledQuery, canonical_constants, destination_id
from grouping.pending_matches import pack_pending
from grouping.query import ChangeBased, DigestClause
from grouping.redis_store import connect
from grouping.settings import Settings
from schemas.partition import partition_of

__all__ = ["Desk"]

_UNIT = 5000
_RECORD_ITEMS = 4000


class Desk:
    """Timers, ends and lifetimes wired as in the gateway, on one stream `t` with the column `k`."""

    def __init__(self, settings: Settings, now_ms: int) -> None:
        """Begin with empty servers at that time."""
        self.now_ms = now_ms
        self.settings = settings
        self.topics = topics = Topics(settings)
        keep = {"retention.ms": "-1"}
        for name, partitions, config in (
            ("commands", 4, {}),
            ("replies", 4, {}),
            ("results", settings.results.partitions, result_config(settings)),
            ("catalog", 1, {"cleanup.policy": "compact", **keep}),
            ("pending", PENDING_PARTITIONS, keep),
            ("ticks", 1, {"cleanup.policy": "compact", **keep}),
        ):
            topics.create({settings.topic(name): partitions}, config)
        topics.create({"t": 2})
        self.working = WorkingCopy(settings)
        consumer = CommandConsumer(settings, settings.topic("commands"), 4)
        commits = Commits(settings, self.working, consumer)
        self.timers = Timers(settings, self.working, topics, commits, lambda: self.now_ms)
        self._ends = Ends(settings, self.working, topics, LastDigests(settings, self.working, self.timers, commits))
        positions = Positions(settings, topics, self.working, settings.results.partitions)
        self._statements = Statements(settings, self.working, topics, positions, TableUpkeep(settings, self.working))
        self._commands = Commands(
            settings, self.working, topics, positions, self._statements, commits, self._ends, lambda: self.now_ms
        )
        self._lifetimes = Lifetimes(self.working, self._statements.registry, self.timers)
        recovery = Recovery(settings, self.working, topics, consumer, commits)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(OperationalError),
            wait=tenacity.wait_fixed(0.5),
            stop=tenacity.stop_after_delay(60),
        )
        self._epoch = retrying(recovery.run, now_ms)  # a broker that has just begun has no coordinators yet
        self._stream = Stream("s_bench", "t", (StreamColumn("k", "BIGINT"),), "t", "json", {"0": 0, "1": 0}, "")
        self.working.add_stream(self._stream)
        self._commit()
        self._statements.reload()
        self.timers.recover()
        self._query = compile_select("SELECT k FROM t WHERE k = 0", Catalog([self._stream]))
        self._producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "linger.ms": 20})
        self._offset = 0
        self._lock = threading.Lock()
        self._evaluator = connect(settings)

    def _commit(self) -> None:
        self._commands.commit({}, [], {}, self.now_ms)
        self.working.begin()

    def destination(self, number: int, trigger: TriggerSpec) -> Destination:
        """Return where matches of ``k = number`` go at those ticks."""
        query = self._query
        constants = canonical_constants(query.row.__class__(query.row.types, (number,)))
        group, select = query.plan.group_id, query.select.select_id
        asked = trigger.trigger if trigger.timed else ChangeBased()
        name = destination_id(group, constants, select, asked, trigger.phase_ms, DigestClause(), "shared")
        partition = partition_of(name.encode(), self.settings.results.partitions)
        return Destination(
            name, self._stream.stream_id, group, select, constants, "shared", partition, trigger,
            word="shared",
        )  # fmt: skip

    def create(self, triggers: Sequence[TriggerSpec], expire_ms: int | None = None) -> None:
        """Have one CQ for each trigger, the constant being its number."""
        parts = (self._query.plan, self._query.select)
        assert isinstance(self._query, CompiledQuery)
        for first in range(0, len(triggers), _UNIT):
            chunk = range(first, min(first + _UNIT, len(triggers)))
            places = [self.destination(number, triggers[number]) for number in chunk]
            self.working.load((CqKey("bench", f"c{number}") for number in chunk), places)
            for number, place in zip(chunk, places, strict=True):
                cq = Cq(f"c{number}", CqText.cut(""), place.destination_id, self.now_ms, 0, None, expire_ms)
                self.working.put(CqKey("bench", cq.name), cq, place, *parts)
            self._commit()
            self.timers.step()

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
        body = json.dumps({"batch": 1, "offsets": {"0": self._offset, "1": 0}})
        self._evaluator.set(self.settings.key("committed", self._stream.stream_id), body)

    def _write(
        self, partition: int, numbers: list[int], first: int, stores: Sequence[tuple[bytes, int]], times: Sequence[int]
    ) -> None:
        ids = np.frombuffer(b"".join(stores[number][0] for number in numbers), np.uint8).reshape(-1, 12)
        places = np.array(numbers)
        body = pack_pending(
            self._stream.stream_id,
            (self._epoch, self.working.versions[self._stream.stream_id]),
            ids,
            (np.zeros(len(numbers), np.int32), places + first, np.array([times[number] for number in numbers])),
            np.arange(len(numbers), dtype=np.int32),
            [b'{"k":%d}' % number for number in numbers],
        )
        self._producer.produce(self.settings.topic("pending"), body, partition=partition)

    def stores(self, numbers: Iterable[int], trigger: TriggerSpec) -> list[tuple[bytes, int]]:
        """Return the stores of those constants, with their partitions."""
        feeds = (feed_of(self.destination(number, trigger)) for number in numbers)
        return [(store_key(feed.destination_id), feed.partition) for feed in feeds]

    def look_after(self) -> bool:
        """Do what the gateway does a few times a second, and return whether a CQ or a destination went."""
        self.working.begin()
        gone = self._lifetimes.step(self.now_ms)
        if gone:
            self._commands.commit({}, [], {}, self.now_ms)
        self.working.begin()
        records, changes = self._ends.step(self.now_ms, self._epoch)
        if records or changes:
            self._statements.registry.changes += changes
            self._commands.commit({}, records, {}, self.now_ms)
        return gone or bool(records or changes)
