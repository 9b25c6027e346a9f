"""A log is read up to all earlier commits, though the broker shows them a moment later."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from confluent_kafka import Producer

from gateway.kafka import LogReader
from tests.ground import Ground
from tests.kafka_client import DEADLINE


@pytest.mark.parametrize("committed", [True, False])
def test_what_is_being_committed_is_waited_for(ground: Ground, committed: bool) -> None:
    """A commit returns before its mark is on the log; an aborted record is not read, and its end is known at once."""
    topic, servers = f"{ground.settings.prefix}log", ground.settings.kafka.bootstrap
    ground.make_topic(topic, 2)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    producer.produce(topic, b"first", partition=0)
    producer.commit_transaction(DEADLINE)
    producer.begin_transaction()
    producer.produce(topic, b"second", partition=0)
    producer.flush(DEADLINE)
    with ThreadPoolExecutor(1) as thread, closing(LogReader(ground.settings)) as reader:
        records = reader.since(topic, {0: 0, 1: 0})
        assert b"first" == next(records).value
        left = thread.submit(list, records)
        with closing(LogReader(ground.settings)) as other:  # which ends, as the partition has nothing
            assert [] == list(other.since(topic, {1: 0}))
        assert not left.done()
        if committed:
            producer.commit_transaction(DEADLINE)
        else:
            producer.abort_transaction(DEADLINE)
        assert [b"second"] * committed == [record.value for record in left.result(DEADLINE)]
