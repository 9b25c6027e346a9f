"""Where readers begin: the ends of result partitions, asked for once per unit of work, and topics made in time."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.kafka import Topics
from gateway.records import Destination
from gateway.working_copy import WorkingCopy
from grouping.settings import Settings

__all__ = ["Positions", "dedicated_topic", "result_config", "topic_of"]

_LARGEST_BATCH = 2 << 20
"""Bytes of the largest batch of results: one record of a megabyte with its headers."""


def dedicated_topic(settings: Settings, destination_id: str) -> str:
    """Return the name of a destination's own topic."""
    return settings.topic(f"results.{destination_id}")


def topic_of(settings: Settings, destination: Destination) -> str:
    """Return the topic that a destination's results are on."""
    match destination.mode:
        case "dedicated":
            return dedicated_topic(settings, destination.destination_id)
        case "virtual":
            return settings.topic(f"results.{destination.group_id}")
        case _:
            return settings.topic("results")


class Positions:
    """Ends of the result topics as they were when a unit of work began to ask.

    They are read before the unit is committed. No result of a CQ is written before that, so none lies below.
    """

    def __init__(self, settings: Settings, topics: Topics, working: WorkingCopy, shared_partitions: int) -> None:
        self._settings = settings
        self._topics = topics
        self._working = working
        self.shared_partitions = shared_partitions
        self.begin()

    def begin(self) -> None:
        """Start a unit of work."""
        self._ends: dict[tuple[str, int], int] = {}
        self._source_ends: dict[str, tuple[int, ...]] = {}
        self._made: set[str] = set()
        self._used: set[str] = set()

    def prepare(self, new: Iterable[str], existing: Iterable[str]) -> None:
        """Create the topics of new dedicated destinations, and ask for the ends of all, at once."""
        wanted = {dedicated_topic(self._settings, name): name for name in new}
        # One that is there already may be that of a destination whose end is still to be written, or read.
        self._made |= {
            wanted[topic] for topic in self._topics.create(dict.fromkeys(wanted, 1), result_config(self._settings))
        }
        places = [(topic, 0) for topic in (*wanted, *(dedicated_topic(self._settings, name) for name in existing))]
        self._ends |= self._topics.ends([place for place in places if place not in self._ends])

    def unneeded(self) -> list[str]:
        """Return the topics made for destinations that did not come to be."""
        return [dedicated_topic(self._settings, name) for name in self._made - self._used]

    def end(self, destination: Destination) -> int:
        """Return where a reader of a shared or dedicated destination begins."""
        if destination.mode == "shared":
            topic = self._settings.topic("results")
            if (topic, 0) not in self._ends:
                self._ends |= self._topics.ends([(topic, number) for number in range(self.shared_partitions)])
            return self._ends[topic, destination.partition]
        self._used.add(destination.destination_id)
        place = (dedicated_topic(self._settings, destination.destination_id), 0)
        if place not in self._ends:
            self._topics.create({place[0]: 1}, result_config(self._settings))
            self._ends |= self._topics.ends([place])
        return self._ends[place]

    def source_ends(self, stream_id: str) -> tuple[int, ...]:
        """Return by partition where a stream's topic ends: what is published from now on lies there or above."""
        if stream_id not in self._source_ends:
            stream = self._working.streams[stream_id]
            partitions = self._topics.partitions(stream.topic) or 0
            places = [(stream.topic, number) for number in range(partitions)]
            ends = self._topics.known_ends(places)
            self._source_ends[stream_id] = tuple(ends.get(place, 0) + stream.base for place in places)
        return self._source_ends[stream_id]

    def virtual_ends(self, stream_id: str, group_id: str) -> tuple[int, ...]:
        """Return where a reader of a group's virtual results begins, by partition."""
        topic = self._settings.topic(f"results.{group_id}")
        partitions = len(self._working.streams[stream_id].start_offsets)
        if (topic, 0) not in self._ends:
            self._topics.create({topic: partitions}, result_config(self._settings))
            self._ends |= self._topics.ends([(topic, number) for number in range(partitions)])
        return tuple(self._ends[topic, number] for number in range(partitions))


def result_config(settings: Settings) -> dict[str, str]:
    """Return the configuration of result topics: retention counts from when a result was written."""
    return {
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": str(_LARGEST_BATCH),  # whatever the broker's default: results are of up to a megabyte
        "retention.ms": str(round(settings.results.retention_hours * 3_600_000)),
    }
