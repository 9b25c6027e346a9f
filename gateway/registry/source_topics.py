"""The topics that streams and tables read: whether one may be read, and made where it is missing."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.kafka import TopicForm, TopicRefusal
from gateway.topics.held_topics import TopicQuestions
from gateway.topics.source_policy import check_source
from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateStream, CreateTable
from grouping.settings.settings import Settings
from schemas.avro_columns import AvroMismatch, check_avro_columns

__all__ = ["check_declaration", "source_form"]


def check_declaration(
    settings: Settings, topics: TopicQuestions, statement: CreateStream | CreateTable, subscriber: str
) -> None:
    """Check that a subscriber may read a topic, and that its schema has the columns.

    Raises:
        InputError: stream-mismatch, not-allowed.
    """
    check_source(settings, topics, statement.topic, subscriber)
    if statement.schema is not None:
        try:
            check_avro_columns(statement.schema, statement.columns)
        except AvroMismatch as error:
            raise InputError(error.message, code="stream-mismatch", detail=error.detail) from error


def source_form(
    topics: TopicQuestions, statement: CreateStream | CreateTable, found: TopicForm | None, config: Mapping[str, str]
) -> TopicForm:
    """Return the form of the topic that a statement names, which is made where its partitions are given.

    Args:
        topics: Kafka's topics.
        statement: The parsed command.
        found: The topic's form, None where there is none.
        config: What a topic is made with.

    Raises:
        InputError: stream-mismatch.
    """
    if found is not None:
        return _checked(statement, found)
    if statement.partitions is None:
        raise InputError(
            f'topic "{statement.topic}" does not exist',
            code="stream-mismatch",
            detail="A missing topic is made only when its partitions are given.",
            hint=near_name(statement.topic, topics.names()) or "Add partitions = 2 to the WITH clause.",
        )
    try:
        topics.create({statement.topic: statement.partitions}, config)
    except TopicRefusal as error:
        # Kafka takes "a.b" and "a_b" for one name, and may have policies of its own.
        raise InputError(
            error.message, code="stream-mismatch", detail=error.detail, hint="Choose another topic."
        ) from error
    return _checked(statement, topics.forms([statement.topic])[statement.topic])


def _checked(statement: CreateStream | CreateTable, found: TopicForm) -> TopicForm:
    if statement.partitions not in (None, found.partitions):
        raise InputError(
            f'topic "{statement.topic}" has another number of partitions',
            code="stream-mismatch",
            detail=f"It has {found.partitions}, and the statement says {statement.partitions}.",
            hint=f"Say partitions = {found.partitions}, or leave it out.",
        )
    return found
