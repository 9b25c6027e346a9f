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
                       "the same text without expiry: the last holder of the lease, watched by its writes", kept=True)
    redis_id = _Single("lease:redis-id", "string", "gateway", "", "id of this Redis and of its replicas", kept=True)
    role_note = _Each[str]("told:{role}", "string", "all", "all", "`RoleNote`, a role's report on itself; lapses")
    epoch = _Single("epoch", "string", "gateway", "all", "`EpochNote`: the run of Redis for which tables are confirmed")
    doubted = _Single("doubted", "string", "gateway", "",
                      "present when the gateway died of its own fault: the next gateway fills Redis anew")
    compiled = _Single("compiled", "string", "gateway", "", "the compiler's revision that stored CQs were compared to")

    # -- how far Redis and Kafka agree --
    journal = _Single("journal", "string", "gateway", "", "`Journal`: the last unit of work's records for Kafka")
    settled = _Single("settled", "string", "gateway", "", "number of the last journal that is on Kafka")
    position = _Single("position", "string", "gateway", "",
                       "`CatalogPosition`: how far Redis has `cq.catalog`, its format")
    commands_read = _Single("commands-read", "string", "gateway", "",
                            "`CommandsRead`: how far `cq.commands` was carried out")
    commands_in_hand = _Single("commands-in-hand", "string", "gateway", "",
                               "`CommandsInHand`: commands that may end the gateway", kept=True)
    replies_read = _Each[int]("replies-read:{partition}", "string", "gateway", "",
                              "how far replies of a partition of `cq.replies` are among `ids`")
    ids = _Each[int]("ids:{generation}", "hash", "gateway", "",
                     "hashed command ids to ``partition/offset`` of their first replies; lapses")

    # -- streams and their constant tables --
    streams = _Single("streams", "hash", "gateway", "all", "stream ids to `Stream`")
    version = _Single("version", "hash", "gateway", "all", "stream ids to versions of tables, and `VERSIONS_MARK`")
    segments = _OfStream("segments:{stream}", "hash", "gateway", "workers", "versions to segments (segment_log.py)")
    groups = _OfStream("groups:{stream}", "hash", "gateway", "all", "group ids to `GroupPlan`")
    selects = _OfStream("selects:{stream}", "hash", "gateway", "all", "ids of SELECT lists to `SelectList`")
    texts = _OfStream("texts:{stream}", "hash", "gateway", "", "ids of templates to `TextTemplate`")
    parts = _OfStream("parts:{stream}", "hash", "gateway", "", "ids of all these to the number of CQs that use them")
    sole_users = _OfStream("founders:{stream}", "hash", "gateway", "all",
                           "ids of groups and SELECT lists to their sole users (quarantine.py)")
    unused = _OfStream("unused:{stream}", "sorted set", "gateway", "",
                       "definitions without CQs, by the version from which on no CQ uses them")

    # -- tables and views --
    tables = _Single("tables", "hash", "gateway", "all", "table ids to `Table`")
    dropped_tables = _Single("dropped-tables", "hash", "gateway", "all",
                             "table ids to `DroppedTable`, while batches may join them")
    views = _Single("views", "hash", "gateway", "", "folded names to `View`")
    quotas = _Single("quotas", "hash", "gateway", "", "subscribers to `Quota`")
    topic_founders = _Single("topic-founders", "hash", "gateway", "",
                             "dedicated destinations, and groups with virtual ones, to who had the topic made")
    pauses = _Single("pauses", "hash", "gateway", "workers", "``<stream>/<group>`` to `GroupPause`")
    table_pins = _OfStream("table-pins:{stream}", "hash", "workers", "all",
                           "micro-batches under way to the offsets of tables that they see", kept=True)
    table_letters = _Each[str]("table-letters:{table}", "hash", "workers", "",
                               "partitions to offsets: dead letters of records before these are written", kept=True)
    letters_writer = _Each[str]("letters-writer:{table}", "string", "workers", "",
                                "the worker in charge of a table's dead letters; lapses")
    held = _OfStream("held:{stream}", "string", "gateway", "workers",
                     "present while a query with a snapshot begins: no micro-batch is pinned; lapses", kept=True)
    snapshots = _Single("snapshots", "hash", "gateway", "all", "destinations to `SnapshotNote`s that are owed")
    snapshots_made = _Single("snapshots-made", "hash", "workers", "gateway",
                             "destinations to `SnapshotNote`s that are written, until the catalog says so")
    snapshot_tries = _Single("snapshot-tries", "hash", "workers", "",
                             "parts of snapshots to how often a worker has begun them")
    snapshot_parts = _Each[str]("snapshot-parts:{destination}", "hash", "workers", "",
                                "parts of an owed snapshot that are written to their rows' number; lapses")
    snapshot_writer = _Each[str]("snapshot-writer:{part}", "string", "workers", "",
                                 "the worker that writes a part of a snapshot; lapses")
    replicas = _Each[str]("replicas:{source}", "hash", "workers", "gateway", "workers to `ReplicaNote`; lapses")

    # -- CQs and destinations (gateway/model/stored_form.py) --
    cqs = _Each[Subscriber]("cqs:{subscriber}", "hash", "gateway", "", "folded names to CQs")
    subscribers = _Single("subscribers", "hash", "gateway", "", "subscribers to their CQs' number, to notice lost CQs")
    expiries = _Single("expiries", "sorted set", "gateway", "", "CQs with EXPIRE, by that time")
    timed = _Each[Subscriber]("timed:{subscriber}", "sorted set", "gateway", "",
                              "names of timer-based CQs, all of the same score")
    destinations = _Single("destinations", "hash", "gateway", "", "raw ids to destinations with their members")
    dedicated = _Single("dedicated", "set", "gateway", "", "ids of the dedicated destinations")
    numbers = _Single("numbers", "hash", "gateway", "", "stream ids to the first number that no destination ever had")
    free = _OfStream("free:{stream}", "set", "gateway", "", "numbers of destinations that are gone")
    match_totals = _OfStream("match-totals:{stream}", "hash", "gateway", "",
                             "blocks of numbers to matches by destination (gateway/state/match_counts.py)")
    leaving = _Single("leaving", "hash", "gateway", "", "ids of destinations to `Departures`")
    ends = _Single("ends", "hash", "gateway", "", "batches to `EndNotice`s")
    secrets = _Single("secrets", "hash", "gateway", "", "names to secrets; ``members`` is the key of members' tokens")

    # -- timers --
    timers = _Each[StreamId]("timers:{stream}", "sorted set", "gateway", "",
                             "timer-based destinations by their next ticks; 0: a look is due")
    readers = _Each[DestinationId]("readers:{store}", "set", "gateway", "",
                                   "timer-based destinations that read a store of matches")
    cursors = _Single("cursors", "hash", "gateway", "", "incarnations of destinations to `Cursor`")
    ticks_read = _Single("ticks-read", "string", "gateway", "", "how far Redis has `cq.ticks`")
    progress = _Single("settled-ticks", "hash", "gateway", "", "stream ids to `ProgressNote`")

    # -- evaluation --
    pins = _OfStream("pins:{stream}", "hash", "workers", "gateway", "micro-batches under way to `Pin`", kept=True)
    committed = _OfStream("committed:{stream}", "string", "evaluator", "gateway",
                          "`CommittedNote`: how far events are evaluated", kept=True)
    next_batch = _OfStream("evaluator:next-batch:{stream}", "string", "evaluator", "",
                           "the first uncommitted micro-batch: earlier ones are no longer pinned", kept=True)
    checkpoint = _OfStream("evaluator:checkpoint:{stream}", "string", "evaluator", "",
                           "the checkpoint that the stream was evaluated by last", kept=True)
    owner = _Each[StreamId]("evaluator:owner:{stream}", "string", "evaluator", "gateway",
                            "`Owner`: the evaluator that has the stream, watched by all writes about the stream; "
                            "lapses after DROP STREAM", kept=True)
    statistics = _OfStream("statistics:{stream}", "hash", "workers", "gateway",
                           "source partitions to `PartitionStatistics`")
    states = _OfStream("states:{stream}", "hash", "workers", "gateway", "source partitions to `PartitionStates`")
    key_samples = _OfStream("key-samples:{stream}", "hash", "workers", "gateway",
                            "source partitions to hashes of some of their keys, to find keys in two partitions")
    matches = _OfStream("matches:{stream}", "list", "workers", "gateway",
                        "`MatchTally`, one for each task; the gateway takes them")
    counted = _OfStream("counted:{stream}", "hash", "workers", "",
                        "source partitions to the micro-batch that `matches` has last")
    output = _OfStream("output:{stream}", "hash", "workers", "gateway",
                       "the fields of `Output`; watermark/partition to `PartitionWatermark`")
    misfits = _OfStream("misfits:{stream}", "hash", "workers", "gateway",
                        "columns of a lenient stream to the number of values that did not fit")
    first_records = _OfStream("first-records:{stream}", "hash", "workers", "gateway",
                              "the fields of `FirstRecords`: dead letters among a stream's first records", kept=True)
    schema_id = _OfStream("schema-id:{stream}", "string", "workers", "gateway",
                          "the id of the schema that the stream's first record named", kept=True)
    schemas = _OfStream("schemas:{stream}", "hash", "workers", "",
                        "ids to schemas of a registry, partitions to `UnknownIds`", kept=True)
    headers_read = _OfStream("headers-read:{stream}", "string", "workers", "evaluator",
                             "present when a query of the stream reads `_headers`")
    clocked = _OfStream("clocked:{stream}", "string", "workers", "evaluator",
                        "present when the stream has an event-time query, as EMIT ON SILENCE does")
    quarantine = _OfStream("quarantine:{stream}", "hash", "workers", "all", "work units to `Quarantine`")
    trial = _OfStream("trial:{stream}", "string", "evaluator", "", "`CulpritSearch` at the next batch (quarantine.py)")
    in_hand = _OfStream("in-hand:{stream}", "hash", "workers", "evaluator", "tasks to the work units in hand")
    dead_letters = _Single("dead-letters", "hash", "workers", "gateway", "codes to the number of dead letters")
    digest_job = _Single("evaluator:digest-job", "string", "all", "all",
                         "`Job`: digests that a Spark job makes; both programs write in turns", kept=True)
    executors = _Each[str]("evaluator:executors{/evaluator}", "string", "evaluator", "gateway",
                           "`ExecutorsNote`: the executors of an evaluator's tasks", kept=True)
    lane_hand = _Each[str]("evaluator:lane-hand{/evaluator}", "hash", "workers", "evaluator",
                           "a lane's tasks to their micro-batch and the `Stream.source_id` in hand", kept=True)
    lane_seconds = _Each[str]("evaluator:lane-seconds{/evaluator}", "hash", "workers", "evaluator",
                              "`Stream.source_id` to seconds of evaluation in the lane", kept=True)
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
        """The beginnings of keys that stay when Redis is filled again: leases, and notes of work under way."""
        words = {row.pattern.partition(":")[0] for row in self.table().values() if row.kept}
        return tuple(f"{self.start}:{word}".encode() for word in sorted(words))


def role_title(role: LeaseTaker, name: str = "") -> str:
    """Return the displayed name of a role; for an evaluator with a name, the name is added.

    Example:
        >>> role_title("evaluator"), role_title("evaluator", "fast")
        ('evaluator', 'evaluator/fast')
    """
    return f"{role}/{name}" if name else role
