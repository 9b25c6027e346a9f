"""The doctor: looks at everything twice, tells what is wrong both times, and repairs what loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gateway.doctor.catalog import read_catalog
from gateway.doctor.checkpoint_check import check_checkpoints
from gateway.doctor.finding import Finding, Repair
from gateway.doctor.registry_check import check_registry
from gateway.doctor.repairs import Repairs
from gateway.doctor.role_check import check_roles
from gateway.doctor.table_check import check_tables
from gateway.doctor.topic_check import check_topics
from gateway.kafka import Topics
from gateway.model.membership import Membership
from gateway.state.end_notices import EndNotices
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings
from grouping.store.connection import StoreUnavailable
from grouping.store.table_store import TableStore

__all__ = ["Doctor"]

_APART_SECONDS = 2.0
"""Between two looks: what a command under way explains is gone by the second one."""


class Doctor:
    """Looks at one prefix, beside a running gateway or without one."""

    def __init__(self, settings: Settings, pause: Callable[[float], object] = time.sleep) -> None:
        """Connect.

        Args:
            settings: As gateway and evaluator have them.
            pause: Waits for so many seconds.
        """
        self._settings = settings
        self._topics = Topics(settings)
        self._store = TableStore(settings)
        self._pause = pause

    def examine(self) -> list[Finding]:
        """Return what is wrong, found twice.

        Raises:
            OperationalError: Kafka or Redis does not answer.
        """
        first = list(self._look())
        if not first:
            return []
        self._pause(_APART_SECONDS)
        known = {(finding.code, finding.subject) for finding in first}
        return [finding for finding in self._look() if (finding.code, finding.subject) in known]

    def repair(self, findings: Sequence[Finding]) -> list[Repair]:
        """Repair what can be repaired, and return what was done.

        Raises:
            OperationalError: A server does not answer, or no gateway has filled Redis within its time.
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
            notices = EndNotices(working)
            notices.reload()
            catalog = read_catalog(self._settings)
            memberships = catalog.memberships()
            yield from check_roles(self._settings, working.inventory, self._store, time.time_ns() // 1_000_000)
            yield from check_checkpoints(self._settings, working.inventory)
            yield from check_topics(self._settings, self._topics, catalog, memberships, notices)
            yield from check_registry(self._settings, catalog, working.inventory)
            yield from self._check_tables(memberships, working)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            hint = "The gateway fills Redis anew from the catalog: cq doctor --repair."
            yield Finding("redis-unreadable", "", f"Redis has a value that is none: {error}.", hint, "refill Redis")

    def _check_tables(self, memberships: Mapping[DestinationId, Membership], working: WorkingCopy) -> Iterator[Finding]:
        try:
            yield from check_tables(memberships, working.inventory, self._store)
        except StoreUnavailable as error:
            if self._store.epoch() is not None:
                hint = "The gateway fills Redis anew from the catalog: cq doctor --repair."
                yield Finding("tables-incomplete", "", f"{error.message}: {error.detail}", hint, "refill Redis")
