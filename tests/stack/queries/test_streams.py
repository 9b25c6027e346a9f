"""Streams of all forms (docs/statements.md): JSON, Avro in three framings, where they begin and end; many streams."""

from __future__ import annotations

import json

import pytest

from tests.codec import avro_event
from tests.queries import Event
from tests.stack.lab import Lab, Source
from tests.stack.letters import await_letters
from tests.stack.quiet import QuietStream
from tests.stack.server import Stack
from tests.unit.envelopes.changes import bytes_of, envelope

_STREAMS = 12
"""More than the evaluator has slots for tasks."""
_UNFAIR = 12
"""Micro-batches of one stream while another one waits for its next."""
_PARTITIONS, _WAITING = 40, 6_000
"""More partitions than an evaluator's query has tasks, and more waiting events than the lane takes."""
_IDLE_SECONDS = 12.0
"""Longer than Spark waits until it tells that a query is idle."""

QUOTES = "symbol STRING, price DOUBLE, volume BIGINT, flag BOOLEAN"


def test_start_earliest_and_latest(lab: Lab) -> None:
    """`earliest` reads earlier events, `latest` events published after the reply."""
    topic = lab.client.make_topic(f"old-{lab.token}", 2)
    for partition in (0, 1):
        lab.client.publish_all(topic, [(b'{"n": %d}' % n, None, partition, 0) for n in range(5)])
    owner = lab.subscriber("owner")
    sources = {}
    for start in ("earliest", "latest"):
        name = f"{start}_{lab.token}"
        lab.client.result(
            f"CREATE STREAM {name} (n INT) WITH (topic = '{topic}', format = 'json', start = '{start}')", owner
        )
        sources[start] = lab.adopt(Source(lab, name, topic, 2, b"{}"))
    made = {start: lab.create(start, f"SELECT n FROM {source.name}") for start, source in sources.items()}
    lab.client.publish(topic, b'{"n": 100}')
    latest = [one.row["n"] for one in lab.matches(made["latest"], sources["latest"])]
    assert [100] == [n for n in latest if n is not None]
    # Earlier events may be evaluated before the CQ's own creation; the new event may not be missed.
    earliest = [one.row["n"] for one in lab.matches(made["earliest"], sources["earliest"]) if one.row["n"] is not None]
    assert 100 in earliest and set(earliest) <= {*range(5), 100}


