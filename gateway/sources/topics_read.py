"""The topics of streams and tables: checks that a subscriber may read a topic, and makes missing topics."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.kafka import ExistingTopic, TopicRefusal
from gateway.sources.declarations import Declaration, check_name, too_many
from gateway.topics.source_policy import check_registry, check_source, readable_names
from gateway.topics.topic_desk import TopicQuestions
from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateStream, CreateTable
from grouping.settings.settings import Settings
from grouping.statements.declaration import check_schemas

__all__ = ["MadeTopics", "admitted_topic"]

_KINDS: dict[type, str] = {CreateStream: "stream", CreateTable: "table"}


class MadeTopics:
    """The topics that were made for subscribers' streams and tables, including topics of dropped sources.

    The live sources of a subscriber may have at most as many partitions as the limit says. The topics of live and
    dropped sources together may have at most twice as many partitions. Without this second limit, a loop of CREATE and
    DROP would leave thousands of topics. After a restart, the gateway no longer knows the topics of dropped sources.
    """

    def __init__(self) -> None:
        """Begin without topics."""
        self._made: dict[str, set[str]] = {}

    def note(self, owner: str, topic: str) -> None:
        """Note that a topic was made for a subscriber."""
        self._made.setdefault(owner, set()).add(topic)

    def of(self, owner: str) -> set[str]:
        """Return the topics that were made for a subscriber; some of them may have been deleted since."""
        return self._made.get(owner, set())


def admitted_topic(
    declaration: Declaration,
    topics: TopicQuestions,
    made: MadeTopics,
    statement: CreateStream | CreateTable,
    config: Mapping[str, str],
) -> ExistingTopic:
    """Check that a source may be declared, make its topic if it is missing, and return the topic's form.

    Args:
        declaration: The command and the live sources.
        topics: Kafka's topics. While Kafka has not answered, the command waits (`NotYet`).
        made: The topics that were made for subscribers; a topic that is made here is added.
        statement: The parsed command.
        config: The configuration for a new topic.

    Raises:
        InputError: stream-exists, stream-mismatch, not-allowed, quota-exceeded.
        NotYet: Kafka has not answered.
    """
    settings, inventory, owner = declaration.settings, declaration.working.inventory, declaration.origin.owner
    check_name(declaration.catalog, statement.name)
    _check_declaration(settings, topics, statement, owner)
    live = inventory.streams if isinstance(statement, CreateStream) else inventory.tables
    declaration.check_count(_KINDS[type(statement)], live.values())
    found = _check_partitions(declaration, topics, made, statement)
    form = _source_form(settings, topics, statement, owner, found, config)
    if found is None:
        made.note(owner, statement.topic)
    return form


def _check_declaration(
    settings: Settings, topics: TopicQuestions, statement: CreateStream | CreateTable, subscriber: str
) -> None:
    """Check that a subscriber may read a topic, and that the schemas in the statement fit its columns.

    Raises:
        InputError: stream-mismatch, not-allowed.
    """
    check_source(settings, topics, statement.topic, subscriber)
    if isinstance(statement, CreateStream) and statement.registry is not None:
        check_registry(settings, statement.registry)
    check_schemas(statement, statement.columns)


def _check_partitions(
    declaration: Declaration, topics: TopicQuestions, made: MadeTopics, statement: CreateStream | CreateTable
) -> ExistingTopic | None:
    """Check that the sender's limits allow the partitions of another source.

    Returns:
        The form of the topic; None if the topic does not exist.

    Raises:
        InputError: quota-exceeded.
        NotYet: Kafka has not answered.
    """
    owner, inventory = declaration.origin.owner, declaration.working.inventory
    streams = [stream for stream in inventory.streams.values() if stream.owner == owner]
    tables = [table.topic for table in inventory.tables.values() if table.owner == owner]
    left = made.of(owner).difference(tables, (stream.topic for stream in streams), [statement.topic])
    forms = topics.forms(sorted({statement.topic, *tables, *left}))
    found = forms.get(statement.topic)
    wanted = statement.partitions or 0 if found is None else found.partitions
    have = sum(len(stream.start_offsets) for stream in streams)
    have += sum(forms[topic].partitions for topic in tables if topic in forms)
    lingering = sum(forms[topic].partitions for topic in left if topic in forms)
    limit, kind = inventory.limit(owner, "partitions", declaration.settings.limits), _KINDS[type(statement)]
    present = f"Its streams and tables have {have}, and this one would have {wanted}"
    if have + wanted > limit:
        raise too_many(owner, "partitions", present, limit, kind)
    if have + lingering + wanted > 2 * limit:
        present += f", and topics of dropped ones have {lingering} (together at most twice the limit)"
        raise too_many(owner, "partitions", present, limit, kind)
    return found


def _source_form(
    settings: Settings,
    topics: TopicQuestions,
    statement: CreateStream | CreateTable,
    owner: str,
    found: ExistingTopic | None,
    config: Mapping[str, str],
) -> ExistingTopic:
    """Return the form of a statement's topic. A missing topic is made if the statement has the option `partitions`.

    Args:
        settings: The settings.
        topics: Kafka's topics.
        statement: The parsed command.
        owner: The sender. Hints name only topics that the sender may read.
        found: The topic's form; None if the topic does not exist.
        config: The configuration for a new topic.

    Raises:
        InputError: stream-mismatch.
    """
    if found is not None:
        return _checked(statement, found)
    if statement.partitions is None:
        inferred = isinstance(statement, CreateStream) and statement.from_topic
        raise InputError(
            f'topic "{statement.topic}" does not exist',
            code="stream-mismatch",
            detail="Columns are inferred from the records of a topic that exists."
            if inferred
            else "A missing topic is made only when its partitions are given.",
            hint=near_name(statement.topic, readable_names(settings, topics, owner))
            or ("Declare the columns." if inferred else "Add partitions = 2 to the WITH clause."),
        )
    try:
        topics.create({statement.topic: statement.partitions}, config)
    except TopicRefusal as error:
        # Kafka refuses a name that differs from an existing topic's name only in "." and "_", and may have more rules.
        raise InputError(
            error.message, code="stream-mismatch", detail=error.detail, hint="Choose another topic."
        ) from error
    return _checked(statement, topics.await_forms([statement.topic])[statement.topic])


def _checked(statement: CreateStream | CreateTable, found: ExistingTopic) -> ExistingTopic:
    if statement.partitions not in (None, found.partitions):
        raise InputError(
            f'topic "{statement.topic}" has another number of partitions',
            code="stream-mismatch",
            detail=f"The topic has {found.partitions}, and the statement says {statement.partitions}.",
            hint=f"Say partitions = {found.partitions}, or leave it out.",
        )
    return found
