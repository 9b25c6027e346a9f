"""Input that would fill the memory, take a core or end a worker is refused, NULL or a dead letter."""

from __future__ import annotations

import json
from typing import Any

from tests.codec import avro_event
from tests.kafka_tail import dead_letters
from tests.queries import Event
from tests.stack.lab import Lab
from tests.stack.letters import await_letters

_TEXT = "a" * 20_000


def _nested(function: str, depth: int) -> str:
    text = "symbol"
    for _ in range(depth):
        text = function.format(text)
    return text


def test_texts_beyond_measure_are_null(lab: Lab) -> None:
    """A text longer than 1 MiB is NULL, in SELECT and WHERE, for the events concerned; others match."""
    source = lab.stream("symbol STRING, qty INT")
    items = {
        "repeated": "length(repeat(repeat(symbol, 50), 100))",
        "replaced": "length(replace(symbol, 'a', 'bcdefghijklmnopqrstuvwxyz0123456789bcdefghijklmnopqrstuvwxyz'))",
        "joined": f"length(concat_ws(',', {', '.join(['symbol'] * 60)}))",
        "nested": f"length({_nested('upper({})', 40)})",
        "known": "coalesce(repeat(symbol, 1000), 'too long')",
    }
    select = ", ".join(f"{text} AS {name}" for name, text in items.items())
    everything = lab.create("all", f"SELECT {select} FROM {source.name}", clauses="DO PUBLISH SHARED")
    long = lab.where(source, "long", f"{items['repeated']} > 0", columns="qty", clauses="DO PUBLISH SHARED")
    source.publish_values(*(json.dumps({"symbol": text, "qty": len(text)}).encode() for text in (_TEXT, "a")))
    rows = [one.row for one in lab.matches(everything, source)]
    assert [None, 5_000] == [row["repeated"] for row in rows]
    assert [None, 60] == [row["replaced"] for row in rows]
    assert [None, 119] == [row["joined"] for row in rows]
    assert [20_000, 1] == [row["nested"] for row in rows]
    assert ["too long", "a" * 1000] == [row["known"] for row in rows]
    assert [1] == [one.row["qty"] for one in lab.matches(long, source)]


def test_avro_bodies_beyond_measure_are_dead_letters(lab: Lab) -> None:
    """Five thousand levels, and 10^8 nulls in five bytes, are one dead letter each; their neighbours match."""
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    fields = [
        {"name": "qty", "type": ["null", "int"]},
        {"name": "links", "type": ["null", node]},
        {"name": "nulls", "type": ["null", {"type": "array", "items": "null"}]},
    ]
    schema: dict[str, Any] = {"type": "record", "name": "R", "fields": fields}
    blank = avro_event(schema, Event({}), "raw")
    options = f"format = 'avro', framing = 'raw', schema = '{json.dumps(schema)}'"
    source = lab.stream("qty INT", options=options, blank=blank)
    letters = lab.dead_letter_tail()
    watching = lab.create("all", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    good = avro_event(schema, Event({"qty": 300}), "raw")
    bad = [b"\x00" + b"\x02" * 5_000 + b"\x00\x00", b"\x00\x00\x02" + b"\x80\x84\xaf\x5f" + b"\x00"]
    positions = source.publish_values(*[value for one in bad for value in (one, good)])
    expected = {at.offset: (None, value) for at, value in zip(positions[::2], bad, strict=True)}
    await_letters(lab.client, letters, expected, source.topic, 0, "undecodable")
    matched = [(one.source[2], one.row["qty"]) for one in lab.matches(watching, source)]
    assert [(at.offset, 300) for at in positions[1::2]] == matched


def test_numbers_and_rows_beyond_measure_stop_nobody(lab: Lab) -> None:
    """A JSON number of a million digits, and a column selected a hundred times, are dead letters; the next matches."""
    source = lab.stream("symbol STRING, qty INT, amount DECIMAL(10,2)")
    letters = lab.dead_letter_tail()
    columns = ", ".join(f"symbol AS s{number}" for number in range(100))
    wide = lab.create("wide", f"SELECT {columns} FROM {source.name}", clauses="DO PUBLISH SHARED")
    watching = lab.create("all", f"SELECT qty FROM {source.name}", clauses="DO PUBLISH SHARED")
    digits = b"9" * 900_000
    values = [
        b'{"qty": %s}' % digits,
        b'{"amount": 1e%s}' % digits,
        b'{"amount": 1e999999999}',
        b'{"qty": 1, "symbol": "%s"}' % digits,
        b'{"qty": 2, "symbol": "x"}',
    ]
    positions = source.publish_values(*values)
    assert [1, 2] == [one.row["qty"] for one in lab.matches(watching, source)]
    assert [{f"s{number}": "x" for number in range(100)}] == [one.row for one in lab.settled_matches(wide, source)]
    found = [letter for letter in dead_letters(letters) if letter.source.startswith(source.topic)]
    lettered = sorted((int(letter.source.rsplit("/", 1)[1]), letter.code) for letter in found)
    codes = ["undecodable"] * 3 + ["result-too-large"]
    assert [(at.offset, code) for at, code in zip(positions, codes, strict=False)] == lettered