@pytest.mark.parametrize("framing", ["single-object", "confluent", "raw"])
def test_avro_streams(lab: Lab, framing: str) -> None:
    """Avro events are read by name, logical types and unions included, and NaN is above all numbers."""
    schema = {
        "type": "record", "name": "Q", "namespace": "x", "fields": [
            {"name": "unused", "type": "string"},
            {"name": "price", "type": ["null", "double"]},
            {"name": "symbol", "type": "string"},
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }  # fmt: skip

    def encoded(price: float | None, symbol: str) -> bytes:
        from_epoch = {"amount": b"\x04\xd2", "day": 19_782, "at": 1_709_208_000_123}
        values = {"unused": "u", "price": price, "symbol": symbol, **from_epoch}
        return avro_event(plain, Event(values), framing)

    plain = json.loads(json.dumps(schema))
    options = f"format = 'avro', framing = '{framing}', schema = '{json.dumps(schema)}'"
    columns = "symbol STRING, price DOUBLE, amount DECIMAL(10,2), day DATE, at TIMESTAMP"
    blank = encoded(None, "fence")
    source = lab.stream(columns, options=options, blank=blank)
    made = lab.create("all", f"SELECT * FROM {source.name} WHERE symbol <> 'fence'")
    above = lab.create("above", f"SELECT price, symbol FROM {source.name} WHERE price > 5")
    source.publish_values(
        encoded(float("nan"), "nan"), encoded(5.0, "five"), encoded(None, "nothing"), encoded(5.5, "more")
    )
    rows = [one.row for one in lab.matches(made, source)]
    assert ["nan", "five", "nothing", "more"] == [row["symbol"] for row in rows]
    assert [None, 5.0, None, 5.5] == [row["price"] for row in rows]
    assert ("12.34", "2024-02-29") == (rows[0]["amount"], rows[0]["day"])
    assert rows[0]["at"].startswith("2024-02-29T12:00:00.123")
    assert ["nan", "more"] == [one.row["symbol"] for one in lab.matches(above, source)]


def test_a_dropped_stream_is_gone(lab: Lab) -> None:
    """A stream created anew under the old name is another one: its groups and destinations have other ids."""
    source = lab.stream(QUOTES, name=f"anew_{lab.token}")
    first = lab.where(source, "a", "price > 1", clauses="DO PUBLISH SHARED")
    lab.drop("a")
    owner = lab.subscriber("owner")
    assert "ok" == lab.client.execute(f"DROP STREAM {source.name}", owner).code
    assert (
        "unknown-stream"
        == lab.client.execute(f"CREATE CQ a AS SELECT symbol FROM {source.name}", lab.subscriber()).code
    )
    assert "unknown-stream" == lab.client.execute(f"DROP STREAM {source.name}", owner).code
    ddl = f"CREATE STREAM {source.name} ({QUOTES}) WITH (topic = '{source.topic}', format = 'json')"
    sent = lab.client.send(ddl, lab.subscriber())
    second = lab.where(source, "a", "price > 1", clauses="DO PUBLISH SHARED")
    assert "ok" == lab.client.reply(sent).code
    assert first["group"] != second["group"] and first["destination"]["id"] != second["destination"]["id"]
    source.publish_values(b'{"price": 2}', b'{"price": 1}')
    assert 1 == len(lab.matches(second, source))


def test_columns_as_they_were_created(lab: Lab) -> None:
    """Names are found in any case and shown as created; the record's own fields are there, but not in `*`."""
    source = lab.stream('Symbol STRING, "Größe x" DOUBLE')
    made = lab.create("a", f"SELECT SYMBOL, `größe X`, _key, _partition, _offset AS o FROM {source.name}")
    star = lab.create("b", f"SELECT * FROM {source.name}")
    source.publish_values('{"Symbol": "é", "Größe x": 1, "symbol": 5}'.encode(), key="k")
    [one] = lab.matches(made, source)
    assert [("Symbol", "é"), ("Größe x", 1.0), ("_key", "k"), ("_partition", 0), ("o", 0)] == list(one.row.items())
    [one] = lab.matches(star, source)
    assert [("Symbol", "é"), ("Größe x", 1.0)] == list(one.row.items())


def test_each_stream_has_its_share_of_the_slots(stack: Stack, lab: Lab) -> None:
    """While all of many streams have events, each of them gets results."""
    sources = [lab.stream("n INT") for _ in range(_STREAMS)]
    made = [lab.create(source.name, f"SELECT n FROM {source.name}", clauses="DO PUBLISH SHARED") for source in sources]
    numbers = iter(range(10_000))

    def publish() -> int:
        number = next(numbers)
        for source in sources:
            source.publish_values(b'{"n": %d}' % number)
        return number

    def without(number: int) -> list[str]:
        """Return the streams whose result of an event is missing."""
        lab.results.drain()
        return [
            source.name
            for source, each in zip(sources, made, strict=True)
            if not any(one.kind == "cq.match" and one.row["n"] == number for one in lab.results.of(each["destination"]))
        ]

    begun_with = publish()
    lab.results.until(lambda: not without(begun_with), "the first result of each stream")
    figures = stack.settled_streams()
    begun = [figures[source.name]["batch"] for source in sources]
    awaited = publish()
    while left := without(awaited):
        publish()
        figures = stack.settled_streams()
        batches = [figures[source.name]["batch"] - first for source, first in zip(sources, begun, strict=True)]
        assert max(batches) < _UNFAIR, f"{left} get nothing while others have had {max(batches)} micro-batches"
    for source, each in zip(sources, made, strict=True):
        lab.matches(each, source)


def test_a_stream_of_many_partitions(lab: Lab) -> None:
    """A task evaluates several partitions, one after the other; each event has its result, in its partition's order."""
    topic = lab.client.make_topic(f"many-{lab.token}", _PARTITIONS)
    # The waiting events keep the stream out of the lane at first.
    lab.client.publish_all(topic, [(b'{"n": 1}', None, number % _PARTITIONS, 0) for number in range(_WAITING)])
    name = f"many_{lab.token}"
    options = f"topic = '{topic}', format = 'json', start = 'earliest'"
    lab.client.result(
        f"CREATE STREAM {name} (n INT, p INT, PARTITION KEY (p)) WITH ({options})", lab.subscriber("owner")
    )
    source = lab.adopt(Source(lab, name, topic, _PARTITIONS, b"{}"))
    made = lab.create("odd", f"SELECT n FROM {name} WHERE n % 2 = 1 AND n > 1")
    entered = lab.create("entered", f"SELECT n FROM {name} WHERE n % 5 = 0 EMIT ON ENTER BY p")
    numbers = range(2, 40 * _PARTITIONS)
    events = [(b'{"n": %d, "p": %d}' % (n, n // 3 % _PARTITIONS), None, n // 3 % _PARTITIONS, 0) for n in numbers]
    places = zip(lab.client.publish_all(topic, events), numbers, strict=True)
    awaited: dict[int, list[int]] = {}
    edges: dict[int, list[int]] = {}
    fives: set[int] = set()
    for place, n in places:
        if n % 2:
            awaited.setdefault(place.partition, []).append(place.offset)
        if n % 5 == 0 and place.partition not in fives:
            edges.setdefault(place.partition, []).append(place.offset)
        (fives.add if n % 5 == 0 else fives.discard)(place.partition)
    for cq, expected in ((made, awaited), (entered, edges)):
        found: dict[int, list[int]] = {}
        for one in lab.matches(cq, source):
            _, partition, offset = one.source
            found.setdefault(partition, []).append(offset)
        assert expected == found


def test_an_idle_query_goes_on(quiet_stream: QuietStream) -> None:
    """After some seconds without events, and after a minute (at the end of the run), the same query goes on."""
    quiet_stream.idle(_IDLE_SECONDS)
    quiet_stream.touch()


def test_changes_of_a_database_are_events(lab: Lab) -> None:
    """An event has the operation and the rows before and after; a tombstone is none, and no dead letter."""
    columns = "op STRING, old DECIMAL(10,2) FROM '$.before.price', price DECIMAL(10,2) FROM '$.after.price'"
    source = lab.stream(columns, options="format = 'debezium-json', decimals = 'base64'", blank=b'{"op": "m"}')
    made = lab.create("cheaper", f"SELECT op, old, price FROM {source.name} WHERE price < old")
    prices = [(500, 400), (300, 400), (-1, -2)]
    changes = [
        {"op": "u", "before": {"price": bytes_of(old)}, "after": {"price": bytes_of(new)}} for old, new in prices
    ]
    letters = lab.dead_letter_tail()
    places = source.publish_values(*map(envelope, changes), None, b'{"schema": null, "payload": null}', b"{")
    found = lab.matches(made, source)
    assert [{"op": "u", "old": "5.00", "price": "4.00"}, {"op": "u", "old": "-0.01", "price": "-0.02"}] == [
        one.row for one in found
    ]
    assert [places[0].offset, places[2].offset] == [one.source[2] for one in found]
    await_letters(lab.client, letters, {places[-1].offset: (None, b"{")}, source.topic, 0, "undecodable")
