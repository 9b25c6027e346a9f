"""Placement: the destination that a CQ requests, and the destination that it gets.

A request depends only on the statement and the settings. The partitions of many requests are computed together, which
is cheaper. The limits on new destinations are checked when a command is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from gateway.model.records import Destination, EdgeSpec, millis
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import Unit
from gateway.registry.own_prefixes import OwnPrefixes
from gateway.registry.partitions import partitions_of
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds, dedicated_topic
from grouping.model.errors import InputError
from grouping.model.group import DestinationIds, canonical_constants
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId, Subscriber
from grouping.model.query import CreateCq, DigestClause, PackedDigest
from grouping.model.wording import are, counted
from grouping.plan.group import CompiledQuery
from grouping.settings.settings import Settings

__all__ = ["DestinationFamily", "DestinationRequest", "Placement"]

_KNOWN_FAMILIES = 10_000
_ALL = ("all", (), 0, False)
"""The packed digest clause of a CQ whose statement has no digest clause: a digest has all matches."""


class DestinationFamily(msgspec.Struct, frozen=True):
    """The common fields of destinations that differ only in their constants."""

    stream_id: StreamId
    group_id: GroupId
    select_id: SelectId
    trigger: TriggerSpec
    digest: PackedDigest
    word: str
    slots: int | None = None
    """For aggregate queries, the number of slots in WHERE; None for other queries."""
    owner: str = ""
    """The owner of a private destination; empty if equal CQs of all subscribers share the destination."""
    edges: EdgeSpec | None = None
    """The edges that the CQ reports; None if each match is a result."""


class DestinationRequest(msgspec.Struct, frozen=True):
    """A request for a destination: the fields that determine the destination's id, and the requesting subscriber."""

    destination_id: DestinationId
    family: DestinationFamily
    constants: str
    subscriber: Subscriber
    """The requesting subscriber; a new topic counts against this subscriber's limit."""


