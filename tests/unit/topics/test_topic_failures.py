"""CREATE STREAM over a topic without a leader, or without the right to read."""

from __future__ import annotations

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from gateway.commands.prepared import PreparedCommand
from gateway.commands.source_statements import SourceStatements
from gateway.kafka import ExistingTopic, KafkaUnavailable, TopicRefusal, topics
from gateway.model.held import NotYet
from gateway.model.inventory import Inventory
from gateway.sources.declarations import Origin
from gateway.topics.topic_desk import TopicDesk
from grouping.model.catalog import Catalog
from grouping.model.errors import InputError
from grouping.settings.settings import Settings
from grouping.statements.command import parse


class _Topics:
    """Kafka with an unreadable topic of one partition."""

    offsets = SimpleNamespace()

    def __init__(self) -> None:
        self.offsets.ends = self._ends

    def _ends(self, places: object) -> dict[Any, int]:
        raise KafkaUnavailable("kafka failed at asking for offsets", detail="LEADER_NOT_AVAILABLE")

    def names(self) -> set[str]:
        return {"t"}

    def forms(self, names: object) -> dict[str, ExistingTopic]:
        return {"t": ExistingTopic("id", 1, 1)}

    def configs(self, names: object) -> dict[str, dict[str, str]]:
        return {}

    def sampled(self, *_: object) -> None:
        raise TopicRefusal('topic "t" cannot be read', code="not-allowed", detail="Topic authorization failed")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE STREAM q FROM TOPIC 't' WITH (format = 'json')", "not-allowed"),
        ("CREATE STREAM q (a INT) WITH (topic = 't', format = 'json')", "unavailable"),
    ],
)
@pytest.mark.parametrize("patient", [True, False])
def test_the_sender_gets_a_reply(text: str, code: str, patient: bool) -> None:
    """The command is refused. The gateway does not begin anew, since the same command would fail again."""
    desk, working = TopicDesk(_Topics()), SimpleNamespace(inventory=Inventory())  # type: ignore[arg-type]
    desk.patient = patient
    nothing: Any = None
    statements = SourceStatements(Settings(), nothing, working, desk, nothing, lambda _: Catalog(()), nothing)  # type: ignore[arg-type]
    command: Any = SimpleNamespace(statement=parse(text))
    with pytest.raises(InputError) as refused:
        _carried_out(statements, command)
    assert refused.value.code == code
    assert refused.value.hint


def _carried_out(statements: SourceStatements, command: PreparedCommand[Any]) -> None:
    """Carry out a command as the gateway does, again after each answer of Kafka."""
    for _ in range(50):
        try:
            statements.create(command, Origin("alice", "0/7", 1))
        except NotYet as later:
            while not later.is_ready():
                time.sleep(0.001)
        else:
            return


def test_unreadable_configurations_refuse_a_topic() -> None:
    """Without the right to describe configurations, the gateway does not know whether a topic is another gateway's."""
    failed: Future[dict[str, Any]] = Future()
    failed.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    resource = ConfigResource(ResourceType.TOPIC, "other.commands")
    admin: Any = SimpleNamespace(describe_configs=lambda resources, **_: {resource: failed})
    with pytest.raises(TopicRefusal) as refused:
        topics._configs(admin, [resource])  # noqa: SLF001
    assert refused.value.code == "not-allowed"
