"""A stream with schemas of a registry: it waits alone while the registry is away, and loses no record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka_client import wait_until
from tests.kafka_tail import dead_letters
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack
from tests.unit.schemas.registry_server import Registry, schema_answer
from tests.unit.schemas.test_schema_ids import FIRST, SECOND, written
from tests.unit.worker.avro_records import record_schema

pytestmark = pytest.mark.traceback("SchemaAway: registry .* does not give schema")


def test_a_stream_waits_for_its_registry(harmed: Stack, lab: Lab, known: Registry) -> None:
    """Another stream goes on; the reason is told; each record is an event when the registry answers again."""
    known.put(1, (503, b""))
    first = written(1, {"symbol": "a", "price": 0.5, "n": 7})
    options = f"format = 'avro', framing = 'confluent', registry = '{known.url}'"
    source = lab.stream("symbol STRING, n BIGINT", options=options, blank=first)
    made = lab.create("waits", f"SELECT symbol, n FROM {source.name}")
    source.publish_values(first)
    other = lab.stream()
    other.publish_values(b'{"symbol": "b"}')
    other.fence()

    wait_until(
        lambda: "status 503" in str(harmed.stream_report(source.name).get("reason")), "reason of the stream that waits"
    )
    described = lab.client.result(f"DESCRIBE STREAM {source.name}", lab.subscriber("owner"))
    assert known.url == described["registry"]
    assert "hush" not in json.dumps([described, harmed.report()])
    known.put(1, schema_answer(json.loads(record_schema(FIRST))))
    known.put(2, schema_answer(json.loads(record_schema(SECOND))))
    source.publish_values(written(2, {"symbol": None, "n": 8, "more": []}))
    tail = lab.dead_letter_tail()
    [unknown] = source.publish_values(bytes([0, 0, 0, 0, 9]) + first[5:])
    rows = [one.row for one in lab.matches(made, source)]
    assert [{"symbol": "a", "n": 7}, {"symbol": None, "n": 8}] == rows

    details: list[str] = []

    def is_reported() -> bool:
        place = f"{source.topic}/0/{unknown.offset}"
        details.extend(each.detail for each in dead_letters(tail) if each.source == place)
        return bool(details)

    wait_until(is_reported, "dead letter of the unknown id")
    assert {"The registry has no schema with the id 9."} == set(details)
    assert {login for _, login in known.requests} == {"Basic YW5uOmh1c2g="}
    assert not any("hush" in path.read_text(errors="replace") for path in _logs(harmed))


def test_columns_come_from_the_schemas_that_records_name(lab: Lab, known: Registry) -> None:
    """FROM TOPIC asks the registry; while the registry is away, the statement is refused, and may be sent again."""
    topic, name, owner = f"named-{lab.token}", f"named_{lab.token}", lab.subscriber("owner")
    lab.client.make_topic(topic, 1)
    first = written(1, {"symbol": "a", "price": 0.5, "n": 7})
    lab.client.publish_all(topic, [(first, None, 0, 0)])
    options = f"format = 'avro', framing = 'confluent', registry = '{known.url}'"
    create = f"CREATE STREAM {name} FROM TOPIC '{topic}' WITH ({options})"
    known.put(1, (503, b""))
    assert "unavailable" == lab.client.execute(create, owner).code
    known.put(1, schema_answer(json.loads(record_schema(FIRST))))
    declared = lab.client.result(create, owner)
    source = lab.adopt(Source(lab, name, topic, 1, first))
    columns = [(column["name"], column["type"]) for column in declared["columns"]]
    assert [("symbol", "STRING"), ("price", "FLOAT"), ("n", "INT")] == columns
    made = lab.create("named", f"SELECT price FROM {name} WHERE n = 7")
    source.publish_values(first)
    assert [{"price": 0.5}] == [one.row for one in lab.matches(made, source)]


def test_the_first_schema_id_is_kept_with_the_stream(lab: Lab) -> None:
    """DESCRIBE STREAM tells the id that the first record named."""
    options = f"format = 'avro', framing = 'confluent', schema = '{record_schema(FIRST)}'"
    first = written(1, {"symbol": "a", "price": 0.5, "n": 7})
    source = lab.stream("symbol STRING", options=options, blank=first)
    made = lab.create("one", f"SELECT symbol FROM {source.name}")
    source.publish_values(first, bytes([0, 0, 0, 0, 2]) + first[5:])
    assert {"symbol": "a"} == lab.matches(made, source)[0].row

    def described() -> dict[str, object]:
        return lab.client.result(f"DESCRIBE STREAM {source.name}", lab.subscriber("owner"))

    wait_until(lambda: described().get("schema_id") == 1, "schema id of the stream")


def _logs(stack: Stack) -> list[Path]:
    return [path for path in stack.data.rglob("*.log") if path.is_file()]
