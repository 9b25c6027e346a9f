"""Watches the topics of streams and tables: notices new partitions, and topics that were deleted and made again.

A topic that was made again has another id in Kafka, and its offsets begin at 0. The positions of its events are higher
than all earlier positions (`Stream.base`), so ids of results, cursors and cuts are never used twice. Unevaluated events
of the old topic are lost, and a dead letter for each partition reports the loss. A table gets the rows of the new
topic.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gateway.kafka import ExistingTopic, OutgoingRecord, Topics
from gateway.state.catalog_records import source_record
from gateway.state.work import Change
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.table import Table
from grouping.process.pacing import look_seconds
from grouping.settings.settings import Settings

__all__ = ["SourceWatch", "seen"]

log = logging.getLogger(__name__)

_GONE_MS = 60_000
"""How long a topic must be missing until it is taken as deleted. A broker that has just started does not know its
topics yet."""


class SourceWatch:
    """Checks the topics of all streams and tables, once a second, or less often if there are many topics."""

    def __init__(self, settings: Settings, working: WorkingCopy, topics: Topics) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._looked_ms = 0
        self._missing: dict[str, int] = {}
        """Id of a dropped table → since when its topic is missing, epoch milliseconds."""

    def step(self, now_ms: int) -> Change:
        """Note changes of source topics. If a source has new partitions, its topics of virtual results get as many.

        Returns:
            The records of changed streams and tables, and dead letters.

        Raises:
            OperationalError: A server does not answer.
        """
        inventory = self._working.inventory
        streams, tables = list(inventory.streams.values()), list(inventory.tables.values())
        rest_ms = 1000 * look_seconds(len(streams) + len(tables))
        if not streams or 0 <= now_ms - self._looked_ms < rest_ms:
            return Change()
        self._looked_ms = now_ms
        dropped = [each.table for each in inventory.dropped_tables.values() if not each.lost]
        topics = [*(stream.topic for stream in streams), *(table.topic for table in (*tables, *dropped))]
        forms = self._topics.forms(topics)
        found = ((stream, seen(stream, forms[stream.topic])) for stream in streams if stream.topic in forms)
        changed = [(old, new) for old, new in self._with_schema_ids(found) if old != new]
        letters: list[OutgoingRecord] = []
        for old, new in changed:
            log.info("source changed", extra={"stream": new.name, "topic": new.topic, "generation": new.generation})
            if len(new.start_offsets) > len(old.start_offsets):
                self._grow_virtual(new)
            if new.generation != old.generation:
                letters += self._events_deleted(old)
            self._working.unit.sources.replace_stream(new)
        catalog = [source_record(new) for _, new in changed]
        for table in tables:
            if (form := forms.get(table.topic)) is not None and form.topic_id != table.topic_id:
                log.warning(
                    "the topic of a table was deleted and made again", extra={"table": table.name, "topic": table.topic}
                )
                renewed = msgspec.structs.replace(table, topic_id=form.topic_id)
                self._working.unit.sources.put_table(renewed)
                catalog.append(source_record(renewed))
        for table in self._gone(dropped, forms, now_ms):
            log.warning("the topic of a dropped table is gone", extra={"table": table.name, "topic": table.topic})
            self._working.unit.sources.lose_table(table.table_id)
            # The tombstone is written again, since each unit that changes a source must write a record of the source.
            catalog.append(source_record(table, gone=True))
        return Change(catalog=tuple(catalog), records=tuple(letters))

    def _with_schema_ids(self, streams: Iterable[tuple[Stream, Stream]]) -> Iterator[tuple[Stream, Stream]]:
        """Add to each stream the schema id that its first records name, so that the catalog keeps this id."""
        streams = list(streams)
        without = [old.stream_id for old, _ in streams if old.has_one_schema_id and old.schema_id is msgspec.UNSET]
        found = self._working.evaluator.schema_ids(without) if without else {}
        for old, new in streams:
            known = old.stream_id in found
            yield old, msgspec.structs.replace(new, schema_id=found[old.stream_id]) if known else new

    def _gone(self, dropped: Sequence[Table], forms: Mapping[str, ExistingTopic], now_ms: int) -> list[Table]:
        """Return the dropped tables whose topics were deleted."""
        missing = {
            table.table_id: table
            for table in dropped
            if (form := forms.get(table.topic)) is None or table.topic_id not in ("", form.topic_id)
        }
        self._missing = {table_id: self._missing.get(table_id, now_ms) for table_id in missing}
        return [missing[table_id] for table_id, since in self._missing.items() if now_ms >= since + _GONE_MS]

    def _grow_virtual(self, stream: Stream) -> None:
        """Give a stream's topics of virtual results as many partitions as its source has.

        A virtual result is in the partition with the same number as its event's partition.
        """
        groups = self._working.inventory.virtual_groups(stream.stream_id)
        topics = list(map(self._settings.topics.own_results, groups))
        wanted = len(stream.start_offsets)
        for topic, form in self._topics.forms(topics).items():
            if form.partitions < wanted:
                self._topics.grow(topic, wanted)

    def _events_deleted(self, old: Stream) -> Iterator[OutgoingRecord]:
        """Yield a dead letter for each partition of a deleted topic. Each letter names the first unevaluated offset."""
        (reached,) = self._working.evaluator.evaluated([old])
        for partition, position in reached.items():
            first = position - old.base
            detail = f"The topic was deleted and made again: its events from offset {first} on, if any, are lost."
            source = f"{old.topic}/{partition}/{first}"
            headers = (("code", b"events-deleted"), ("detail", detail.encode()), ("source", source.encode()))
            yield OutgoingRecord(self._settings.topics.deadletters, None, None, headers)


def seen(stream: Stream, form: ExistingTopic) -> Stream:
    """Return a stream with the partitions, the topic id and the generation that follow from the state of its topic.

    Example:
        >>> stream = Stream("s_1", "quotes", (), "quotes", "json", {"0": 4}, "", topic_id="a")
        >>> seen(stream, ExistingTopic("a", 2, 1)).start_offsets
        {'0': 4, '1': 0}
        >>> renewed = seen(stream, ExistingTopic("b", 1, 1))
        >>> (renewed.generation, renewed.start_offsets)
        (2, {'0': 10000000000000})
    """
    if stream.topic_id not in ("", form.topic_id):
        renewed = msgspec.structs.replace(stream, generation=stream.generation + 1, topic_id=form.topic_id)
        # If the new topic has fewer partitions, the missing ones get start offsets too. Otherwise, ticks would wait for
        # the events that these partitions of the old topic had, and that can no longer be evaluated.
        count = max(form.partitions, len(stream.start_offsets))
        return msgspec.structs.replace(renewed, start_offsets={str(number): renewed.base for number in range(count)})
    starts = {str(number): stream.base for number in range(form.partitions)} | stream.start_offsets
    return msgspec.structs.replace(stream, topic_id=form.topic_id, start_offsets=starts)
