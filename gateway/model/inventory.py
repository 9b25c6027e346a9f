"""The inventory: streams, tables, views, and counts, which stay in memory from one unit of work to the next.

The unit under way changes the inventory immediately. After a failed unit, the inventory is read from Redis again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

from gateway.model.departures import Departures
from gateway.model.dependencies import DependencyCounts, DependencyKind, topic_kind
from gateway.model.group_pause import GroupPause
from gateway.model.names import Names
from gateway.model.quota import Quota
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, GroupId, StreamId, Subscriber
from grouping.model.table import DroppedTable, Table, View
from grouping.settings.limit_settings import LimitSettings

__all__ = ["Inventory"]

_NO_QUOTA = Quota()


class Inventory:
    """The part of the working copy that the gateway holds in memory."""

    def __init__(self) -> None:
        self.ending: dict[DestinationId, int] = {}
        """Destination with incarnations that have ended, but whose `cq.end` is not written yet → when the last of them
        ended, epoch milliseconds."""
        self.epoch = 0
        """The epoch that the gateway has last written to Redis (`WorkingCopy.confirm`).

        Evaluators read only constant tables of this epoch.
        """
        self.clear()

    def clear(self) -> None:
        """Forget everything but the ends and the epoch."""
        self.streams: dict[StreamId, Stream] = {}
        """Live streams by id."""
        self.tables: dict[str, Table] = {}
        """Live tables by id."""
        self.dropped_tables: dict[str, DroppedTable] = {}
        """Id → dropped table that micro-batches may still join."""
        self.views: dict[str, View] = {}
        """Live views by folded name."""
        self.quotas: dict[str, Quota] = {}
        """Subscriber → its own limits."""
        self.pauses: dict[StreamId, dict[GroupId, GroupPause]] = {}
        """Stream → groups that operators have paused."""
        self.versions: dict[StreamId, int] = {}
        """Stream → current version of its constant tables."""
        self.dependencies: dict[StreamId, DependencyCounts] = {}
        """Stream → number of CQs that need each group, SELECT list, template and view, and number of virtual CQs that
        need each group's topic."""
        self.sole_users: dict[StreamId, dict[str, Subscriber]] = {}
        """Stream → id of a group or SELECT list → the only subscriber whose CQs need it, or `SEVERAL`."""
        self.live_cqs: Counter[StreamId] = Counter()
        """Stream → number of live CQs."""
        self.dedicated: set[DestinationId] = set()
        """Live dedicated destinations."""
        self.topic_founders: dict[str, str] = {}
        """Dedicated destination, or group with virtual CQs → the subscriber who needed its topic first, and whose quota
        the topic counts against."""
        self.topic_shares: Counter[tuple[str, str]] = Counter()
        """Subscriber and kind, ``dedicated`` or ``virtual`` → number of topics in `topic_founders`."""
        self.leaving: dict[DestinationId, Departures] = {}
        """Destination → its departed members for whom some events still have to be evaluated."""
        self.vacant: Counter[StreamId] = Counter()
        """Stream → how many destinations in `leaving` have no members.

        Such a destination keeps its `Membership.number`.
        """
        self.next_numbers: dict[StreamId, int] = {}
        """Stream → the lowest number (`Membership.number`) that no destination has ever had."""
        self.free_numbers: dict[StreamId, list[int]] = {}
        """Stream → numbers of ended destinations, free for new destinations."""
        self.listed: dict[Subscriber, Names] = {}
        """Subscriber whose CQs were listed recently → the names of all its CQs, which each unit updates."""

    def found_topic(self, owner_id: str, subscriber: str) -> None:
        """Count a topic of results against a subscriber's quota.

        Args:
            owner_id: The dedicated destination of the topic, or the group whose virtual destinations share the topic.
            subscriber: The subscriber whose CQ needed the topic first.
        """
        self.topic_founders[owner_id] = subscriber
        self.topic_shares[subscriber, topic_kind(owner_id)] += 1

    def forget_topic(self, owner_id: str) -> None:
        """Subtract a deleted topic of results from the quota that it counts against."""
        if (subscriber := self.topic_founders.pop(owner_id, None)) is not None:
            self.topic_shares[subscriber, topic_kind(owner_id)] -= 1

    def limit(self, subscriber: str, name: str, limits: LimitSettings) -> int:
        """Return a subscriber's limit, by its name in SET QUOTA."""
        return self.quotas.get(subscriber, _NO_QUOTA).limit(name, limits)

    def groups(self, stream_id: StreamId) -> Mapping[GroupId, int]:
        """Return the live groups of a stream, each with its number of CQs."""
        return cast(Mapping[GroupId, int], self.users(stream_id, DependencyKind.GROUP))

    def virtual_groups(self, stream_id: StreamId) -> Mapping[GroupId, int]:
        """Return the groups of a stream with virtual CQs, each with the number of these CQs."""
        return cast(Mapping[GroupId, int], self.users(stream_id, DependencyKind.TOPIC))

    def users(self, stream_id: StreamId, kind: DependencyKind) -> Mapping[str, int]:
        """Return the number of CQs that need each dependency of a kind, by its id; empty if the stream is gone."""
        counts = self.dependencies.get(stream_id)
        return {} if counts is None else counts[kind]

    def remove_stream(self, stream_id: StreamId) -> None:
        """Forget a stream."""
        self.streams.pop(stream_id, None)
        self.versions.pop(stream_id, None)
        self.dependencies.pop(stream_id, None)
        self.sole_users.pop(stream_id, None)
        self.next_numbers.pop(stream_id, None)
        self.free_numbers.pop(stream_id, None)
        self.vacant.pop(stream_id, None)
        self.live_cqs.pop(stream_id, None)
