"""A disk without room: the embedded broker ends before it damages its own log (docs/faults.md).

`make chaos` fills a small disk, which only root may mount. Here an index is made shorter than Kafka believes: the JVM
meets a missing page, as on a full disk.
"""

from __future__ import annotations

import os

import pytest
from confluent_kafka import KafkaException

from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.table_log import TableLog
from tests.kafka_client import RawClient, wait_until
from tests.stack.crash.test_crash import COLUMNS, check, flow, watch
from tests.stack.lab import Lab
from tests.stack.server import Stack
from tests.stack.tracebacks import FULL_DISK, KAFKA_AWAY


@pytest.mark.timeout(900)  # Kafka starts anew, and reads thousands of partitions
@pytest.mark.traceback(KAFKA_AWAY)
@pytest.mark.traceback(FULL_DISK)  # the fault of a mapped file comes in any thread of Kafka
def test_a_broker_without_a_page_for_an_index_ends_and_loses_nothing(stack: Stack, lab: Lab) -> None:
    """Kafka alone would go on, give the same offsets to other events, and empty the topic at its next start.

    A topic made anew after the broker's death is read: one death serves both checks, since a broker starts slowly.
    """
    source, topic = lab.stream(COLUMNS), lab.client.make_topic(f"anew-{lab.token}")
    watched = watch(lab, source)
    flow(lab, source, 0, 2000)
    indexes = list((stack.data / "kafka" / "data").glob(f"{source.topic}-*/*index"))
    assert indexes
    pids = stack.endpoints()["pids"]
    for index in indexes:
        os.truncate(index, 0)
    flow(lab, source, 2000, 2000)
    stack.await_restart("kafka", int(pids["kafka"]))
    check(lab, source, watched, 4000)
    assert pids["gateway"] == stack.endpoints()["pids"]["gateway"], "the gateway was not needed to end for it"
    _check_recreated(lab, topic)


def _check_recreated(lab: Lab, topic: str) -> None:
    """Delete a topic from before the broker's death, make the topic again, and check that all new records are read.

    The leader's epoch of the new topic is lower than the known epoch, so the driver takes the topic for stale.
    """
    log = TableLog(Settings(kafka={"bootstrap": lab.client.bootstrap}))
    lab.client.publish(topic, b"before")
    assert [b"before"] == _values(log, topic, 1)
    lab.client.admin.delete_topics([topic])[topic].result()

    wait_until(lambda: topic not in lab.client.topics(), f"topic {topic} deleted")

    def made() -> bool:
        try:
            return bool(lab.client.make_topic(topic))
        except KafkaException:
            return False  # the deletion is under way

    wait_until(made, f"topic {topic} made again")
    fresh = RawClient(lab.client.bootstrap)
    for n in range(3):
        fresh.publish(topic, b"%d" % n)
    fresh.close()
    assert [b"0", b"1", b"2"] == _values(log, topic, 3)
    log.close()


def _values(log: TableLog, topic: str, count: int) -> list[bytes]:
    return [value for batch in log.read(topic, {}, {0: count}) for value in batch["value"].to_pylist()]
