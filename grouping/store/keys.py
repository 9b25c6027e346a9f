"""Every key of Redis, as a table: name, pattern, type, writer, readers and content.

*Gateway* and *evaluator* are the two programs; *workers* are the worker processes of the evaluator. The types of values
that both programs read are in this room, most of them in `notes.py` and `constant_table.py`. The types that only the
gateway reads are in `gateway/state` and `gateway/timers`. If Redis has lost data, the gateway fills its own keys again
from Kafka, except leases. Notes of the evaluator and its workers, such as statistics, counts and quarantines, cannot be
filled again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, Self, TypeVar, overload

from grouping.model.ids import DestinationId, StreamId, Subscriber
from grouping.settings.settings import Settings

__all__ = ["FieldHash", "RedisKey", "RedisKeys", "LeaseTaker", "role_title"]

LeaseTaker = Literal["gateway", "evaluator"]
"""The programs that take a lease."""

FieldHash = Literal[
    "cursors", "dropped-tables", "ends", "leaving", "pauses", "quotas", "secrets", "tables", "topic-founders", "views"
]
"""The hashes in which a unit of work of the gateway sets and removes single fields."""

RedisType = Literal["string", "hash", "list", "set", "sorted set"]
ProgramName = Literal["", "gateway", "evaluator", "workers", "all"]
_Name = TypeVar("_Name")


@dataclass(frozen=True)
class RedisKey:
    """A row of the table: a key of Redis, or all keys of a pattern."""

    pattern: str
    """The key after the prefix; ``{/evaluator}`` is a slash and a name, or nothing for the evaluator without a name."""
    type: RedisType
    writer: ProgramName
    readers: ProgramName
    """The programs that read the key, in addition to its writer."""
    content: str
    """The content of the key: for a hash as field → value, for a sorted set as member → score."""
    kept: bool = False
    """Whether the key stays when the gateway fills Redis again from Kafka."""


class _Single(RedisKey):
    """A single key."""

    @overload
    def __get__(self, keys: None, kind: object) -> Self: ...
    @overload
    def __get__(self, keys: RedisKeys, kind: object) -> str: ...
    def __get__(self, keys: RedisKeys | None, kind: object) -> Self | str:
        return self if keys is None else f"{keys.start}:{self.pattern}"


class _Each(RedisKey, Generic[_Name]):
    """A key for each named thing, such as a stream or subscriber."""

    @overload
    def __get__(self, keys: None, kind: object) -> Self: ...
    @overload
    def __get__(self, keys: RedisKeys, kind: object) -> Callable[[_Name], str]: ...
    def __get__(self, keys: RedisKeys | None, kind: object) -> Self | Callable[[_Name], str]:
        if keys is None:
            return self
        before, _, rest = self.pattern.partition("{")
        before, slash, after = f"{keys.start}:{before}", "/" * rest.startswith("/"), rest.partition("}")[2]
        return lambda name: f"{before}{slash if name else ''}{name}{after}"


class _OfStream(_Each[StreamId]):
    """A key for each stream. The key is removed when its stream is dropped."""


# fmt: off
@dataclass(frozen=True, slots=True)
class RedisKeys:
    """The keys of a gateway, and of its evaluators.

    Some patterns have words of earlier versions, such as ``founders`` for `sole_users`, ``parts`` for `dependencies`,
    and ``settled-ticks`` for `progress`. A pattern must not change, since Redis has keys with it.

    Example:
        >>> RedisKeys("cq").version, RedisKeys("cq").cqs("alice")
        ('cq:version', 'cq:cqs:alice')
        >>> RedisKeys.version.type, RedisKeys.version.writer
        ('hash', 'gateway')
    """

    start: str
    """The beginning of all keys, without the colon."""

    # -- who may write, and whether tables may be read: `role` is from `role_title` --
    lease = _Each[str]("lease:{role}", "string", "all", "all", "``host/pid/nonce``; lapses", kept=True)
    fence = _Each[str]("lease:{role}:fence", "string", "all", "all",
                       "the lease's text without expiry: its last holder, whose writes check this key", kept=True)
    redis_id = _Single("lease:redis-id", "string", "gateway", "", "id of this Redis and of its replicas", kept=True)
    role_note = _Each[str]("told:{role}", "string", "all", "all", "`RoleNote`, a role's report on itself; lapses")
    epoch = _Single("epoch", "string", "gateway", "all",
                    "`EpochNote`: the epoch, and the run of the Redis server for which the gateway has confirmed that "
                    "the constant tables are complete")
    doubted = _Single("doubted", "string", "gateway", "",
                      "present when the gateway died of its own fault: the next gateway fills Redis anew")
    compiled = _Single("compiled", "string", "gateway", "",
                       "the revision of the compiler at the last finished pass over all CQs (gateway/state/cq_pass.py)")

    # -- how far Redis and Kafka agree --
    journal = _Single("journal", "string", "gateway", "", "`Journal`: the last unit of work's records for Kafka")
    settled = _Single("settled", "string", "gateway", "", "number of the last journal that is on Kafka")
    position = _Single("position", "string", "gateway", "",
                       "`CatalogPosition`: the offset up to which Redis has the records of `cq.catalog`, and the "
                       "format of the catalog")
    commands_read = _Single("commands-read", "string", "gateway", "",
                            "`CommandsRead`: how far `cq.commands` was carried out")
    commands_in_hand = _Single("commands-in-hand", "string", "gateway", "",
                               "`CommandsInHand`: the commands of the unit of work under way; if the gateway dies now, "
                               "one of them may be the cause", kept=True)
    replies_read = _Each[int]("replies-read:{partition}", "string", "gateway", "",
                              "the offset up to which the replies of a partition of `cq.replies` are noted in `ids`")
    ids = _Each[int]("ids:{generation}", "hash", "gateway", "",
                     "hashed command id → ``partition/offset`` of its first reply; lapses")

    # -- streams and their constant tables --
    streams = _Single("streams", "hash", "gateway", "all", "stream id → `Stream`")
    version = _Single("version", "hash", "gateway", "all",
                      "stream id → version of its constant tables; and `VERSIONS_MARK`")
    segments = _OfStream("segments:{stream}", "hash", "gateway", "workers", "versions → segment (segment_log.py)")
    groups = _OfStream("groups:{stream}", "hash", "gateway", "all", "group id → `GroupPlan`")
    selects = _OfStream("selects:{stream}", "hash", "gateway", "all", "id of a SELECT list → `SelectList`")
    texts = _OfStream("texts:{stream}", "hash", "gateway", "", "id of a template → `TextTemplate`")
    dependencies = _OfStream("parts:{stream}", "hash", "gateway", "",
                             "name of a dependency (gateway/model/dependencies.py) → number of CQs that need it")
    sole_users = _OfStream("founders:{stream}", "hash", "gateway", "all",
                           "id of a group or SELECT list → its sole user (quarantine.py)")
    unused = _OfStream("unused:{stream}", "sorted set", "gateway", "",
                       "definition without CQs → the version from which on no CQ uses it")

    # -- tables and views --
    tables = _Single("tables", "hash", "gateway", "all", "table id → `Table`")
    dropped_tables = _Single("dropped-tables", "hash", "gateway", "all",
                             "table id → `DroppedTable`, while micro-batches may join the table")
    views = _Single("views", "hash", "gateway", "", "folded name → `View`")
    quotas = _Single("quotas", "hash", "gateway", "", "subscriber → `Quota`")
    topic_founders = _Single("topic-founders", "hash", "gateway", "",
                             "dedicated destination, or group with virtual destinations → the subscriber for whom the "
                             "topic was made")
    pauses = _Single("pauses", "hash", "gateway", "workers", "``<stream>/<group>`` → `GroupPause`")
    table_pins = _OfStream("table-pins:{stream}", "hash", "workers", "all",
                           "micro-batch under way → the offsets of tables that it sees", kept=True)
    table_letters = _Each[str]("table-letters:{table}", "hash", "workers", "",
                               "partition → offset: the dead letters of all records before it are written", kept=True)
    letters_writer = _Each[str]("letters-writer:{table}", "string", "workers", "",
                                "the worker in charge of a table's dead letters; lapses")
    held = _OfStream("held:{stream}", "string", "gateway", "workers",
                     "present while a query with a snapshot begins, so that no micro-batch is pinned; lapses",
                     kept=True)
    snapshots = _Single("snapshots", "hash", "gateway", "all",
                        "destination → `SnapshotNote` of a snapshot that is still to be written")
    snapshots_made = _Single("snapshots-made", "hash", "workers", "gateway",
                             "destination → `SnapshotNote` of a snapshot that was written or given up; removed when "
                             "the catalog has a record of this")
    snapshot_tries = _Single("snapshot-tries", "hash", "workers", "",
                             "part of a snapshot, or order of digests of rows → how often a worker has begun it")
    snapshot_parts = _Each[str]("snapshot-parts:{destination}", "hash", "workers", "",
                                "written part of an unfinished snapshot → its number of rows; lapses")
    snapshot_writer = _Each[str]("snapshot-writer:{part}", "string", "workers", "",
                                 "the worker that writes a part of a snapshot; lapses")
    replicas = _Each[str]("replicas:{source}", "hash", "workers", "gateway", "worker → `ReplicaNote`; lapses")

    # -- CQs and destinations (gateway/model/stored_form.py) --
    cqs = _Each[Subscriber]("cqs:{subscriber}", "hash", "gateway", "", "folded name → CQ")
    subscribers = _Single("subscribers", "hash", "gateway", "", "subscriber → number of its CQs, to notice lost CQs")
    expiries = _Single("expiries", "sorted set", "gateway", "", "CQ with EXPIRE → this time")
    timed = _Each[Subscriber]("timed:{subscriber}", "sorted set", "gateway", "",
                              "names of timer-based CQs, all with the same score")
    destinations = _Single("destinations", "hash", "gateway", "", "raw id → destination with its members")
    dedicated = _Single("dedicated", "set", "gateway", "", "ids of the dedicated destinations")
    numbers = _Single("numbers", "hash", "gateway", "", "stream id → the lowest number that no destination ever had")
    free = _OfStream("free:{stream}", "set", "gateway", "", "numbers of ended destinations, free for new destinations")
    match_totals = _OfStream("match-totals:{stream}", "hash", "gateway", "",
                             "block of destination numbers → for each of these destinations, how many matches it had, "
                             "and when the last (gateway/state/match_counts.py)")
    leaving = _Single("leaving", "hash", "gateway", "", "id of a destination → `Departures`")
    ends = _Single("ends", "hash", "gateway", "", "batch → `EndNotice`s")
    secrets = _Single("secrets", "hash", "gateway", "",
                      "name → secret; the secret ``members`` is the key of members' tokens")

    # -- timers --
    timers = _Each[StreamId]("timers:{stream}", "sorted set", "gateway", "",
                             "timer-based destination → its next tick; 0: a look is due")
    readers = _Each[DestinationId]("readers:{store}", "set", "gateway", "",
                                   "timer-based destinations that read a store of matches")
    cursors = _Single("cursors", "hash", "gateway", "", "incarnation of a destination → `Cursor`")
    ticks_read = _Single("ticks-read", "string", "gateway", "",
                         "the offset up to which Redis has the records of `cq.ticks`")
    progress = _Single("settled-ticks", "hash", "gateway", "", "stream id → `ProgressNote`")

    # -- evaluation --
    pins = _OfStream("pins:{stream}", "hash", "workers", "gateway", "micro-batch under way → `Pin`", kept=True)
    committed = _OfStream("committed:{stream}", "string", "evaluator", "gateway",
                          "`CommittedNote`: how far events are evaluated", kept=True)
    next_batch = _OfStream("evaluator:next-batch:{stream}", "string", "evaluator", "",
                           "the first uncommitted micro-batch: earlier ones are no longer pinned", kept=True)
    checkpoint = _OfStream("evaluator:checkpoint:{stream}", "string", "evaluator", "",
                           "the name of the checkpoint with which the stream was evaluated last", kept=True)
    owner = _Each[StreamId]("evaluator:owner:{stream}", "string", "evaluator", "gateway",
                            "`Owner`: the evaluator that has the stream; writes about the stream check this key; "
                            "lapses after DROP STREAM", kept=True)
    statistics = _OfStream("statistics:{stream}", "hash", "workers", "gateway",
                           "source partition → `PartitionStatistics`")
    states = _OfStream("states:{stream}", "hash", "workers", "gateway", "source partition → `PartitionStates`")
    key_samples = _OfStream("key-samples:{stream}", "hash", "workers", "gateway",
                            "source partition → hashes of some of its keys, to find keys in two partitions")
    matches = _OfStream("matches:{stream}", "list", "workers", "gateway",
                        "`MatchTally`, one for each task; the gateway takes them")
    counted = _OfStream("counted:{stream}", "hash", "workers", "",
                        "source partition → the latest micro-batch that was counted in `matches` and `output`")
    output = _OfStream("output:{stream}", "hash", "workers", "gateway",
                       "the fields of `Output`; ``watermark/<partition>`` → `PartitionWatermark`")
    misfits = _OfStream("misfits:{stream}", "hash", "workers", "gateway",
                        "column of a lenient stream → number of values that did not fit")
    first_records = _OfStream("first-records:{stream}", "hash", "workers", "gateway",
                              "the fields of `FirstRecords`: dead letters among a stream's first records", kept=True)
    schema_id = _OfStream("schema-id:{stream}", "string", "workers", "gateway",
                          "the id of the schema that the stream's first record named", kept=True)
    schemas = _OfStream("schemas:{stream}", "hash", "workers", "",
                        "id → schema of a registry; ``unknown/<partition>`` → `UnknownIds`", kept=True)
    headers_read = _OfStream("headers-read:{stream}", "string", "workers", "evaluator",
                             "present when a query of the stream reads `_headers`")
    clocked = _OfStream("clocked:{stream}", "string", "workers", "evaluator",
                        "present when the stream has an event-time query, such as one with EMIT ON SILENCE")
    quarantine = _OfStream("quarantine:{stream}", "hash", "workers", "all", "work unit → `Quarantine`")
    trial = _OfStream("trial:{stream}", "string", "evaluator", "", "`CulpritSearch` at the next batch (quarantine.py)")
    in_hand = _OfStream("in-hand:{stream}", "hash", "workers", "evaluator", "task → the work units that it evaluates")
    dead_letters = _Single("dead-letters", "hash", "workers", "gateway", "code → number of dead letters")
    digest_job = _Single("evaluator:digest-job", "string", "all", "all",
                         "`Job`: digests that a Spark job makes; both programs write in turns", kept=True)
    executors = _Each[str]("evaluator:executors{/evaluator}", "string", "evaluator", "gateway",
                           "`ExecutorsNote`: the executors of an evaluator's tasks", kept=True)
    lane_hand = _Each[str]("evaluator:lane-hand{/evaluator}", "hash", "workers", "evaluator",
                           "task of the lane → its micro-batch, and `Stream.source_id` of the stream that it evaluates",
                           kept=True)
    lane_seconds = _Each[str]("evaluator:lane-seconds{/evaluator}", "hash", "workers", "evaluator",
                              "`Stream.source_id` → seconds of evaluation in the lane", kept=True)
    # fmt: on

    @classmethod
    def of(cls, settings: Settings) -> RedisKeys:
        """Return the keys under a gateway's prefix."""
        return cls(settings.prefix.rstrip("."))

    @classmethod
    def table(cls) -> dict[str, RedisKey]:
        """Return all rows by their names."""
        return {name: row for name, row in vars(cls).items() if isinstance(row, RedisKey)}

    @property
    def everything(self) -> str:
        """The pattern of all keys."""
        return f"{self.start}:*"

    def field_hash(self, name: FieldHash) -> str:
        """Return the key of a hash in which a unit of work sets single fields."""
        return f"{self.start}:{name}"

    def of_stream(self, stream_id: StreamId) -> list[str]:
        """Return the keys that are removed when a stream is dropped."""
        return [row.__get__(self, None)(stream_id) for row in self.table().values() if isinstance(row, _OfStream)]

    def definition_hashes(self, stream_id: StreamId) -> tuple[str, ...]:
        """Return the hashes with the definitions (plans, SELECT lists, templates) that CQs of a stream share."""
        return self.groups(stream_id), self.selects(stream_id), self.texts(stream_id)

    @property
    def kept_by_wipe(self) -> tuple[bytes, ...]:
        """The beginnings of the keys with `kept`: leases, and notes that are needed later and not in the catalog."""
        words = {row.pattern.partition(":")[0] for row in self.table().values() if row.kept}
        return tuple(f"{self.start}:{word}".encode() for word in sorted(words))


def role_title(role: LeaseTaker, name: str = "") -> str:
    """Return the displayed name of a role; for an evaluator with a name, the name is added.

    Example:
        >>> role_title("evaluator"), role_title("evaluator", "fast")
        ('evaluator', 'evaluator/fast')
    """
    return f"{role}/{name}" if name else role
