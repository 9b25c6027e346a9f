"""CREATE STREAM … FROM TOPIC on the servers: the records of a topic become columns, and nobody waits for them."""

from __future__ import annotations

import json

from confluent_kafka import Producer

from tests.stack.lab import Lab, Source
from tests.stack.server import Stack

_RECORDS = (
    b'{"id": 1, "kind": "paid", "at": "2026-11-21T10:00:00Z", "order": {"total": 12.5}, "shop-id": "s7", "none": null}',
    b'{"id": 2, "kind": "paid", "at": "2026-11-21T10:00:09Z", "order": {"total": 940, "tags": ["new"]}}',
    b"no JSON",
)


def _transaction(stack: Stack, topic: str, value: bytes, *, committed: bool) -> None:
    producer = Producer({"bootstrap.servers": stack.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, value, partition=1)
    if committed:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()


def test_a_stream_is_declared_by_its_topic(lab: Lab, stack: Stack) -> None:
    """The reply has the statement carried out; records that are there are events, and the statement works again."""
    topic, name, owner = f"hooks-{lab.token}", f"hooks_{lab.token}", lab.subscriber("owner")
    create = f"CREATE STREAM {name} FROM TOPIC '{topic}' WITH (start = 'earliest')"
    assert "stream-mismatch" == lab.client.execute(create, owner).code
    lab.client.make_topic(topic, 2)
    empty = lab.client.execute(create, owner)
    assert ("stream-mismatch", f'topic "{topic}" has no records') == (empty.code, empty.fields["message"])
    lab.client.publish_all(topic, [(value, None, 0, 0) for value in _RECORDS])
    _transaction(stack, topic, b'{"id": 3, "kind": "refused", "score": 7}', committed=True)
    _transaction(stack, topic, b'{"kind": 5, "never": 1}', committed=False)

    declared = lab.client.result(create, owner)
    source = lab.adopt(Source(lab, name, topic, 2, b"{}"))
    columns = (
        "id BIGINT, kind STRING, at TIMESTAMP, order STRUCT<total: DOUBLE, tags: ARRAY<STRING>>, "
        "shop_id STRING FROM '$.shop-id', score BIGINT"
    )
    options = f"topic = '{topic}', format = 'json'"
    assert declared["statement"] == f"CREATE STREAM {name} ({columns}) WITH ({options}, start = 'earliest')"
    without, faults = declared["warnings"]
    assert "$.none" in without
    assert faults.startswith("1 of 4 sampled records")
    described = lab.client.result(f"DESCRIBE STREAM {name}", owner)
    assert described["statement"] == f"CREATE STREAM {name} ({columns}) WITH ({options})"
    assert declared["columns"] == described["columns"]
    again = create.replace("STREAM", "STREAM IF NOT EXISTS")
    assert declared["id"] == lab.client.result(again, owner)["id"]
    again = described["statement"].replace("STREAM", "STREAM IF NOT EXISTS")
    assert declared["id"] == lab.client.result(again, owner)["id"]

    dear = lab.create("dear", f"SELECT id, order.tags AS tags FROM {name} WHERE order.total > 500")
    source.publish_values(json.dumps({"id": 4, "order": {"total": 501}}).encode())
    rows = [one.row for one in lab.matches(dear, source)]  # the earlier record, if the CQ was there before it was read
    assert rows[-1] == {"id": 4, "tags": None}
    assert {"0": 0, "1": 0} == declared["start_offsets"]


def test_topics_that_a_stream_may_not_read_are_not_sampled(lab: Lab) -> None:
    """The topics of the gateway, and names that are taken, are refused before a record is read."""
    owner, source = lab.subscriber("owner"), lab.stream()
    refused = lab.client.execute(f"CREATE STREAM other_{lab.token} FROM TOPIC '{lab.client.prefix}commands'", owner)
    assert "not-allowed" == refused.code
    taken = lab.client.execute(f"CREATE STREAM {source.name} FROM TOPIC '{source.topic}'", owner)
    assert "stream-exists" == taken.code
