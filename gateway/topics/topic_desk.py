"""Asks Kafka for the facts about topics that commands need.

Some commands need answers from Kafka (CREATE STREAM, CREATE TABLE, DESCRIBE TABLE). If the gateway's main thread waited
for the answers, all other commands would wait too, for some tens of milliseconds. So a thread asks, and the command is
held meanwhile. After each answer the command is tried again from its beginning, with the known answers in memory. A
second thread reads records, since this may take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from gateway.kafka import ExistingTopic, Offsets, Partition, Topics
from gateway.model.held import NotYet

__all__ = ["OffsetQuestions", "TopicDesk", "TopicQuestions"]

_Answer = TypeVar("_Answer")
_AskedPartitions = Sequence[Partition]
_EndOffsets = dict[Partition, int]


class OffsetQuestions(Protocol):
    """The part of `Offsets` that commands need. The methods raise `NotYet` if the answer has not come yet."""

    def beginnings(self, places: _AskedPartitions) -> _EndOffsets:
        """Return, for each partition, the lowest offset that Kafka still has."""

    def ends(self, places: _AskedPartitions) -> _EndOffsets:
        """Return the end offset of each partition."""

    def known_ends(self, places: _AskedPartitions, committed: bool = True) -> _EndOffsets:
        """Return the end offset of each existing partition; without `committed`, uncommitted records count too."""


class TopicQuestions(Protocol):
    """The part of `Topics` that commands need. The methods raise `NotYet` if the answer has not come yet."""

    def names(self) -> set[str]:
        """Return the names of all topics."""

    def forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return topic → its id, its number of partitions and its number of replicas, for topics that exist."""

    def await_forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return the same as `forms`; wait for new topics, which some brokers may not know yet."""

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the configurations of the existing topics."""

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> set[str]:
        """Create topics with the given numbers of partitions, and return the new topics.

        Raises:
            TopicRefusal: Kafka refuses a topic.
        """

    def grow(self, topic: str, partitions: int) -> None:
        """Raise the number of a topic's partitions to `partitions`."""

    def sampled(self, topic: str, partitions: int, read: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Call a function, in a thread, with the values of the topic's latest records; return its result.

        Args:
            topic: The topic.
            partitions: The number of its partitions.
            read: The function. Its arguments are the values of the records, and `arguments`. The function must not use
                state that other threads use.
            arguments: Further arguments for the function.
        """

    @property
    def offsets(self) -> OffsetQuestions:
        """Offsets of the topics' partitions."""


class TopicDesk:
    """Sends the questions of commands to Kafka, one after the other."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topic-desk")
        self._reading_thread = ThreadPoolExecutor(1, thread_name_prefix="topic-records")
        self.patient = True
        """Whether the unit of work waits for the answers. If not, the commands are held."""
        self.forget()

    def forget(self) -> None:
        """Forget all answers, so that held commands ask again."""
        self._questions: dict[str, _CommandQuestions] = {}

    @contextmanager
    def of(self, asker: str, place: str, *, held: bool = False) -> Iterator[TopicQuestions]:
        """Give a command an object for its questions. When the command is done or refused, the answers are forgotten.

        Args:
            asker: The subscriber who sent the command, or for a question about a group's topic, this topic. Only one
                command of an asker can be held.
            place: The command's place on its topic, or another text that identifies the question at each try.
            held: Whether the command is held even in a patient unit, because its answers may take seconds.
        """
        questions = self._questions.get(asker)
        if questions is None or questions.place != place:
            if self.patient and not held:
                yield self._topics
                return
            questions = self._questions[asker] = _CommandQuestions(
                self._topics, self._thread, self._reading_thread, place
            )
        questions.begin()
        try:
            yield questions
        except NotYet:
            raise
        except BaseException:
            del self._questions[asker]
            raise
        del self._questions[asker]


class _CommandQuestions:
    """The questions of a command, in their order, with the answers."""

    def __init__(
        self, topics: Topics, thread: ThreadPoolExecutor, reading_thread: ThreadPoolExecutor, place: str
    ) -> None:
        self._topics = topics
        self._thread = thread
        self._reading_thread = reading_thread
        self.place = place
        self._questions: list[tuple[tuple[Any, ...], Future[Any]]] = []
        self._number = 0

    def begin(self) -> None:
        """Begin another try of the command, which asks its questions again in the same order."""
        self._number = 0

    def _ask(self, method: Callable[..., _Answer], *arguments: object) -> _Answer:
        return self._ask_on(self._thread, method, *arguments)

    def _ask_on(self, thread: ThreadPoolExecutor, method: Callable[..., _Answer], *arguments: object) -> _Answer:
        question, number = (method, *arguments), self._number
        self._number += 1
        if number < len(self._questions) and self._questions[number][0] != question:
            del self._questions[number:]  # an earlier answer has changed, so the command asks other questions now
        if number == len(self._questions):
            self._questions.append((question, thread.submit(method, *arguments)))
        answer: Future[_Answer] = self._questions[number][1]
        if not answer.done():
            raise NotYet(answer.done)
        return answer.result()

    @property
    def offsets(self) -> _CommandOffsets:
        return _CommandOffsets(self._topics.offsets, self._ask)

    def names(self) -> set[str]:
        return self._ask(self._topics.names)

    def forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        return self._ask(self._topics.forms, list(topics))

    def await_forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        return self._ask(self._topics.await_forms, list(topics))

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return self._ask(self._topics.configs, list(topics))

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> set[str]:
        return self._ask(self._topics.create, wanted, config)

    def grow(self, topic: str, partitions: int) -> None:
        self._ask(self._topics.grow, topic, partitions)

    def sampled(self, topic: str, partitions: int, read: Callable[..., _Answer], *arguments: object) -> _Answer:
        found: _Answer = self._ask_on(self._reading_thread, self._topics.sampled, topic, partitions, read, *arguments)
        return found


class _CommandOffsets:
    """The questions of a command about offsets."""

    def __init__(self, offsets: Offsets, ask: Callable[..., _EndOffsets]) -> None:
        self._offsets = offsets
        self._ask = ask

    def beginnings(self, places: _AskedPartitions) -> _EndOffsets:
        return self._ask(self._offsets.beginnings, places)

    def ends(self, places: _AskedPartitions) -> _EndOffsets:
        return self._ask(self._offsets.ends, places)

    def known_ends(self, places: _AskedPartitions, committed: bool = True) -> _EndOffsets:
        return self._ask(self._offsets.known_ends, places, committed)
