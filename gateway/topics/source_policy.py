"""Checks whether a stream may read a topic, and whether it may use a schema registry.

The gateway reads topics with its own rights. So without these checks, CREATE STREAM would let a subscriber read any
topic: Kafka's own topics, and topics of other gateways with the commands and results of their subscribers.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from gateway.access.roles import readable_topics
from gateway.kafka import LARGEST_RECORD
from gateway.topics.topic_desk import TopicQuestions
from grouping.model.errors import InputError
from grouping.settings.registries import allowed_registries
from grouping.settings.settings import Settings
from schemas.topic_names import TopicNames, gateway_prefixes

__all__ = ["check_registry", "check_source", "readable_names"]


def check_source(settings: Settings, topics: TopicQuestions, topic: str, subscriber: str) -> None:
    """Check that a subscriber's stream or table may read a topic.

    Raises:
        InputError: not-allowed.
    """
    if settings.topics.is_own(topic):
        raise _refusal(
            f'topic "{topic}" belongs to the gateway',
            f'Topics that begin with "{settings.prefix}" are for its own use.',
        )
    if topic.startswith("__"):
        raise _refusal(f'topic "{topic}" belongs to Kafka', 'Topics that begin with "__" are for its own use.')
    patterns = [pattern.strip() for pattern in settings.streams.topics.split(",")]
    if not any(fnmatchcase(topic, pattern) for pattern in patterns):
        raise _refusal(f'topic "{topic}" may not be read', f"Streams may read topics like {', '.join(patterns)}.")
    granted = readable_topics(settings, subscriber)
    if granted is not None and not any(fnmatchcase(topic, pattern) for pattern in granted):
        may = f"You may read topics like {', '.join(granted)}." if granted else "You may read none."
        raise InputError(
            f'you may not read topic "{topic}"',
            code="not-allowed",
            detail=may,
            hint="Use an existing stream or table, or ask an operator.",
        )
    for other in gateway_prefixes(topics.names()):
        if TopicNames(other).is_own(topic) and _is_gateway(topics, TopicNames(other)):
            raise _refusal(
                f'topic "{topic}" belongs to another gateway', f'Topics that begin with "{other}" are for its own use.'
            )


def check_registry(settings: Settings, url: str) -> None:
    """Check that streams may use a schema registry.

    Without this check, a subscriber could make the evaluator send requests to any server in the operators' network.

    Raises:
        InputError: not-allowed.
    """
    if url not in allowed_registries(settings):
        raise InputError(
            f'registry "{url}" may not be read',
            code="not-allowed",
            detail="Streams may read the registries that the setting CQ_STREAMS_REGISTRIES names.",
            hint="Ask an operator, or give the schemas themselves: schemas = '{…}'.",
        )


def readable_names(settings: Settings, topics: TopicQuestions, subscriber: str) -> list[str]:
    """Return, for hints, the names of topics that a subscriber's stream may read."""
    patterns = [pattern.strip() for pattern in settings.streams.topics.split(",")]
    granted = readable_topics(settings, subscriber)
    return [
        name
        for name in topics.names()
        if not settings.topics.is_own(name)
        and not name.startswith("__")
        and any(fnmatchcase(name, pattern) for pattern in patterns)
        and (granted is None or any(fnmatchcase(name, pattern) for pattern in granted))
    ]


def _is_gateway(topics: TopicQuestions, names: TopicNames) -> bool:
    """Tell whether a gateway has made these topics, by options that CREATE STREAM and CREATE TABLE never set.

    A subscriber can make topics with any name. If the name of a topic decided alone, a subscriber could make a topic
    whose name looks like a gateway's topic, and no stream could read topics with the same prefix any more.
    """
    configs = topics.configs([names.catalog, names.replies, names.pending])
    return all(
        configs.get(topic, {}).get(option) == value
        for topic, option, value in (
            (names.catalog, "cleanup.policy", "compact"),
            (names.catalog, "max.message.bytes", str(LARGEST_RECORD)),
            (names.pending, "retention.ms", "-1"),
            (names.replies, "max.message.bytes", str(LARGEST_RECORD)),
        )
    )


def _refusal(message: str, detail: str) -> InputError:
    return InputError(message, code="not-allowed", detail=detail, hint="Publish the events to a topic of another name.")
