"""Publishing, over librdkafka's mock cluster: each call counts its own records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest
from confluent_kafka import Producer

from gateway.sdk.errors import ClientClosed, TransportError
from gateway.sdk.publisher import DeliveryReports, Publisher
from gateway.sdk.session import Session


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """Where the mock cluster is."""
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": "2"})
    [broker] = cluster.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    cluster.flush(1)


def test_a_calls_error_is_its_own(bootstrap: str) -> None:
    """Calls in two threads over one connection: one has an oversized record, the others succeed."""
    publisher = Publisher(bootstrap, {"message.max.bytes": "2000"})
    errors: list[TransportError] = []
    counts: list[int] = []
    barrier = Barrier(2)

    def fail() -> None:
        barrier.wait()
        for _ in range(50):
            try:
                publisher.write("quotes", [(None, b"x" * 5_000)], timeout=30)
            except TransportError as error:
                errors.append(error)

    def succeed() -> None:
        barrier.wait()
        counts.extend(publisher.write("others", [(None, b"x")] * 20, timeout=30) for _ in range(50))

    threads = [Thread(target=fail), Thread(target=succeed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (50, [20] * 50) == (len(errors), counts)
    publisher.close()
    with pytest.raises(ClientClosed):
        publisher.write("quotes", [(None, b"x")], timeout=30)


def test_records_that_are_not_written_count_for_their_call_alone(bootstrap: str) -> None:
    """A call gives up before its records are written; the next call, for another topic, has its own count."""
    publisher = Publisher(bootstrap, {})
    assert 100 == publisher.write("quotes", [(None, b"x")] * 100, timeout=30)
    with pytest.raises(TransportError, match='1 records for "quotes" were not written within 0 s'):
        publisher.write("quotes", [(None, b"x")], timeout=0)
    assert 200 == publisher.write("others", [(None, b"x")] * 200, timeout=30)
    publisher.close()


def test_a_delivery_counts_exactly(bootstrap: str) -> None:
    """The records before one that cannot be sent are counted, and none behind it is taken."""
    publisher, delivery, taken = Publisher(bootstrap, {"message.max.bytes": "2000"}), DeliveryReports(), []

    def records() -> Iterator[tuple[bytes | None, bytes | None]]:
        for number in range(500):
            taken.append(number)
            yield None, b"x" * (5_000 if number == 300 else 1)

    with pytest.raises(TransportError):
        publisher.write("quotes", records(), timeout=30, delivery=delivery)
    assert (301, 300, 0) == (len(taken), delivery.written, delivery.unwritten)
    publisher.close()


def test_rows_before_a_bad_row_are_written(bootstrap: str) -> None:
    """The caller may close the client at once, as `with connect()` does: earlier rows are in Kafka already."""
    publisher, delivery = Publisher(bootstrap, {}), DeliveryReports()

    def records() -> Iterator[tuple[bytes | None, bytes | None]]:
        yield from [(b"k", b"x")] * 20
        raise ValueError("a row without a key")

    with pytest.raises(ValueError, match="without a key"):
        publisher.write("quotes", records(), timeout=30, delivery=delivery)
    assert (20, 0) == (delivery.written, delivery.unwritten)
    publisher.close()


def test_a_closed_client_leaves_no_thread(bootstrap: str) -> None:
    """Ten clients that have listened and published are gone with all threads of their drivers, at once."""
    tasks = Path("/proc/self/task")
    before = len(list(tasks.iterdir()))
    sessions = [Session(bootstrap, f"s{number}") for number in range(10)]
    for session in sessions:
        session.exchange.listen(30)
        session.publisher.publish("quotes", [{"n": 1}], key=None, timeout=30)
    assert before + 10 < len(list(tasks.iterdir()))
    for session in sessions:
        session.close()
    assert before >= len(list(tasks.iterdir()))
