"""Compares the gateway's notes in Redis with the catalog and the replies.

The notes are ends under way, secrets, lists of timer-based CQs, command ids and match counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from gateway.doctor.catalog import CatalogState
from gateway.doctor.finding import Finding, shown
from gateway.doctor.registry_check import REFILL_HINT, differences
from gateway.kafka import LogReader, Topics
from gateway.state.command_ids import CommandIds, remembered_id
from gateway.state.stored_notes import StoredNotes
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import Subscriber
from grouping.settings.settings import Settings

__all__ = ["check_notes"]

_REPLIES = 200
"""The number of replies, from the end of each partition of `cq.replies`, whose command ids are checked."""
_SAME_DAYS = (
    "If the gateway has another CQ_COMMANDS_REMEMBER_DAYS than `cq doctor`, first run `cq doctor` with the gateway's."
)


def check_notes(
    settings: Settings, topics: Topics, catalog: CatalogState, working: WorkingCopy, now_ms: int, kafka_ms: int
) -> Iterator[Finding]:
    """Yield findings about notes that Redis lacks, notes that the catalog lacks, and notes with wrong values.

    Args:
        settings: The settings with the servers' addresses.
        topics: Kafka's topics.
        catalog: The expected state.
        working: The working copy, with the sources in Redis.
        now_ms: The present by the gateway's clock, epoch milliseconds.
        kafka_ms: The present by the brokers' clocks, epoch milliseconds. The times of records are compared with it.

    Raises:
        OperationalError: A server does not answer.
        msgspec.MsgspecError: A value in Redis cannot be read as the notice of an end.
    """
    notes = StoredNotes(settings)
    ends = {batch: sorted(map(repr, some)) for batch, some in catalog.ends.items()}
    yield from differences("end", ends, {batch: sorted(map(repr, some)) for batch, some in notes.ends().items()})
    yield from differences("secret", catalog.secrets, notes.secrets())
    yield from _check_timed(catalog, notes)
    yield from _check_ids(settings, topics, working, now_ms, kafka_ms)
    streams = working.inventory.streams
    if lost := {streams[stream_id].name for stream_id in notes.streams_without_totals(streams)}:
        detail = f"Redis has lost the match counts of the CQs of {shown(lost, 'stream')}."
        hint = "A running gateway writes them again; otherwise DESCRIBE CQ counts from zero. No result depends on them."
        yield Finding("match-totals-missing", "", detail, hint, names=frozenset(lost))


def _check_timed(catalog: CatalogState, notes: StoredNotes) -> Iterator[Finding]:
    """Yield findings about the lists of timer-based CQs, which SHOW TIMERS reads."""
    subscribers = sorted({key.subscriber for key in catalog.cqs})
    wanted: dict[Subscriber, set[str]] = {subscriber: set() for subscriber in subscribers}
    for key, record in catalog.cqs.items():
        if record.destination.trigger.timed:
            wanted[key.subscriber].add(key.name)
    found = notes.timed_names(subscribers)
    yield from differences("timed", *(_flat(each) for each in (wanted, found)))


def _flat(names: dict[Subscriber, set[str]]) -> dict[str, None]:
    return {f"{subscriber}.{name}": None for subscriber, own in names.items() for name in own}


def _check_ids(
    settings: Settings, topics: Topics, working: WorkingCopy, now_ms: int, kafka_ms: int
) -> Iterator[Finding]:
    """Yield a finding if Redis lacks command ids of the last replies. If sent again, these commands would run again."""
    topic = settings.topics.replies
    places = [(topic, number) for number in range(topics.partitions(topic) or 0)]
    first, ends = topics.offsets.beginnings(places), topics.offsets.ends(places, committed=True)
    offsets = {place[1]: max(first[place], ends[place] - _REPLIES) for place in places if ends[place] > first[place]}
    since_ms = kafka_ms - round(settings.commands.remember_days * 86_400_000)
    answered: dict[bytes, str] = {}
    with closing(LogReader(settings)) as reader:
        for record in reader.since(topic, offsets) if offsets else ():
            command_id = remembered_id(record.headers)
            if record.key and record.time_ms > since_ms and command_id is not None:
                answered[CommandIds.key(record.key, command_id)] = command_id
    if lost := answered.keys() - CommandIds(settings, working).find(list(answered), now_ms).keys():
        names = {answered[name] for name in lost}
        detail = f"Redis lacks {shown(names, 'command id')} of answered commands. If sent again, they would run again."
        yield Finding("id-missing", "", detail, f"{REFILL_HINT} {_SAME_DAYS}", "refill Redis", frozenset(names))
