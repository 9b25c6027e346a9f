"""The evaluator's requests about source topics: a single request for all of them, however many streams there are."""

from __future__ import annotations

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from grouping.model.catalog import Stream
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.streams.checkpoint import StreamPosition
from spark_jobs.runtime.streams.progress import Progress
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.kafka_tail import Tail, dead_letters

_TOPICS = 100


def test_bounds_of_many_topics(ground: Ground) -> None:
    """First offsets and ends of a hundred topics come in one answer; a missing one is left out."""
    names = [f"{ground.settings.prefix}w{number}" for number in range(_TOPICS)]
    admin = AdminClient({"bootstrap.servers": ground.settings.kafka.bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": ground.settings.kafka.bootstrap})
    for number, name in enumerate(names):
        for _ in range(number):
            producer.produce(name, b"{}", partition=1)
    producer.flush()
    broker = Broker(ground.settings)
    assert {} == broker.forms([])
    assert {} == broker.forms(["missing"])
    # A broker makes the partitions of a topic one by one, so a topic may lack a leader for a moment.
    wait_until(lambda: len(broker.forms(names)) == _TOPICS, "a leader for each partition")
    forms = broker.forms([*names, "missing"])
    bounds = {name: (form.earliest, form.ends) for name, form in forms.items()}
    assert {name: ({0: 0, 1: 0}, {0: 0, 1: number}) for number, name in enumerate(names)} == bounds
    assert forms[names[7]] == broker.form(names[7])
    assert [0, 1] == forms[names[7]].partitions


def test_a_topic_that_is_made_can_be_read(ground: Ground) -> None:
    """The evaluator's own topic has a partition with a leader at once, also where it was made before."""
    broker = Broker(ground.settings)
    for number in range(20):
        topic = f"{ground.settings.prefix}own{number}"
        broker.ensure_topic(topic)
        assert {0: 0} == broker.ends(topic)
        broker.ensure_topic(topic)


def test_events_deleted_before_they_were_evaluated(ground: Ground) -> None:
    """A single dead letter names the range deleted by the broker; the lag counts only the rest."""
    settings, topic = ground.settings, f"{ground.settings.prefix}short"
    ground.make_topic(topic, 1)
    ground.make_topic(settings.topics.deadletters, 1)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap})
    for _ in range(10):
        producer.produce(topic, b"{}", partition=0)
    producer.flush()
    letters = Tail(settings.kafka.bootstrap)
    letters.add_topic(settings.topics.deadletters)
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        deleted.result(30)
    stream = Stream("s_1", "short", (), topic, "json", {"0": 2}, "")
    broker = Broker(settings)
    progress = Progress(stream, StreamPosition(-1, {}), TableStore(settings), broker)
    for _ in range(2):
        progress.report_deleted(broker.form(topic).earliest)
    [letter] = dead_letters(letters)
    letters.close()
    assert ("events-deleted", f"{topic}/0/2") == (letter.code, letter.source)
    assert "offsets 2 to 6" in letter.detail
    assert (5, 8) == (progress.events_deleted, progress.behind(broker.ends(topic)))
