"""The gateway's own topics: makes missing topics, and brings existing topics into the required form.

A topic may exist in another form. For example, a broker with automatic topic creation may have made the topic for the
first producer of commands, or somebody may have created the topic by hand. If the catalog had a retention time, CQs
would be lost. Therefore the gateway checks its topics at each start.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from gateway.kafka import LARGEST_RECORD, Topics, durability
from gateway.model.records import PENDING_PARTITIONS, THROTTLED_PARTITIONS
from gateway.topics.result_topics import result_config
from grouping.model.errors import OperationalError
from grouping.model.wording import counted
from grouping.settings.settings import Settings

__all__ = ["TopicForm", "ensure_own_topics", "misformed", "own_topics"]

log = logging.getLogger(__name__)

_DAY_MS = str(24 * 3_600_000)


class TopicForm(NamedTuple):
    """The required form of one of the gateway's topics."""

    partitions: int
    config: Mapping[str, str]
    """The configuration with which the topic is created."""
    fixed: bool = True
    """Whether the topic must have this number of partitions. If not, an existing topic may have any number."""
    free: frozenset[str] = frozenset({"segment.bytes", "min.cleanable.dirty.ratio"})
    """The names of options that operators may set to other values."""


def own_topics(settings: Settings) -> dict[str, TopicForm]:
    """Return topic → required form, for all of the gateway's own topics."""
    large = {"max.message.bytes": str(LARGEST_RECORD)}
    keep = {"retention.ms": "-1", "retention.bytes": "-1", **large}
    compact = {"cleanup.policy": "compact", **keep}
    # A gateway that starts reads these topics from beginning to end, so they are compacted often.
    often = {"segment.bytes": str(64 << 20), "min.cleanable.dirty.ratio": "0.2"}
    remembered = {"retention.ms": str(round(settings.commands.remember_days * 86_400_000)), **large}
    taken = {"message.timestamp.type": "LogAppendTime"} if settings.auth.mode == "token" else {}
    tiny = {"segment.bytes": str(4 << 20), "min.cleanable.dirty.ratio": "0.2"}  # each worker reads the topic as a whole
    retention = frozenset({"retention.ms"})
    names = settings.topics
    wanted = {
        names.audit: TopicForm(1, keep, fixed=False, free=retention),
        names.commands: TopicForm(settings.commands.partitions, remembered | taken, fixed=False, free=retention),
        names.replies: TopicForm(settings.commands.partitions, remembered, fixed=False, free=retention),
        names.results: TopicForm(settings.results.partitions, result_config(settings), fixed=False, free=retention),
        names.deadletters: TopicForm(1, remembered, fixed=False, free=retention),
        names.catalog: TopicForm(1, compact | {"delete.retention.ms": _DAY_MS}),  # recovery needs tombstones for a day
        names.pending: TopicForm(PENDING_PARTITIONS, keep),
        names.throttled: TopicForm(THROTTLED_PARTITIONS, keep | {"message.timestamp.type": "LogAppendTime"}),
        names.throttles: TopicForm(1, compact | often),
        names.ticks: TopicForm(1, compact | often),
        names.orders: TopicForm(2, keep),
        names.positions: TopicForm(1, compact | often),
        names.pins: TopicForm(1, compact | tiny),
    }
    durable = durability(settings)
    return {name: form._replace(config={**form.config, **durable}) for name, form in wanted.items()}


def ensure_own_topics(settings: Settings, topics: Topics) -> dict[str, int]:
    """Make the gateway's topics, or bring them into the required form; return topic → number of partitions.

    Raises:
        OperationalError: Kafka does not answer, or a topic cannot be brought into the required form.
    """
    wanted = own_topics(settings)
    made: set[str] = set()
    for topic in wanted.keys() - topics.forms(wanted).keys():
        made |= topics.create({topic: wanted[topic].partitions}, wanted[topic].config)
    there = topics.forms(wanted.keys() - made)
    configs = topics.configs(there)
    for topic, form in there.items():
        _bring_into_form(topics, topic, form.partitions, configs[topic], wanted[topic])
    found = topics.forms(wanted)
    _warn_of_single_copies(topics, {topic: form.replicas for topic, form in found.items()})
    return {topic: found[topic].partitions if topic in found else form.partitions for topic, form in wanted.items()}


def misformed(settings: Settings, topics: Topics) -> dict[str, str]:
    """Return topic → a sentence about the fault, for topics of the gateway that are missing or have a wrong form.

    Raises:
        OperationalError: Kafka does not answer.
    """
    wanted = own_topics(settings)
    there = topics.forms(wanted)
    configs = topics.configs(there)
    wrong = dict.fromkeys(wanted.keys() - there.keys(), "Kafka has no such topic.")
    for topic, form in there.items():
        if differing := _differing(configs[topic], wanted[topic]):
            found = ", ".join(f"{name} is {configs[topic].get(name)}" for name in sorted(differing))
            wrong[topic] = f"The topic's options are not as they must be: {found}."
        elif wanted[topic].fixed and form.partitions != wanted[topic].partitions:
            wrong[topic] = (
                f"The topic has {counted(form.partitions, 'partition')}, and needs {wanted[topic].partitions}."
            )
    return wrong


def _differing(config: Mapping[str, str], wanted: TopicForm) -> dict[str, str]:
    """Return option → required value, for the options with a wrong value."""
    return {
        name: value
        for name, value in wanted.config.items()
        if name not in wanted.free and not _suffices(name, config.get(name, ""), value)
    }


def _bring_into_form(topics: Topics, topic: str, partitions: int, config: Mapping[str, str], wanted: TopicForm) -> None:
    differing = _differing(config, wanted)
    if differing:
        log.warning("topic brought into form", extra={"topic": topic, "options": sorted(differing)})
        topics.configure(topic, differing)
    if not wanted.fixed or partitions == wanted.partitions:
        return
    if partitions > wanted.partitions:
        raise OperationalError(
            f'topic "{topic}" has {counted(partitions, "partition")}, and the gateway needs {wanted.partitions}',
            hint="Delete it if no gateway has used it, or choose another prefix.",
        )
    log.warning("partitions added", extra={"topic": topic, "partitions": wanted.partitions})
    topics.grow(topic, wanted.partitions)


def _suffices(name: str, found: str, wanted: str) -> bool:
    """Tell whether the value of an option suffices. The limit on the size of records may also be larger than wanted."""
    if name == "max.message.bytes":
        return found.isdigit() and int(found) >= int(wanted)
    return found == wanted


def _warn_of_single_copies(topics: Topics, replicas: Mapping[str, int]) -> None:
    single = sorted(topic for topic, count in replicas.items() if count < 2)
    if single and topics.brokers() > 1:
        log.warning(
            "topics have a single replica: if their broker loses its disk, they are lost",
            extra={"topics": single, "setting": "CQ_KAFKA_REPLICATION"},
        )