class Placement:
    """Gives CQs their destinations, within the working copy's unit."""

    def __init__(self, settings: Settings, working: WorkingCopy, positions: TopicEnds) -> None:
        self._settings = settings
        self._working = working
        self._positions = positions
        self._topics = positions.result_topics
        self._shared_partitions = positions.shared_partitions
        self._prefixes = OwnPrefixes(settings, working) if settings.auth.mode == "token" else None
        self._ids: dict[DestinationFamily, DestinationIds] = {}
        self._pruned_in: Unit | None = None
        """The last unit of work that removed deleted topics from the subscribers' counts."""

    def request(
        self, statement: CreateCq, query: CompiledQuery, subscriber: Subscriber, now_ms: int
    ) -> DestinationRequest:
        """Return the request of a subscriber's CREATE.

        Raises:
            InputError: ``not-allowed``: the settings forbid destinations that several subscribers read, or the topics
                of another subscriber have the same prefix.
        """
        self._check_open(statement.publish.mode)
        if self._prefixes is not None:
            self._prefixes.check(subscriber)
        kept = query.plan.kept
        start_ms = None if statement.start is None else millis(statement.start)
        trigger = TriggerSpec.of(statement.trigger, start_ms, now_ms)
        clause, word = statement.publish.digest, statement.publish.mode or ""
        digest = _ALL if clause is None else (clause.kind, clause.columns, clause.rows, clause.even_if_empty)
        plan = query.plan
        slots = None if kept is None else kept.slots
        edges = EdgeSpec("", "") if plan.frames is not None else None
        if query.edge == "silence":
            edges = EdgeSpec(query.edge, "")
        elif query.edge:
            edges = EdgeSpec.of(query.edge, subscriber, statement.name, now_ms, snapshot=query.snapshot)
        family = DestinationFamily(
            plan.stream_id,
            plan.group_id,
            query.select.select_id,
            trigger,
            digest,
            word,
            slots,
            self._owner(subscriber),
            edges,
        )
        return self._ask(family, canonical_constants(query.row), subscriber)

    def _owner(self, subscriber: Subscriber) -> str:
        return "" if self._prefixes is None else subscriber

    def new_request(self, old: Destination, trigger: TriggerSpec, subscriber: Subscriber) -> DestinationRequest:
        """Return the request of a CQ whose trigger changes. All other fields are taken from its old destination."""
        family = DestinationFamily(
            old.stream_id,
            old.group_id,
            old.select_id,
            trigger,
            old.digest,
            old.word,
            old.slots,
            self._owner(subscriber),
            old.edges,
        )
        return self._ask(family, old.constants, subscriber)

    def recompiled(self, old: Destination, query: CompiledQuery, subscriber: Subscriber) -> DestinationRequest:
        """Return the request of a CQ whose text now compiles to another plan or SELECT list.

        The trigger, the digest clause, the PUBLISH word and the edges are taken from the CQ's old destination.
        """
        kept = query.plan.kept
        family = DestinationFamily(
            old.stream_id,
            query.plan.group_id,
            query.select.select_id,
            old.trigger,
            old.digest,
            old.word,
            None if kept is None else kept.slots,
            self._owner(subscriber),
            old.edges,
        )
        return self._ask(family, canonical_constants(query.row), subscriber)

    def _ask(self, family: DestinationFamily, constants: str, subscriber: Subscriber) -> DestinationRequest:
        ids = self._ids.get(family)
        if ids is None:
            if len(self._ids) >= _KNOWN_FAMILIES:
                self._ids.clear()
            trigger, word = family.trigger, family.word or None
            phase_ms = trigger.phase_ms if trigger.every_ms else None
            clause = DigestClause.of(family.digest)
            ids = DestinationIds(
                family.group_id,
                family.select_id,
                trigger.trigger,
                phase_ms,
                clause,
                word,
                family.owner,
                family.edges.id_text if family.edges else "",
            )
            self._ids[family] = ids
        return DestinationRequest(ids.of(constants), family, constants, subscriber)

    def place(self, requests: Iterable[DestinationRequest]) -> dict[DestinationId, Destination]:
        """Return the requested destinations by id, each with the mode and partition of a new destination."""
        wanted = {each.destination_id: each for each in requests}
        partitions = partitions_of([name.encode() for name in wanted], self._shared_partitions) if wanted else ()
        found = {}
        for each, partition in zip(wanted.values(), partitions, strict=True):
            name, family = each.destination_id, each.family
            mode = self._mode(name, family.word, each.subscriber)
            place = partition if mode == "shared" else 0
            found[name] = Destination(
                name,
                family.stream_id,
                family.group_id,
                family.select_id,
                each.constants,
                mode,
                place,
                family.trigger,
                family.digest,
                family.word,
                family.slots,
                family.edges,
            )
        return found

    def room(self) -> int:
        """Return how many more dedicated destinations may have topics."""
        return self._topics.room(len(self._working.inventory.dedicated))

    def _may_dedicate(self, name: DestinationId, is_requested: bool, subscriber: Subscriber) -> bool:
        live = len(self._working.inventory.dedicated)
        return self._topics.may_dedicate(name, live, is_requested) and self._has_share(name, subscriber, "dedicated")

    def _has_share(self, owner_id: str, subscriber: Subscriber, kind: Literal["dedicated", "virtual"]) -> bool:
        """Tell whether a subscriber may have another topic of results; an existing topic may always be used."""
        if self._share_left(subscriber, kind) > 0:
            return True
        return self._settings.topics.own_results(owner_id) in self._topics

    def _share_left(self, subscriber: Subscriber, kind: Literal["dedicated", "virtual"]) -> int:
        """Return how many more topics of a kind a subscriber may have."""
        inventory = self._working.inventory
        limit = inventory.limit(subscriber, kind, self._settings.limits)
        if limit <= inventory.topic_shares[subscriber, kind] and self._pruned_in is not self._working.unit:
            self._pruned_in = self._working.unit
            own_results = self._settings.topics.own_results
            gone = [each for each in inventory.topic_founders if own_results(each) not in self._topics]
            self._working.unit.forget_topics(gone)
        return limit - inventory.topic_shares[subscriber, kind]

    def within_shares(
        self, names: Iterable[DestinationId], requests: Iterable[DestinationRequest]
    ) -> list[DestinationId]:
        """Return the new dedicated destinations that do not exceed their subscribers' limits.

        Args:
            names: The new dedicated destinations.
            requests: Requests, among them the requests of these destinations.
        """
        askers = {each.destination_id: each.subscriber for each in requests}
        left: dict[Subscriber, int] = {}
        kept = []
        for name in names:
            subscriber = askers[name]
            room = left.get(subscriber)
            left[subscriber] = (self._share_left(subscriber, "dedicated") if room is None else room) - 1
            if left[subscriber] >= 0:
                kept.append(name)
        return kept

    def _mode(self, name: DestinationId, word: str, subscriber: Subscriber) -> str:
        """Return the mode of a new destination.

        The word after PUBLISH is the mode. Without a word, the destination is dedicated while the limits on topics
        allow this and Kafka refuses no topics, and otherwise shared.
        """
        if word:
            return word
        if self._may_dedicate(name, False, subscriber):
            refused = self._topics.is_refused(dedicated_topic(self._settings, name))
            return "shared" if refused else "dedicated"
        return "shared"

    def new(self, wanted: Destination, subscriber: Subscriber) -> Destination:
        """Create a new destination, with its topic, and return it.

        Args:
            wanted: The requested destination.
            subscriber: The requesting subscriber.

        Raises:
            InputError: ``quota-exceeded``: a limit on destinations of this mode is reached. ``unavailable``: the
                destination is for edges, and the end of a source partition is unknown, so that the edges have no
                beginning. If Kafka refuses the topic, the error has the code of the refusal.
        """
        if self._prefixes is not None:
            self._prefixes.take(subscriber)
        placed, edges = self._placed(wanted, subscriber), wanted.edges
        if edges is None:
            return placed
        since = edges.since
        if not since:
            since = self._positions.certain_source_ends(wanted.stream_id)
            if edges.own:
                self._working.unit.begun_edges.add(wanted.destination_id)
        return msgspec.structs.replace(placed, edges=msgspec.structs.replace(edges, since=since))

    def _placed(self, wanted: Destination, subscriber: Subscriber) -> Destination:
        """Return a new destination with its mode and its topic; raises as `new` does."""
        if (leaving := self._working.inventory.leaving.get(wanted.destination_id)) is not None:
            # An earlier incarnation of the destination has ended, and some of its results are still to be written. The
            # new incarnation gets the same mode and partition, so that the results of both are in one place.
            return leaving.destination
        if wanted.word == "dedicated" and not self._may_dedicate(wanted.destination_id, True, subscriber):
            raise self._too_many(subscriber)
        if wanted.mode == "virtual" and not self._has_share(wanted.group_id, subscriber, "virtual"):
            raise self._too_large_share(subscriber, "virtual")
        placed = wanted
        if wanted.mode == "dedicated":  # an earlier command of the unit may have used up the limit
            placed = self._in_mode(wanted, self._mode(wanted.destination_id, wanted.word, subscriber))
        if placed.mode == "shared":
            if not self._settings.results.shared:
                raise self._too_many(subscriber)
            return placed
        try:
            self._positions.require(placed)
        except InputError:
            if wanted.word or not self._settings.results.shared:
                raise
            return self._in_mode(wanted, "shared")
        return placed

    def _too_large_share(self, subscriber: Subscriber, kind: Literal["dedicated", "virtual"]) -> InputError:
        limit = self._working.inventory.limit(subscriber, kind, self._settings.limits)
        return InputError(
            f'subscriber "{subscriber}" has too many {kind} destinations',
            code="quota-exceeded",
            detail=f"The subscriber's limit is {counted(limit, 'topic')}, including topics of ended destinations, "
            "which are kept for readers.",
            hint="Publish SHARED, or drop CQs that are not needed any more.",
        )

    def _too_many(self, subscriber: Subscriber) -> InputError:
        if self._share_left(subscriber, "dedicated") <= 0:
            return self._too_large_share(subscriber, "dedicated")
        live, limit = len(self._working.inventory.dedicated), self._settings.results.dedicated_limit
        ended = "" if live >= limit else ", and topics of ended destinations are kept for their readers"
        return InputError(
            "there are too many dedicated destinations",
            code="quota-exceeded",
            detail=f"There {are(live)} {counted(live, 'live dedicated destination')}{ended}; the limit is {limit}.",
            hint="Publish SHARED, or leave DEDICATED out."
            if self._settings.results.shared
            else "Drop CQs that are not needed any more.",
        )

    def _check_open(self, word: str | None) -> None:
        if word in ("shared", "virtual") and not self._settings.results.shared:
            raise InputError(
                f"results may not be published {word.upper()}",
                code="not-allowed",
                detail="Other subscribers could read the results. With the gateway's settings, each destination must "
                "have a topic of its own.",
                hint=f"Publish DEDICATED, or leave {word.upper()} out.",
            )

    def _in_mode(self, wanted: Destination, mode: str) -> Destination:
        if mode == wanted.mode:
            return wanted
        (partition,) = partitions_of([wanted.destination_id.encode()], self._shared_partitions)
        return msgspec.structs.replace(wanted, mode=mode, partition=partition if mode == "shared" else 0)
