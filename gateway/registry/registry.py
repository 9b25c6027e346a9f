"""The registry: CQs are created, replaced, altered, paused and dropped.

Every change is checked first and carried out in the working copy's unit afterwards, so that a refused command leaves
nothing behind. Call `load` first: the other methods take the result. Each method returns its further effects as a
`Change`: the records for `cq.catalog`, and notices of destinations that end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from gateway.model.dependencies import DependencyKind
from gateway.model.end_notice import EndNotice
from gateway.model.loaded import Loaded
from gateway.model.records import Cq, Destination, instant, millis
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey
from gateway.registry.admission import Admission
from gateway.registry.aggregate_queries import check_aggregation, check_digests
from gateway.registry.computations import Computations
from gateway.registry.placement import DestinationRequest, Placement
from gateway.registry.quarantine_quota import QuarantineQuota
from gateway.registry.start_expire import check_ticks, check_window, expiry
from gateway.registry.stays import Stays
from gateway.registry.table_changes import TableChanges, check_row_ticks
from gateway.registry.times_seen import TimesSeen
from gateway.state.catalog_records import cq_gone, cq_record, definition_record
from gateway.state.work import CatalogChange, Change
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds
from grouping.model.errors import InputError, near_name
from grouping.model.ids import DestinationId, Subscriber
from grouping.model.query import AlterCq, CreateCq
from grouping.model.wording import counted
from grouping.plan.group import CompiledQuery, GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText

__all__ = ["Registry"]

_PAUSES = 99
"""The largest number of pauses that are kept for a virtual CQ. A reader does not skip records of older pauses."""
_NEAR = 1_000
"""How many names before and after a misspelt name, in the sorted list, are compared with the misspelt name."""


class Registry:
    """Carries out statements about CQs, within the working copy's unit."""

    def __init__(self, settings: Settings, working: WorkingCopy, positions: TopicEnds) -> None:
        self._settings = settings
        self._working = working
        self._positions = positions
        self.computations = Computations(working)
        """The computations that CQs use."""
        self.admission = Admission(settings, working)
        """Refuses CQs whose groups would cost too much, according to the statistics of the stream."""
        self.quarantine_quota = QuarantineQuota(settings, working)
        """Refuses new groups of a subscriber after too many quarantines."""
        self.placing = Placement(settings, working, positions)
        self.stays = Stays(working)
        self.table_changes = TableChanges(working, positions)
        self._times = TimesSeen(working)

    def reload(self) -> None:
        """Forget state derived from the working copy, after the working copy was read again."""
        self.computations = Computations(self._working)

    def load(self, keys: Iterable[CqKey], requests: Iterable[DestinationRequest] = ()) -> Loaded:
        """Look up CQs, their requested destinations, and the positions at which readers of these destinations begin."""
        requests = list(requests)
        wanted, working = self.placing.place(requests), self._working
        loaded = working.load(keys, wanted.values())
        names = [name for name, each in wanted.items() if each.mode == "dedicated" and loaded.membership(name) is None]
        names = self.placing.within_shares(names, requests)
        self._positions.prepare(names, self.placing.room(), wanted.keys() & working.inventory.dedicated)
        return loaded

    def create(
        self,
        loaded: Loaded,
        key: CqKey,
        text: CqText,
        statement: CreateCq,
        query: CompiledQuery,
        destination_id: DestinationId,
        now_ms: int,
    ) -> Change:
        """Create or replace a CQ.

        Args:
            loaded: The CQ and the requested destination, as loaded.
            key: The subscriber and the name.
            text: The command's text, kept for DESCRIBE.
            statement: The parsed command.
            query: The compiled SELECT.
            destination_id: The requested destination.
            now_ms: The time of acceptance.

        Raises:
            InputError: cq-exists, bad-time, already-expired, quota-exceeded; not-allowed or unavailable if Kafka
                refuses the topic.
        """
        old = loaded.cq(key)
        if old is not None and statement.or_replace and old.text == text:
            return Change(old)
        now_ms = self.stays.moment(loaded, key, destination_id, now_ms)
        if old is not None and not statement.or_replace:
            raise InputError(
                f'CQ "{old.name}" exists already',
                code="cq-exists",
                detail=f"The CQ was created at {instant(old.created_ms)}.",
                hint="CREATE OR REPLACE CQ replaces it; DROP CQ removes it.",
            )
        limit = self._working.inventory.limit(key.subscriber, "cqs", self._settings.limits)
        if old is None and (count := self._working.subscribed(key.subscriber)) >= limit:
            raise InputError(
                f'subscriber "{key.subscriber}" has too many CQs',
                code="quota-exceeded",
                detail=f"The subscriber has {counted(count, 'CQ')}, and the limit is {limit}.",
                hint="Drop CQs that are not needed any more.",
            )
        destination = self._destination(loaded, destination_id, key.subscriber)
        start_ms = millis(statement.start) if statement.start is not None else None
        expire_ms = expiry(statement.expire, now_ms) if statement.expire is not None else None
        check_window(start_ms, expire_ms, now_ms)
        check_ticks(destination.trigger, start_ms, now_ms)
        self._times.check(loaded, (start_ms, expire_ms), destination)
        if loaded.membership(destination_id) is None:
            self.quarantine_quota.check(key.subscriber, destination)
            self.computations.check(query.plan, self._settings.limits)
            micros = self.computations.batch_micros(destination.stream_id)
            self.admission.check(query, destination, now_ms, micros)
        cq = Cq(statement.name, text, destination_id, now_ms, self._begin(destination), start_ms, expire_ms)
        if old is not None and old.destination_id == cq.destination_id:
            # The CQ stays in its destination, and its reader may not have read all records yet. The beginning of the
            # membership and the ended pauses are kept, so that the reader still skips records of paused times.
            cq = msgspec.structs.replace(cq, joined_ms=old.since_ms, pauses=_ended(old.pauses, now_ms))
        if query.views:
            cq = msgspec.structs.replace(cq, views=query.views)
        return self._put(loaded, key, cq, destination, now_ms, query)

    def _destination(self, loaded: Loaded, destination_id: DestinationId, subscriber: Subscriber) -> Destination:
        """Return a loaded destination, or a new destination if the limits allow this."""
        membership = loaded.membership(destination_id)
        if membership is not None:
            return membership.destination
        return self.placing.new(loaded.requested(destination_id), subscriber)

    def _begin(self, destination: Destination) -> int | tuple[int, ...]:
        if destination.mode == "virtual":
            return self._positions.virtual_ends(destination)
        return self._positions.end(destination)

    def _put(
        self,
        loaded: Loaded,
        key: CqKey,
        cq: Cq,
        destination: Destination,
        now_ms: int,
        query: CompiledQuery | None = None,
    ) -> Change:
        definitions: tuple[GroupPlan | SelectList, ...] = ()
        records: list[CatalogChange] = []
        if query is not None:
            stream_id = destination.stream_id
            users = self._working.inventory.users
            new_plan = destination.group_id not in users(stream_id, DependencyKind.GROUP)
            new_select = destination.select_id not in users(stream_id, DependencyKind.SELECT)
            if new_plan or new_select:
                definitions = (query.plan, query.select)
            if new_plan:
                self.computations.add(query.plan)
                records.append(definition_record(stream_id, destination.group_id, query.plan))
            if new_select:
                records.append(definition_record(stream_id, destination.select_id, query.select))
        old = loaded.cq(key)
        home = None if old is None else loaded.destination_of(old)
        ended = self._working.unit.put(key, cq, destination, *definitions)
        notices: tuple[EndNotice, ...] = ()
        if ended is not None:
            notices = (self._end(key, ended, now_ms, "replaced"),)
        elif old is not None and home is not None and home.destination_id != destination.destination_id:
            notices = (self.stays.leave(key, old, home, now_ms, "replaced"),)
        return Change(cq, (*records, cq_record(key, cq, destination)), notices)

    # -- changes of a CQ -----------------------------------------------------------------------------------------------

    def find(self, loaded: Loaded, key: CqKey, name: str) -> Cq:
        """Return the subscriber's own CQ of a name.

        Raises:
            InputError: ``unknown-cq``; whether another subscriber has a CQ of this name is not disclosed.
        """
        cq = loaded.cq(key)
        if cq is None:
            names = self._working.names(key.subscriber)
            raise InputError(
                f'CQ "{name}" does not exist',
                code="unknown-cq",
                detail=f'Subscriber "{key.subscriber}" has {counted(len(names), "CQ")}, none of this name.',
                hint=near_name(name, names.near(key.name, _NEAR)) or "SHOW CQS lists your own.",
            )
        return cq

    def drop(self, loaded: Loaded, key: CqKey, name: str, now_ms: int) -> Change:
        """Remove a CQ. Earlier events are still evaluated for the CQ, unless it is timer-based or virtual."""
        cq = self.find(loaded, key, name)
        destination = loaded.destination_of(cq)
        lasting = destination.mode != "virtual" and not destination.trigger.timed
        at_ms = max(now_ms, cq.latest_ms)
        until = self._positions.source_ends(destination.stream_id) if lasting else ()
        notice = self._remove(key, cq, destination, at_ms, "dropped", until)
        return Change(cq, (cq_gone(key),), (notice,))

    def expire(self, loaded: Loaded, keys: Iterable[CqKey], settled_ms: Callable[[Destination], int]) -> Change:
        """Remove CQs whose EXPIRE has come, if their destinations have all results up to it.

        Args:
            loaded: The CQs, as loaded.
            keys: The CQs.
            settled_ms: Returns the instant up to which a destination has all its results.
        """
        catalog: list[CatalogChange] = []
        notices: list[EndNotice] = []
        for key in keys:
            cq = loaded.cq(key)
            if cq is None or cq.expire_ms is None:
                continue
            destination = loaded.destination_of(cq)
            if settled_ms(destination) >= cq.expire_ms:
                notices.append(self._remove(key, cq, destination, cq.expire_ms, "expired"))
                catalog.append(cq_gone(key))
                if destination.trigger.timed:
                    self._working.unit.note_last_expiry(destination.destination_id, cq.expire_ms)
        return Change(catalog=tuple(catalog), notices=tuple(notices))

    def _remove(
        self, key: CqKey, cq: Cq, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()
    ) -> EndNotice:
        if self._working.unit.remove(key, until) is None:
            return self.stays.leave(key, cq, destination, at_ms, reason, until)
        return self._end(key, destination, at_ms, reason, until)

    def _end(
        self, key: CqKey, destination: Destination, at_ms: int, reason: str, until: tuple[int, ...] = ()
    ) -> EndNotice:
        notice = self.stays.end(key, destination, at_ms, reason, until)
        self.admission.ended(destination)
        return notice

    def pause(self, loaded: Loaded, key: CqKey, name: str, paused: bool, now_ms: int) -> Change:
        """Pause or resume a CQ; nothing changes if the CQ is paused, or active, already."""
        cq = self.find(loaded, key, name)
        if cq.paused == paused:
            return Change(cq)
        destination = loaded.destination_of(cq)
        pauses = cq.pauses
        if destination.mode == "virtual":
            ended = _ended(pauses, now_ms)
            pauses = (*ended, (now_ms, None)) if paused else ended
        if not paused:
            self._times.check(loaded, cq.window, destination)
        changed = msgspec.structs.replace(cq, paused=paused, pauses=pauses)
        return self._put(loaded, key, changed, destination, now_ms)

    def alter(self, loaded: Loaded, key: CqKey, statement: AlterCq, asked_ms: int, now_ms: int) -> Change:
        """Change a CQ's trigger or times.

        Args:
            loaded: The CQ, as loaded.
            key: The subscriber and the name.
            statement: The parsed command.
            asked_ms: When the command was first tried; without START, this time gives the phase of the ticks.
            now_ms: The time of acceptance.

        Raises:
            InputError: unknown-cq, bad-time, already-expired, bad-interval, unsupported-query.
        """
        cq = self.find(loaded, key, statement.name)
        old, start_ms, expire_ms = loaded.destination_of(cq), cq.start_ms, cq.expire_ms
        if statement.start is not None:
            start_ms = millis(statement.start)
        if statement.expire is not None:
            expire_ms = expiry(statement.expire, now_ms)
        check_window(start_ms, expire_ms, now_ms)
        trigger = old.trigger
        if statement.trigger is not None or (statement.start is not None and trigger.every_ms):
            wanted = statement.trigger or trigger.trigger
            check_row_ticks(old.stream_id, "" if old.edges is None else old.edges.edge, wanted)
            check_aggregation(wanted, None, self._settings.limits, aggregated=old.slots is not None)
            trigger = TriggerSpec.of(wanted, start_ms, asked_ms)
        check_ticks(trigger, start_ms, now_ms)
        destination, moved = old, cq
        if trigger != old.trigger:
            check_digests(old, trigger)
            request = self.placing.new_request(old, trigger, key.subscriber)
            loaded = self.load([key], [request])
            destination = self._destination(loaded, request.destination_id, key.subscriber)
            self._times.check(loaded, (start_ms, expire_ms), destination)
            moved = self._moved(loaded, key, cq, destination, now_ms)
        elif not cq.paused:
            self._times.check(loaded, (start_ms, expire_ms), destination)
        changed = msgspec.structs.replace(moved, start_ms=start_ms, expire_ms=expire_ms)
        return self._put(loaded, key, changed, destination, now_ms)

    def recompile(self, loaded: Loaded, key: CqKey, query: CompiledQuery, now_ms: int) -> Change:
        """Give a CQ the query that the compiler now makes from its text. Trigger, times and pauses do not change.

        As with an OR REPLACE by another text, the CQ moves to another destination between two micro-batches.

        Raises:
            InputError: The new destination cannot be made.
            NotYet: The topic of the new destination is still being made.
        """
        cq = self.find(loaded, key, key.name)
        request = self.placing.recompiled(loaded.destination_of(cq), query, key.subscriber)
        loaded = self.load([key], [request])
        destination = self._destination(loaded, request.destination_id, key.subscriber)
        self._times.check(loaded, cq.window, destination)
        moved = self._moved(loaded, key, cq, destination, now_ms)
        return self._put(loaded, key, msgspec.structs.replace(moved, views=query.views), destination, now_ms, query)

    def _moved(self, loaded: Loaded, key: CqKey, cq: Cq, destination: Destination, now_ms: int) -> Cq:
        """Return a CQ as a member of another destination, which it joins now."""
        offset, wanted = self._begin(destination), destination.destination_id
        joined_ms = self.stays.moment(loaded, key, wanted, now_ms)
        return msgspec.structs.replace(cq, destination_id=wanted, offset=offset, joined_ms=joined_ms)


_Pauses = tuple[tuple[int, int | None], ...]


def _ended(pauses: _Pauses, now_ms: int) -> _Pauses:
    """Return the latest pauses of a virtual CQ; a pause without an end ends now."""
    return tuple((since, now_ms if until is None else until) for since, until in pauses[-_PAUSES:])
