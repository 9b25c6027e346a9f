"""The topics of dedicated and virtual destinations: makes and deletes them, and limits their number.

After its destination has ended, a topic stays for late readers. The limits include topics of ended destinations, since
a CQ may be created and dropped fifty times a second.

Kafka takes some tens of milliseconds to make or delete a topic. A thread sends these requests, one after the other.
Meanwhile a command that needs a new topic is held, and commands of other subscribers are carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from gateway.kafka import TopicRefusal, Topics
from gateway.model.held import NotYet
from gateway.state.commit import Commits
from grouping.model.errors import InputError
from grouping.model.ids import DestinationId
from grouping.model.wording import counted
from grouping.settings.settings import Settings

__all__ = ["ResultTopics", "result_config"]

_Made = tuple[set[str], dict[str, TopicRefusal]]
"""New topics; and topic → Kafka's refusal."""

_REFUSALS = 50
"""After this number of refusals, a unit of work requests no more topics, since each request takes some milliseconds."""
_LARGEST_BATCH = 2 << 20
"""The largest size of a batch of results, in bytes. The value of a result may have up to a megabyte, and its headers
need further space."""


class ResultTopics:
    """The topics `cq.results.…`. Such a topic is for a dedicated destination, or for a group's virtual destinations."""

    def __init__(self, settings: Settings, topics: Topics, commits: Commits) -> None:
        self._settings = settings
        self._topics = topics
        self._names = settings.topics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topics")
        self._dedicated: set[str] = set()
        self._virtual: set[str] = set()
        self._forget()
        self.begin()
        commits.before_write.append(lambda _: commits.note_made(self._take_made()))

    def _forget(self) -> None:
        self._requests: dict[str, Future[_Made]] = {}
        """Topic that is being made → the future with Kafka's answer."""
        self._answered: dict[str, bool | TopicRefusal] = {}
        """Topic that an earlier unit has requested → Kafka's answer: True if Kafka has made the topic, False if the
        topic existed already, or the refusal."""
        self._made: set[str] = set()
        """The topics that were made since the last unit was written."""
        self._deletions: list[Future[set[str]]] = []
        """Deletions under way. A deletion returns the topics that Kafka has refused to delete."""

    def begin(self, *, patient: bool = True) -> None:
        """Start a unit of work. Topics that Kafka has refused in earlier units may be requested again.

        Args:
            patient: Whether the unit waits for its new topics. If not, commands that need new topics are held.

        Raises:
            KafkaUnavailable: It is unknown whether a requested topic was made or deleted.
        """
        self._patient = patient
        self._refused: dict[str, TopicRefusal] = {}
        self._wanted: dict[str, int] = {}
        """Topic that a held command needs → its number of partitions. The topics are requested at the unit's end."""
        for answer in {each for each in self._requests.values() if each.done()}:
            self._take_answer(answer)
        ended = [each for each in self._deletions if each.done()]
        self._deletions = [each for each in self._deletions if not each.done()]
        for deletion in ended:
            for topic in deletion.result():
                self._like(topic).add(topic)

    def finish(self) -> None:
        """End a unit of work: request the topics that held commands need."""
        self._ask(self._wanted)
        self._wanted = {}

    def _ask(self, wanted: Mapping[str, int]) -> None:
        if wanted:
            answer = self._thread.submit(self._topics.create_each, wanted, result_config(self._settings))
            self._requests |= dict.fromkeys(wanted, answer)
            for topic in wanted:  # the limit includes requested topics
                self._like(topic).add(topic)

    def _take_answer(self, answer: Future[_Made]) -> None:
        topics = [topic for topic, each in self._requests.items() if each is answer]
        for topic in topics:
            del self._requests[topic]
        made, refused = answer.result()
        self._made |= made
        for topic in topics:
            self._answered[topic] = refused.get(topic, topic in made)
        self.lose(refused)

    def reload(self) -> None:
        """Ask Kafka which topics exist."""
        self._thread.submit(int).result()  # waits until the thread has finished all earlier requests
        self._forget()
        self._dedicated, self._virtual = set(), set()
        for topic in self._topics.names():
            if self._names.owner_kind(topic) is not None:
                self._like(topic).add(topic)

    def __contains__(self, topic: str) -> bool:
        return topic not in self._requests and (topic in self._dedicated or topic in self._virtual)

    def _like(self, topic: str) -> set[str]:
        """Return the known topics of the same kind as a topic: dedicated or virtual topics."""
        return self._virtual if self._names.owner_kind(topic) == "group" else self._dedicated

    def room(self, live: int, is_requested: bool = True) -> int:
        """Return how many topics may still be made for dedicated destinations.

        The limit is for topics of live destinations. Live and ended destinations together may have twice the limit.

        Args:
            live: The number of live destinations with a topic.
            is_requested: Whether the CQs have PUBLISH DEDICATED. For other CQs, live and ended destinations together
                may have only one and a half times the limit.
        """
        limit = self._settings.results.dedicated_limit
        most = 2 * limit if is_requested else limit + limit // 2
        return max(min(limit - live, most - len(self._dedicated)), 0)

    def may_dedicate(self, destination_id: DestinationId, live: int, is_requested: bool) -> bool:
        """Tell whether one more live destination may have a topic of its own.

        If the number of live destinations is below the limit, a destination may always use an existing topic.
        """
        if live >= self._settings.results.dedicated_limit:
            return False
        return self._names.own_results(destination_id) in self._dedicated or self.room(live, is_requested) > 0

    def is_refused(self, topic: str) -> bool:
        """Tell whether Kafka would probably refuse a new topic, since it has refused others in this unit of work."""
        return bool(self._refused) and topic not in self

    def answers(self, topics: Iterable[str]) -> dict[str, bool]:
        """Return topic → whether it is new, for topics that an earlier unit has requested; note Kafka's refusals."""
        answers = {topic: self._answered.pop(topic) for topic in topics if topic in self._answered}
        self._refused |= {topic: answer for topic, answer in answers.items() if isinstance(answer, TopicRefusal)}
        return {topic: answer is True for topic, answer in answers.items()}

    def _take_made(self) -> set[str]:
        """Return the topics that were made since the last call."""
        made, self._made = self._made, set()
        return made

    def make(self, wanted: Mapping[str, int]) -> set[str]:
        """Make topics, and return the new topics; note Kafka's refusals.

        Args:
            wanted: Topic → number of partitions.

        Raises:
            KafkaUnavailable: Kafka failed. Some topics may have been made.
        """
        self._ask({topic: count for topic, count in wanted.items() if topic not in self._requests})
        for answer in {self._requests[topic] for topic in wanted}:
            self._take_answer(answer)
        return {topic for topic, made in self.answers(wanted).items() if made}

    def require(self, topic: str, partitions: int) -> bool:
        """Ensure that a topic exists, and return whether the topic is new.

        Args:
            topic: The name of the topic.
            partitions: The number of partitions for a new topic.

        Raises:
            InputError: There are too many topics, or Kafka refuses the topic. The code is quota-exceeded, not-allowed
                or unavailable.
            NotYet: The topic is being made.
        """
        made = self.answers([topic]).get(topic, False)
        if topic in self:
            return made
        if self._like(topic) is self._virtual:
            self._check_groups()
        if topic not in self._refused and len(self._refused) < _REFUSALS:
            if not self._patient:
                if topic not in self._requests:
                    self._wanted[topic] = partitions
                raise NotYet(partial(self._is_answered, topic))
            made = topic in self.make({topic: partitions})
        if topic not in self:
            refused = self._refused.get(topic) or _not_tried(topic)
            hint = "Try again later, or publish SHARED." if refused.code == "unavailable" else "Publish SHARED."
            raise InputError(refused.message, code=refused.code, detail=refused.detail, hint=hint) from refused
        return made

    def _is_answered(self, topic: str) -> bool:
        answer = self._requests.get(topic)
        return answer is None or answer.done()

    def _check_groups(self) -> None:
        limit, groups = self._settings.results.virtual_limit, len(self._virtual)
        if groups >= limit:
            raise InputError(
                "there are too many groups with virtual destinations",
                code="quota-exceeded",
                detail=f"{counted(groups, 'group')} have a topic, ended groups included, and the limit is {limit}.",
                hint="Publish SHARED, or leave VIRTUAL out.",
            )

    def lose(self, topics: Iterable[str]) -> None:
        """Note that topics do not exist."""
        for topic in topics:
            self._like(topic).discard(topic)

    def delete(self, topics: Iterable[str]) -> None:
        """Request the deletion of topics, and do not wait.

        From now on, the topics count as deleted. A later `begin` adds the topics again that Kafka refused to delete.
        """
        doomed = set(topics)
        if doomed:
            self.lose(doomed)
            self._deletions.append(self._thread.submit(self._topics.delete, doomed))

    def sweep(self, wanted: Iterable[str]) -> None:
        """Delete all topics except the wanted ones. A gateway that died may have left topics without a CQ."""
        self.delete((self._dedicated | self._virtual).difference(wanted))


def _not_tried(topic: str) -> TopicRefusal:
    return TopicRefusal(
        f'topic "{topic}" cannot be made now', code="unavailable", detail="Kafka has just refused many other topics."
    )


def result_config(settings: Settings) -> dict[str, str]:
    """Return the configuration of result topics. Their retention begins when the broker appends a record."""
    return {
        "message.timestamp.type": "LogAppendTime",
        # The broker's default may be too small, since a result may have a megabyte.
        "max.message.bytes": str(_LARGEST_BATCH),
        "retention.ms": str(round(settings.results.retention_hours * 3_600_000)),
    }
