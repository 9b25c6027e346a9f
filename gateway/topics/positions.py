"""The positions at which readers of new CQs begin: the ends of result topics. Missing topics are made first."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.kafka import Topics
from gateway.model.records import Destination
from gateway.state.working_copy import WorkingCopy
from gateway.topics.result_topics import ResultTopics
from gateway.topics.topic_desk import TopicDesk
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.ids import DestinationId, StreamId
from grouping.settings.settings import Settings

__all__ = ["TopicEnds", "dedicated_topic", "topic_of"]

_MOST_WIDE = 10_000


def dedicated_topic(settings: Settings, destination_id: DestinationId) -> str:
    """Return the name of a destination's own topic."""
    return settings.topics.own_results(destination_id)


def topic_of(settings: Settings, destination: Destination) -> str:
    """Return the topic of a destination's results."""
    match destination.mode:
        case "dedicated":
            return dedicated_topic(settings, destination.destination_id)
        case "virtual":
            return settings.topics.own_results(destination.group_id)
        case _:
            return settings.topics.results


class TopicEnds:
    """The ends of topics. Each end is read only once in a unit of work.

    The ends are read before the unit is committed, and the evaluator writes results of the unit's CQs only after the
    commit. So a reader that begins at the ends misses no result.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        result_topics: ResultTopics,
        working: WorkingCopy,
        shared_partitions: int,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self.result_topics = result_topics
        self._working = working
        self.shared_partitions = shared_partitions
        self._shared_topic = settings.topics.results
        self.topic_desk = TopicDesk(topics)
        self._wide: dict[str, int] = {}
        """Topic of a group → a number of partitions that the topic is known to have at least."""
        self._made: set[str] = set()
        """The topics that were made for this unit, or for an earlier unit that was abandoned."""
        self.begin()

    def begin(self, *, patient: bool = True) -> None:
        """Start a unit of work.

        Args:
            patient: Whether the unit waits for its new topics. If not, commands that need new topics are held.
        """
        self._patient = self.topic_desk.patient = patient
        self.result_topics.begin(patient=patient)
        self._ends: dict[tuple[str, int], int] = {}
        self._source_ends: dict[str, tuple[int, ...]] = {}
        self._used: set[str] = set()

    def prepare(self, new: Iterable[DestinationId], room: int, existing: Iterable[DestinationId]) -> None:
        """Ask for the ends of the topics of dedicated destinations.

        A unit that waits for its new topics first makes the topics of the new destinations.

        Args:
            new: The new destinations.
            room: The largest number of topics that may be made.
            existing: The existing destinations.
        """
        topics = self.result_topics
        wanted = [dedicated_topic(self._settings, name) for name in new]
        answers = topics.answers(wanted)
        self._made |= {topic for topic, made in answers.items() if made}
        if self._patient:
            # `make` does not change existing topics: an ended destination may still have its topic.
            rest = [topic for topic in wanted if topic not in answers][:room]
            self._made |= topics.make(dict.fromkeys(rest, 1))
        self._ends |= self._topics.offsets.ends([(topic, 0) for topic in wanted if topic in topics])
        there = [(dedicated_topic(self._settings, name), 0) for name in existing]
        found = self._topics.offsets.known_ends([place for place in there if place not in self._ends])
        self._ends |= found
        silent = self._topics.offsets.silent(there)
        topics.lose(place[0] for place in there if place not in self._ends and place not in silent)

    def require(self, destination: Destination) -> None:
        """Ensure that the topic of a dedicated or virtual destination exists.

        Raises:
            InputError: There are too many topics, or Kafka refuses the topic. The code is quota-exceeded, not-allowed
                or unavailable.
            NotYet: The topic is being made.
        """
        if destination.mode in ("dedicated", "virtual"):
            topic = topic_of(self._settings, destination)
            virtual = destination.mode == "virtual"
            partitions = self._width(destination.stream_id) if virtual else 1
            if self.result_topics.require(topic, partitions):
                self._made.add(topic)
            elif virtual and self._lingers(destination):
                self._widen(topic, partitions)

    def _lingers(self, destination: Destination) -> bool:
        """Tell whether a group has a topic, but no CQs with virtual destinations.

        `SourceWatch` gives new partitions only to the topics of groups that have such CQs. So this topic may have fewer
        partitions than the source.
        """
        return destination.group_id not in self._working.inventory.virtual_groups(destination.stream_id)

    def _widen(self, topic: str, partitions: int) -> None:
        if self._wide.get(topic, 0) >= partitions:
            return
        with self.topic_desk.of(topic, "its partitions") as topics:
            form = topics.forms([topic]).get(topic)
            if form is not None and form.partitions < partitions:
                topics.grow(topic, partitions)
        if len(self._wide) >= _MOST_WIDE:
            self._wide.clear()
        self._wide[topic] = partitions

    def _width(self, stream_id: StreamId) -> int:
        return len(self._working.inventory.streams[stream_id].start_offsets)

    def finish(self) -> None:
        """End a unit: request the topics for held commands, and delete new topics that no destination uses."""
        self.result_topics.finish()
        self.result_topics.delete(self._made - self._used)
        self._made = set()

    def end(self, destination: Destination) -> int:
        """Return the offset at which a reader of a shared or dedicated destination begins."""
        if destination.mode == "shared":
            topic = self._shared_topic
            if (topic, 0) not in self._ends:
                self._ends |= self._topics.offsets.ends([(topic, number) for number in range(self.shared_partitions)])
            return self._ends[topic, destination.partition]
        topic = topic_of(self._settings, destination)
        self._used.add(topic)
        if (topic, 0) not in self._ends:
            self.require(destination)
            self._ends |= self._topics.offsets.ends([(topic, 0)])
        return self._ends[topic, 0]

    def source_ends(self, stream_id: StreamId) -> tuple[int, ...]:
        """Return, by partition, the positions at the present ends of a stream's topic.

        Later events have these or higher positions. The result is empty if the topic does not exist, and a partition
        whose end is unknown counts as empty.
        """
        if stream_id not in self._source_ends:
            stream = self._working.inventory.streams[stream_id]
            partitions = self._topics.partitions(stream.topic) or 0
            places = [(stream.topic, number) for number in range(partitions)]
            ends = self._topics.offsets.known_ends(places)
            self._source_ends[stream_id] = tuple(ends.get(place, 0) + stream.base for place in places)
        return self._source_ends[stream_id]

    def present_source_ends(self, stream_id: StreamId) -> tuple[int, ...]:
        """Ask Kafka again, even if the unit has asked already, and return `certain_source_ends`."""
        self._source_ends.pop(stream_id, None)
        return self.certain_source_ends(stream_id)

    def certain_source_ends(self, stream_id: StreamId) -> tuple[int, ...]:
        """Return `source_ends` if the end of each partition is known.

        Raises:
            InputError: ``unavailable``: the end of a partition is unknown.
        """
        ends, topic = self.source_ends(stream_id), self._working.inventory.streams[stream_id].topic
        if not ends or self._topics.offsets.silent([(topic, number) for number in range(len(ends))]):
            raise _silent(topic, "Edges begin at the ends of its partitions")
        return ends

    def starting_now(self, stream: Stream) -> Stream:
        """Return a new stream with the present ends of its topic as its start offsets.

        Raises:
            InputError: ``unavailable``: the end of a partition is unknown.
        """
        places = [(stream.topic, number) for number in range(self._topics.partitions(stream.topic) or 0)]
        ends = self._topics.offsets.known_ends(places)
        if not places or ends.keys() < set(places) or self._topics.offsets.silent(places):
            raise _silent(stream.topic, "The changes of its rows begin at the ends of its partitions")
        return msgspec.structs.replace(
            stream, start_offsets={str(number): ends[place] for number, place in enumerate(places)}
        )

    def virtual_ends(self, destination: Destination) -> tuple[int, ...]:
        """Return, by partition, the offset at which a reader of a group's virtual results begins."""
        topic, partitions = topic_of(self._settings, destination), self._width(destination.stream_id)
        self._used.add(topic)
        if (topic, 0) not in self._ends:
            self.require(destination)
            self._ends |= self._topics.offsets.ends([(topic, number) for number in range(partitions)])
        return tuple(self._ends[topic, number] for number in range(partitions))


def _silent(topic: str, why: str) -> InputError:
    return InputError(
        f'topic "{topic}" does not answer',
        code="unavailable",
        detail=f"{why}, and a partition has no leader or is gone.",
        hint="Send the command again.",
    )
