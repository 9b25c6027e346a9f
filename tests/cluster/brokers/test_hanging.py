"""Transactions that hang: Kafka confirms a commit, and never shows the records in a partition without a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from gateway.kafka import writer
from grouping.model.errors import OperationalError
from tests.cluster.brokers.brokers import Brokers
from tests.ground import Ground, open_ground
from tests.kafka_client import wait_until
from tests.stack.state.office import Office

_ALONE = 2
"""The broker that leads the hanging partition, and has its only copy."""


class _SlowProducer(Producer):
    """A producer that runs a function before its request for a commit."""

    before_commit: Callable[[], object] = staticmethod(lambda: None)

    def commit_transaction(self, *args: Any) -> None:
        """Do it, and commit."""
        type(self).before_commit()
        super().commit_transaction(*args)


@contextmanager
def _ground(brokers: Brokers, prefix: str, alone: list[str]) -> Iterator[Ground]:
    """Have Valkey and the cluster, and topics, named without the prefix, with their only copy on a single broker."""
    with open_ground(kafka=brokers.bootstrap) as servers:
        ground = Ground(servers.settings.model_copy(update={"prefix": prefix}))
        assigned = {name: [[_ALONE + 1]] * _PARTITIONS[name] for name in alone}
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        new = [
            NewTopic(f"{prefix}{name}", len(where), replica_assignment=where, config=_CONFIG[name])
            for name, where in assigned.items()
        ]
        for made in admin.create_topics(new).values():
            made.result()
        yield ground
        ground.delete_own_topics()


_PARTITIONS = {"catalog": 1, "replies": 4}
_CONFIG: dict[str, dict[str, str]] = {"catalog": {"cleanup.policy": "compact"}, "replies": {}}


@pytest.mark.parametrize("alone", [["catalog", "replies"], ["replies"]])
def test_a_commit_that_hangs_is_written_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, alone: list[str]
) -> None:
    """Accepted CQs are on the catalog, and each command has one reply, once the broker is back."""
    with _ground(brokers, f"hang{len(alone)}.", alone) as ground:
        monkeypatch.setattr(writer, "Producer", _SlowProducer)
        office = Office(ground)
        office.create("before", 1)
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        topic = ground.settings.topics.replies

        def lose() -> None:
            monkeypatch.undo()
            brokers.kill(_ALONE)
            wait_until(
                lambda: (
                    {-1} == {part.leader for part in admin.list_topics(topic, 10).topics[topic].partitions.values()}
                ),
                "partitions without a leader",
            )

        monkeypatch.setattr(_SlowProducer, "before_commit", staticmethod(lose))
        with pytest.raises(OperationalError):
            office.create("hung", 2)
        office.live.add("hung")
        brokers.start(_ALONE)
        brokers.await_whole()
        office.recover()
        office.create("after", 3)
        office.check()
        assert office.sent == len(office.replies())
