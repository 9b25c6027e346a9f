"""Repairs the doctor's findings. No repair loses data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.doctor.catalog import read_catalog
from gateway.doctor.finding import Finding, Repair
from gateway.doctor.topic_check import unknown_topics
from gateway.kafka import Topics
from gateway.state.stored_cqs import order_refill
from gateway.state.working_copy import WorkingCopy
from gateway.topics.own_topics import ensure_own_topics
from gateway.topics.result_topics import result_config
from grouping.model.errors import OperationalError
from grouping.settings.settings import Settings
from grouping.store.table_store import TableStore

__all__ = ["Repairs"]

_REFILL_SECONDS = 300.0
"""How long the gateway may take to fill Redis again. A million CQs take a minute."""


class Repairs:
    """The repairs for the objects of a prefix."""

    def __init__(self, settings: Settings, topics: Topics, store: TableStore, pause: Callable[[float], object]) -> None:
        self._settings = settings
        self._topics = topics
        self._store = store
        self._pause = pause
        self._kinds: dict[Repair, Callable[[list[str]], object]] = {
            "bring the topics into form": lambda _: ensure_own_topics(settings, topics),
            "make the topic": self._make_topics,
            "delete the topic": self._delete_topics,
            "refill Redis": lambda _: self._refill(),
        }
        self.order = tuple(self._kinds)
        """The kinds of repairs, in the order in which they must be made."""

    def carry_out(self, kind: Repair, findings: Sequence[Finding]) -> bool:
        """Repair the findings with one kind of repair, and return whether there were any.

        Raises:
            OperationalError: A server does not answer, or no gateway has filled Redis in time.
        """
        if findings:
            self._kinds[kind]([finding.subject for finding in findings])
        return bool(findings)

    def _refill(self) -> None:
        """Let the gateway fill Redis again, and wait until this is done."""
        epoch = self._store.epoch()
        order_refill(self._settings)
        waited = 0.0
        while self._store.epoch() in (None, epoch):
            if waited >= _REFILL_SECONDS:
                raise OperationalError(
                    "no gateway has filled Redis again",
                    detail=f"The order to fill Redis was given {waited:.0f} seconds ago.",
                    hint="Start a gateway: it fills Redis when it starts.",
                )
            self._pause(0.5)
            waited += 0.5

    def _delete_topics(self, topics: list[str]) -> None:
        """Delete topics, except topics that a CQ on the catalog has begun to use since the finding."""
        unknown = unknown_topics(self._settings, self._topics, read_catalog(self._settings))
        self._topics.delete(unknown.intersection(topics))

    def _make_topics(self, topics: list[str]) -> None:
        wanted = dict.fromkeys(topics, 1)
        working = WorkingCopy(self._settings)
        working.open()
        for stream_id, stream in working.inventory.streams.items():
            for group_id in working.inventory.virtual_groups(stream_id):
                topic = self._settings.topics.own_results(group_id)
                if topic in wanted:
                    wanted[topic] = len(stream.start_offsets)
        self._topics.create_each(wanted, result_config(self._settings))
