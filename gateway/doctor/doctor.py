"""The doctor: runs all checks twice, reports faults that were found both times, and makes repairs that lose no data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gateway.doctor.catalog import read_catalog
from gateway.doctor.checkpoint_check import check_checkpoints
from gateway.doctor.finding import Finding, Repair
from gateway.doctor.notes_check import check_notes
from gateway.doctor.registry_check import REFILL_HINT, check_registry
from gateway.doctor.repairs import Repairs
from gateway.doctor.role_check import check_roles
from gateway.doctor.table_check import SegmentDamaged, check_tables
from gateway.doctor.topic_check import check_topics
from gateway.kafka import Topics
from gateway.model.membership import Membership
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings
from grouping.store.connection import StoreUnavailable
from grouping.store.segment_log import SegmentLost
from grouping.store.table_store import TableStore

__all__ = ["Doctor"]

_APART_SECONDS = 2.0
"""The time between the two runs of the checks. If a command under way has caused a difference in the first run, the
difference is gone in the second run."""


class Doctor:
    """Checks the objects of a prefix, with or without a running gateway."""

    def __init__(
        self,
        settings: Settings,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Connect.

        Args:
            settings: The settings of the gateway and the evaluator.
            pause: Waits for a number of seconds.
            clock: Returns the gateway's time, in epoch seconds.
        """
        self._clock = clock
        self._settings = settings
        self._topics = Topics(settings)
        self._store = TableStore(settings)
        self._pause = pause

    def examine(self) -> list[Finding]:
        """Return the faults that both runs of the checks have found.

        Raises:
            OperationalError: Kafka or Redis does not answer.
        """
        first = list(self._look())
        if not first:
            return []
        self._pause(_APART_SECONDS)
        return [finding for finding in self._look() if any(map(finding.confirms, first))]

    def repair(self, findings: Sequence[Finding]) -> list[Repair]:
        """Repair the findings that can be repaired, and return the kinds of repairs that were made.

        Raises:
            OperationalError: A server does not answer, or no gateway has filled Redis in time.
        """
        repairs = Repairs(self._settings, self._topics, self._store, self._pause)
        return [
            kind
            for kind in repairs.order
            if repairs.carry_out(kind, [each for each in findings if each.repair == kind])
        ]

    def _look(self) -> Iterator[Finding]:
        try:
            working = WorkingCopy(self._settings)
            working.open()
            catalog = read_catalog(self._settings)
            memberships = catalog.memberships()
            now_ms = round(self._clock() * 1000)
            yield from check_roles(self._settings, working.inventory, self._store, now_ms)
            yield from check_checkpoints(self._settings, working.inventory)
            yield from check_topics(self._settings, self._topics, catalog, memberships)
            yield from check_registry(self._settings, catalog, working.inventory)
            kafka_ms = time.time_ns() // 1_000_000
            yield from check_notes(self._settings, self._topics, catalog, working, now_ms, kafka_ms)
            yield from self._check_tables(memberships, working)
        except (msgspec.MsgspecError, ValueError) as error:
            detail = f"Redis has a value that cannot be read: {error}."
            yield Finding("redis-unreadable", "", detail, REFILL_HINT, "refill Redis")

    def _check_tables(self, memberships: Mapping[DestinationId, Membership], working: WorkingCopy) -> Iterator[Finding]:
        try:
            yield from check_tables(memberships, working.inventory, self._store)
        except (StoreUnavailable, SegmentLost) as error:
            if self._store.epoch() is not None:
                yield Finding("tables-incomplete", "", f"{error.message}: {error.detail}", REFILL_HINT, "refill Redis")
        except SegmentDamaged as error:
            yield Finding("tables-damaged", "", f"{error.message}: {error.detail}", REFILL_HINT, "refill Redis")
