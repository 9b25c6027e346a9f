"""Every key of Redis: this module and `evaluator_keys.py` make the names, and say of each its content and who uses it.

*Gateway* and *evaluator* are the two programs; workers are the evaluator's. Forms that both know are in `notes.py` and
`constant_table.py`, the gateway's own in `gateway/state` and `gateway/timers`. All keys but the leases and the
evaluator's notes for itself can be filled anew from Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grouping.model.ids import DestinationId, StreamId, Subscriber
from grouping.settings.settings import Settings
from grouping.store.evaluator_keys import EvaluatorKeys

__all__ = ["FieldHash", "RedisKeys", "Role", "role_title"]

Role = Literal["gateway", "evaluator"]
"""The programs that take a lease."""

FieldHash = Literal[
    "cursors", "dropped-tables", "ends", "leaving", "pauses", "quotas", "secrets", "tables", "topic-founders", "views"
]
"""The hashes of which a unit of work sets and removes single fields."""


@dataclass(frozen=True, slots=True)
class RedisKeys(EvaluatorKeys):
    """The keys of a gateway, and of its evaluator.

    Example:
        >>> RedisKeys("cq").version, RedisKeys("cq").cqs("alice")
        ('cq:version', 'cq:cqs:alice')
    """

    @classmethod
    def of(cls, settings: Settings) -> RedisKeys:
        """Return the keys under a gateway's prefix."""
        return cls(settings.prefix.rstrip("."))

    @property
    def everything(self) -> str:
        """The pattern of all keys."""
        return f"{self.start}:*"

    # -- who may write, and whether tables may be read -----------------------------------------------------------------

    def lease(self, role: Role, name: str = "") -> str:
        """Text ``host/pid/nonce``, which lapses: who is the gateway, or an evaluator. Each role writes its own."""
        return f"{self.start}:lease:{role_title(role, name)}"

    def fence(self, role: Role, name: str = "") -> str:
        """The same text without expiry: who took the lease last; watched by its holder's writes outside streams."""
        return f"{self.lease(role, name)}:fence"

    @property
    def redis_id(self) -> str:
        """Text: the id of this Redis and of its replicas; made by the first gateway there. The gateway's own."""
        return f"{self.start}:lease:redis-id"

    def role_note(self, role: Role, name: str = "") -> str:
        """`RoleNote` (role_notes.py), which lapses: a role's report on itself. Each role writes its own."""
        return f"{self.start}:told:{role_title(role, name)}"

    @property
    def epoch(self) -> str:
        """`EpochNote` (notes.py): for which run of the server the tables are confirmed. By the gateway, for all."""
        return f"{self.start}:epoch"

    @property
    def doubted(self) -> str:
        """There when the gateway died of a fault of ours: the next one fills Redis anew."""
        return f"{self.start}:doubted"

    @property
    def compiled(self) -> str:
        """Number: the revision of the compiler that all stored CQs were compared with. The gateway's own."""
        return f"{self.start}:compiled"

    # -- how far Redis and Kafka agree ---------------------------------------------------------------------------------

    @property
    def journal(self) -> str:
        """`Journal` (gateway/state/journal.py): the last unit of work's records for Kafka. The gateway's own."""
        return f"{self.start}:journal"

    @property
    def settled(self) -> str:
        """Number of the last journal that is on Kafka. The gateway's own."""
        return f"{self.start}:settled"

    @property
    def position(self) -> str:
        """`Position` (gateway/state/journal.py): how far Redis has `cq.catalog`, in which format. The gateway's own."""
        return f"{self.start}:position"

    @property
    def commands_read(self) -> str:
        """`commands_read` (gateway/state/journal.py): how far `cq.commands` was carried out. The gateway's own."""
        return f"{self.start}:commands-read"

    @property
    def commands_in_hand(self) -> str:
        """`CommandsInHand` (gateway/state/commands_read.py): commands that may end the gateway. The gateway's own."""
        return f"{self.start}:commands-in-hand"

    def replies_read(self, partition: int) -> str:
        """Number: how far replies of a partition of `cq.replies` are among `ids`. The gateway's own."""
        return f"{self.start}:replies-read:{partition}"

    def ids(self, generation: int) -> str:
        """Hash of hashed command ids to ``partition/offset`` of their first replies; lapses. The gateway's own."""
        return f"{self.start}:ids:{generation}"

    # -- streams and their constant tables -----------------------------------------------------------------------------

    @property
    def streams(self) -> str:
        """Hash of stream ids to `Stream` as JSON. By the gateway, for both."""
        return f"{self.start}:streams"

    @property
    def version(self) -> str:
        """Hash of stream ids to the versions of their tables, and `VERSIONS_MARK`. By the gateway, for both."""
        return f"{self.start}:version"

    def segments(self, stream_id: StreamId) -> str:
        """Hash of versions to segments of a stream's tables (segment_log.py). By the gateway, for workers."""
        return f"{self.start}:segments:{stream_id}"

    def groups(self, stream_id: StreamId) -> str:
        """Hash of group ids to `GroupPlan` as JSON. By the gateway, for both."""
        return f"{self.start}:groups:{stream_id}"

    def selects(self, stream_id: StreamId) -> str:
        """Hash of SELECT lists' ids to `SelectList` as JSON. By the gateway, for both."""
        return f"{self.start}:selects:{stream_id}"

    def texts(self, stream_id: StreamId) -> str:
        """Hash of templates' ids to `TextTemplate` as JSON. The gateway's own."""
        return f"{self.start}:texts:{stream_id}"

    def parts(self, stream_id: StreamId) -> str:
        """Hash of the ids of all these to how many CQs use them. The gateway's own."""
        return f"{self.start}:parts:{stream_id}"

    def sole_users(self, stream_id: StreamId) -> str:
        """Hash of ids of groups and SELECT lists to their sole users (quarantine.py). By the gateway, for both."""
        return f"{self.start}:founders:{stream_id}"

    def unused(self, stream_id: StreamId) -> str:
        """Sorted set of definitions without CQs, by the version from which on none uses them. The gateway's own."""
        return f"{self.start}:unused:{stream_id}"

    # -- tables and views ----------------------------------------------------------------------------------------------

    @property
    def tables(self) -> str:
        """Hash of table ids to `Table` as JSON. By the gateway, for both."""
        return f"{self.start}:tables"

    @property
    def dropped_tables(self) -> str:
        """Hash of table ids to `DroppedTable` as JSON, while batches may join them. By the gateway, for both."""
        return f"{self.start}:dropped-tables"

    @property
    def views(self) -> str:
        """Hash of folded names to `View` as JSON. The gateway's own."""
        return f"{self.start}:views"

    @property
    def quotas(self) -> str:
        """Hash of subscribers to `Quota` as JSON. The gateway's own."""
        return f"{self.start}:quotas"

    @property
    def topic_founders(self) -> str:
        """Hash of dedicated destinations, and of groups with virtual ones, to the subscriber who had the topic made.

        The gateway's own.
        """
        return f"{self.start}:topic-founders"

    @property
    def pauses(self) -> str:
        """Hash of ``<stream>/<group>`` to `GroupPause` as JSON. By the gateway; workers read which groups there are."""
        return f"{self.start}:pauses"

    def table_pins(self, stream_id: StreamId) -> str:
        """Hash of micro-batches under way to the offsets of tables that they see, as JSON. By workers."""
        return f"{self.start}:table-pins:{stream_id}"

    def table_letters(self, table_id: str) -> str:
        """Hash of partitions to offsets: dead letters of a table's records before these are written. By workers."""
        return f"{self.start}:table-letters:{table_id}"

    def letters_writer(self, table_id: str) -> str:
        """Text that lapses: the worker in charge of a table's dead letters. By workers."""
        return f"{self.start}:letters-writer:{table_id}"

    def replicas(self, source_id: str) -> str:
        """Hash of workers to `ReplicaNote` (notes.py) of a table's rows; it lapses. By workers; the gateway reads."""
        return f"{self.start}:replicas:{source_id}"

    # -- CQs and destinations, the gateway's own -----------------------------------------------------------------------

    def cqs(self, subscriber: Subscriber) -> str:
        """Hash of folded names to CQs (gateway/model/stored_form.py)."""
        return f"{self.start}:cqs:{subscriber}"

    @property
    def subscribers(self) -> str:
        """Hash of subscribers to how many CQs they have, to notice lost CQs."""
        return f"{self.start}:subscribers"

    @property
    def expiries(self) -> str:
        """Sorted set of CQs with EXPIRE, by that time."""
        return f"{self.start}:expiries"

    def timed(self, subscriber: Subscriber) -> str:
        """Sorted set of the names of timer-based CQs, all of one score."""
        return f"{self.start}:timed:{subscriber}"

    @property
    def destinations(self) -> str:
        """Hash of raw ids to destinations with their members (gateway/model/stored_form.py)."""
        return f"{self.start}:destinations"

    @property
    def dedicated(self) -> str:
        """Set of the dedicated destinations' ids."""
        return f"{self.start}:dedicated"

    @property
    def numbers(self) -> str:
        """Hash of stream ids to the first number that no destination ever had."""
        return f"{self.start}:numbers"

    def free(self, stream_id: StreamId) -> str:
        """Set of the numbers of destinations that are gone."""
        return f"{self.start}:free:{stream_id}"

    def match_totals(self, stream_id: StreamId) -> str:
        """Hash of blocks of numbers to matches by destination (gateway/state/match_counts.py)."""
        return f"{self.start}:match-totals:{stream_id}"

    @property
    def leaving(self) -> str:
        """Hash of destinations' ids to `Departures` (gateway/model/departures.py)."""
        return f"{self.start}:leaving"

    @property
    def ends(self) -> str:
        """Hash of batches to `EndNotice`s (gateway/model/records.py)."""
        return f"{self.start}:ends"

    @property
    def secrets(self) -> str:
        """Hash of names to secrets; ``members`` is the key of members' tokens."""
        return f"{self.start}:secrets"

    def field_hash(self, name: FieldHash) -> str:
        """Return the key of a hash of which a unit of work sets fields."""
        return f"{self.start}:{name}"

    # -- timers, the gateway's own -------------------------------------------------------------------------------------

    def timers(self, stream_id: StreamId) -> str:
        """Sorted set of timer-based destinations by their next ticks; 0: look at it."""
        return f"{self.start}:timers:{stream_id}"

    def readers(self, store_id: DestinationId) -> str:
        """Set of the timer-based destinations that read a store of matches."""
        return f"{self.start}:readers:{store_id}"

    @property
    def cursors(self) -> str:
        """Hash of incarnations of destinations to `Cursor` (grouping/digests/cursor.py)."""
        return f"{self.start}:cursors"

    @property
    def ticks_read(self) -> str:
        """Number: how far Redis has `cq.ticks`."""
        return f"{self.start}:ticks-read"

    @property
    def progress(self) -> str:
        """Hash of stream ids to `ProgressNote` (gateway/state/timer_state.py)."""
        return f"{self.start}:settled-ticks"

    # -- all of a kind -------------------------------------------------------------------------------------------------

    def of_stream(self, stream_id: StreamId) -> tuple[str, ...]:
        """Return the keys that go with their stream."""
        makers = (
            self.segments,
            self.groups,
            self.selects,
            self.texts,
            self.parts,
            self.sole_users,
            self.unused,
            self.free,
            self.matches,
            self.counted,
            self.output,
            self.misfits,
            self.match_totals,
            self.pins,
            self.table_pins,
            self.committed,
            self.next_batch,
            self.checkpoint,
            self.owner,
            self.statistics,
            self.quarantine,
            self.trial,
            self.in_hand,
        )
        return tuple(make(stream_id) for make in makers)

    def definition_hashes(self, stream_id: StreamId) -> tuple[str, ...]:
        """Return the hashes of definitions that many CQs of a stream share."""
        return self.groups(stream_id), self.selects(stream_id), self.texts(stream_id)

    @property
    def kept_by_wipe(self) -> tuple[bytes, ...]:
        """The prefixes of keys that stay when Redis is filled anew: leases, and notes of work under way."""
        return tuple(
            f"{self.start}:{name}".encode()
            for name in ("lease", "commands-in-hand", "pins", "table-pins", "table-letters", "committed", "evaluator")
        )


def role_title(role: Role, name: str = "") -> str:
    """Return the name of a role for people: for a named evaluator with its name.

    Example:
        >>> role_title("evaluator"), role_title("evaluator", "fast")
        ('evaluator', 'evaluator/fast')
    """
    return f"{role}/{name}" if name else role
