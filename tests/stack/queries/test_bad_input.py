"""Poison source records: each exactly one dead letter, its neighbours untouched (docs/results.md)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from spark_jobs.runtime.kafka.unreadable import LATEST_MS
from tests.codec import avro_event
from tests.kafka_tail import dead_letters
from tests.queries import Event
from tests.stack.lab import Lab, Source
from tests.stack.letters import await_letters
from tests.stack.server import Stack

COLUMNS = (
    "symbol STRING, price DOUBLE, qty INT, volume BIGINT, flag BOOLEAN, amount DECIMAL(10,2), day DATE, at TIMESTAMP"
)
NAMES = ("symbol", "price", "qty", "volume", "flag", "amount", "day", "at")

POISON: dict[str, bytes | None] = {
    "tombstone": None,
    "empty": b"",
    "blank": b"  ",
    "null": b"null",
    "array": b'[{"qty": 1}]',
    "string": b'"x"',
    "number": b"3",
    "two objects": b'{"qty": 1}{"qty": 2}',
    "two lines": b'{"qty": 1}\n{"qty": 2}',
    "text after": b'{"qty": 1} x',
    "cut": b'{"symbol": "INTC", "qty": ',
    "cut in a string": b'{"symbol": "INT',
    "the other half": b'C", "qty": 1}',
    "byte order mark": b'\xef\xbb\xbf{"qty": 1}',
    "broken UTF-8": b'{"symbol": "\xff\xfe"}',
    "latin-1": '{"symbol": "café"}'.encode("latin-1"),
    "UTF-16": '{"qty": 1}'.encode("utf-16"),
    "NaN": b'{"price": NaN}',
    "infinity": b'{"price": Infinity}',
    "minus infinity": b'{"price": -Infinity}',
    "INT above range": b'{"qty": 2147483648}',
    "INT below range": b'{"qty": -2147483649}',
    "BIGINT above range": b'{"volume": 9223372036854775808}',
    "BIGINT far above range": b'{"volume": 1000000000000000000000000}',
    "INT with a fraction": b'{"qty": 1.0}',
    "INT with an exponent": b'{"qty": 1e2}',
    "INT as text": b'{"qty": "1"}',
    "INT as boolean": b'{"qty": true}',
    "BOOLEAN as number": b'{"flag": 1}',
    "STRING as number": b'{"symbol": 5}',
    "STRING as object": b'{"symbol": {}}',
    "DOUBLE as text": b'{"price": "1.5"}',
    "DECIMAL with a digit too many": b'{"amount": "1.234"}',
    "DECIMAL too large": b'{"amount": 123456789.00}',
    "DECIMAL no number": b'{"amount": "abc"}',
    "DATE that is none": b'{"day": "2026-02-30"}',
    "DATE with time": b'{"day": "2026-02-03T00:00:00Z"}',
    "DATE as number": b'{"day": 20000}',
    "TIMESTAMP that is none": b'{"at": "soon"}',
    "TIMESTAMP as number": b'{"at": 1700000000000}',
    "single quotes": b"{'qty': 1}",
    "trailing comma": b'{"qty": 1,}',
    "comment": b'{"qty": 1} // one',
    "leading zero": b'{"qty": 01}',
    "no comma": b'{"qty": 1 "flag": true}',
    "raw newline in a string": b'{"symbol": "a\nb"}',
    "binary": bytes(range(256)),
}

FINE: dict[str, bytes] = {
    "empty object": b"{}",
    "white space around": b' \r\n\t{"qty": 1}\n ',
    "all NULL": json.dumps(dict.fromkeys(NAMES)).encode(),
    "no column": b'{"qty": 1, "nested": {"a": [1, {"b": null}]}, "Qty": "other spelling"}',
    "given twice": b'{"qty": 7, "qty": 1}',
    "DOUBLE without fraction": b'{"price": 5}',
    "DECIMAL both ways": b'{"amount": 12345678.90}',
    "DECIMAL as text": b'{"amount": "-0.1"}',
    "escapes": b'{"symbol": "\\u0000\\ud83d\\ude00\\n\\/"}',
    "limits": b'{"qty": -2147483648, "volume": 9223372036854775807}',
    "dates": b'{"day": "2024-02-29", "at": "2024-02-29T23:59:59.999999+02:00"}',
    "no zone": b'{"at": "2024-02-29T23:59:59"}',
}


def test_poison_records(lab: Lab) -> None:
    """Each undecodable record is exactly one dead letter, whatever CQs exist, and its neighbours are untouched."""
    source = lab.stream(COLUMNS)
    letters = lab.dead_letter_tail()
    watching = lab.create("ids", f"SELECT _offset, qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    values: list[bytes | None] = []
    for value in POISON.values():
        values += [value, b'{"qty": 1}']
    positions = source.publish_values(*values, key=b"k\xff")
    expected = {
        at.offset: (b"k\xff", value) for at, value in zip(positions, values, strict=True) if value != b'{"qty": 1}'
    }
    found = await_letters(lab.client, letters, expected, source.topic, 0, "undecodable")
    assert all(letter.detail for letter in found)
    good = [(one.source[2], one.row) for one in lab.matches(watching, source)]
    assert [(at.offset, {"_offset": at.offset, "qty": 1}) for at in positions if at.offset not in expected] == good
    assert [] == [letter for letter in dead_letters(letters) if letter.source.startswith(source.topic)]


def test_records_that_only_look_bad(lab: Lab) -> None:
    """A JSON record allowed by docs/expressions.md is not a dead letter."""
    source = lab.stream(COLUMNS)
    letters = lab.dead_letter_tail()
    watching = lab.create("all", f"SELECT * FROM {source.name}", clauses="DO PUBLISH SHARED")
    source.publish_values(*FINE.values())
    rows = dict(zip(FINE, [one.row for one in lab.matches(watching, source)], strict=True))
    assert [] == [letter for letter in dead_letters(letters) if letter.source.startswith(source.topic)]
    assert [*NAMES] == list(rows["empty object"])
    assert rows["empty object"] == rows["all NULL"] == dict.fromkeys(rows["empty object"])
    assert 1 == rows["white space around"]["qty"] == rows["no column"]["qty"] == rows["given twice"]["qty"]
    assert ("5.0", "12345678.90") == (
        str(rows["DOUBLE without fraction"]["price"]),
        rows["DECIMAL both ways"]["amount"],
    )
    assert -0.1 == float(rows["DECIMAL as text"]["amount"])
    assert "\x00\U0001f600\n/" == rows["escapes"]["symbol"]
    assert (-(2**31), 2**63 - 1) == (rows["limits"]["qty"], rows["limits"]["volume"])


def test_odd_records_cost_nobody_else(lab: Lab) -> None:
    """Records at the limits of a decoder become a result or a single dead letter, and the stream goes on."""
    source = lab.stream(COLUMNS)
    letters = lab.dead_letter_tail()
    watching = lab.create("all", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    odd = [
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"symbol": "\\ud800"}',
        b'{"price": 1e400}',
        b'{"x": "\xff", "qty": 2}',
    ]
    positions = source.publish_values(*odd, b'{"qty": 3}')
    matched = {one.source[2] for one in lab.matches(watching, source)}
    lettered = [
        int(letter.source.rsplit("/", 1)[1])
        for letter in dead_letters(letters)
        if letter.source.startswith(source.topic)
    ]
    assert [at.offset for at in positions] == sorted([*matched, *lettered])
    assert positions[-1].offset in matched


def test_poison_in_avro(lab: Lab) -> None:
    """Wrong magic, a cut body and bytes after the body are dead letters; the records between them are not."""
    schema: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "qty", "type": ["null", "int"]}]}
    for framing in ("single-object", "confluent", "raw"):
        good, blank = (avro_event(schema, Event(values), framing) for values in ({"qty": 300}, {}))
        options = f"format = 'avro', framing = '{framing}', schema = '{json.dumps(schema)}'"
        source = lab.stream("qty INT", options=options, blank=blank)
        letters = lab.dead_letter_tail()
        watching = lab.create(f"all {framing}", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
        bad = [None, b"", good[:-1], good + b"\x00", *([] if framing == "raw" else [b"\x07" + good[1:]])]
        positions = source.publish_values(*[value for one in bad for value in (one, good)])
        expected = {at.offset: (None, value) for at, value in zip(positions[::2], bad, strict=True)}
        await_letters(lab.client, letters, expected, source.topic, 0, "undecodable")
        matched = [(one.source[2], one.row["qty"]) for one in lab.matches(watching, source)]
        assert [(at.offset, 300) for at in positions[1::2]] == matched


@pytest.mark.traceback("kafkaMalformedRecordTimestamp")
def test_timestamps_in_nanoseconds_hold_up_nobody(stack: Stack, lab: Lab) -> None:
    """A record whose timestamp Spark cannot convert is a dead letter, wherever it lies; all others are evaluated once.

    Timestamps in microseconds, and the last one that Spark can convert, are ordinary times.
    """
    topic = lab.client.make_topic(f"nanos-{lab.token}", 2, message_timestamp_after_max_ms=str(2**63 - 1))
    owner, name = lab.subscriber("owner"), f"nanos_{lab.token}"
    lab.client.result(f"CREATE STREAM {name} (n INT) WITH (topic = '{topic}', format = 'json')", owner)
    source, letters = lab.adopt(Source(lab, name, topic, 2, b"{}")), lab.dead_letter_tail()
    made = lab.create("all", f"SELECT n FROM {name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
    nanos, micros, now = time.time_ns(), time.time_ns() // 1_000, time.time_ns() // 1_000_000
    times = [nanos, now, nanos, nanos, micros, LATEST_MS, now, LATEST_MS + 1, now]
    records = [(b'{"n": %d}' % n, "k", 0, at) for n, at in enumerate(times)]
    places = lab.client.publish_all(topic, [*records, (b'{"n": 100}', None, 1, now)])
    bad = {
        place.offset: (b"k", record[0]) for place, record in zip(places, records, strict=False) if record[3] > LATEST_MS
    }
    wanted = [n for n, at in enumerate(times) if at <= LATEST_MS]
    assert [*wanted, 100] == sorted(one.row["n"] for one in lab.matches(made, source))
    await_letters(lab.client, letters, bad, topic, 0, "undecodable")
    assert stack.settled_streams()[name]["reason"] in (None, "a record's timestamp is too large for Spark")
