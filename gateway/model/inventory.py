"""What lives, in memory from one unit of work to the next: streams, destinations by number, uses of plans.

The unit under way changes it as it goes; a unit that fails has all of it read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gateway.model.departures import Departures
from gateway.model.dependencies import DependencyCounts, DependencyKind
from gateway.model.names import Names
from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.model.view import View

__all__ = ["Inventory"]


class Inventory:
    """What the gateway keeps in memory of Redis."""

    def __init__(self) -> None:
        self.ending: dict[str, int] = {}
        """By destination: when the last of its incarnations ended whose `cq.end` is still to be written."""
        self.epoch = 0
        """The confirmed epoch of the tables."""
        self.clear()

    def clear(self) -> None:
        """Forget what lives."""
        self.streams: dict[str, Stream] = {}
        """Live streams by id."""
        self.tables: dict[str, Table] = {}
        """Live tables by id."""
        self.views: dict[str, View] = {}
        """Live views by folded name."""
        self.versions: dict[str, int] = {}
        """Current version of each stream's constant tables."""
        self.dependencies: dict[str, DependencyCounts] = {}
        """By stream: how many CQs need its groups, SELECT lists, templates, views and, virtual ones, topics."""
        self.live_cqs: Counter[str] = Counter()
        """By stream: how many CQs live."""
        self.dedicated: set[str] = set()
        """Live dedicated destinations."""
        self.leaving: dict[str, Departures] = {}
        """What members that left have yet to get, by destination."""
        self.vacant: Counter[str] = Counter()
        """By stream: how many of these have no members, and keep their numbers."""
        self.next_numbers: dict[str, int] = {}
        """By stream: the first number that no destination ever had."""
        self.free_numbers: dict[str, list[int]] = {}
        """By stream: numbers of destinations that are gone."""
        self.listed: dict[str, Names] = {}
        """Names of the subscribers that asked for them lately, kept up to date."""

    def groups(self, stream_id: str) -> Mapping[str, int]:
        """Return the live groups of a stream, each with how many CQs it has."""
        return self.users(stream_id, DependencyKind.GROUP)

    def virtual_groups(self, stream_id: str) -> Mapping[str, int]:
        """Return those of them that have virtual CQs, each with how many of these."""
        return self.users(stream_id, DependencyKind.TOPIC)

    def users(self, stream_id: str, kind: DependencyKind) -> Mapping[str, int]:
        """Return how many CQs need each dependency of a kind, by its id; none where the stream is gone."""
        counts = self.dependencies.get(stream_id)
        return {} if counts is None else counts[kind]

    def remove_stream(self, stream_id: str) -> None:
        """Forget a stream."""
        self.streams.pop(stream_id, None)
        self.versions.pop(stream_id, None)
        self.dependencies.pop(stream_id, None)
        self.next_numbers.pop(stream_id, None)
        self.free_numbers.pop(stream_id, None)
        self.vacant.pop(stream_id, None)
        self.live_cqs.pop(stream_id, None)
