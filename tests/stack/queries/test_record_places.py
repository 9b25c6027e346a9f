"""Columns at places in the record, and lenient streams, through the real servers."""

from __future__ import annotations

from tests.kafka_client import wait_until
from tests.stack.lab import Lab
from tests.stack.letters import await_letters


def test_columns_come_from_paths_headers_and_keys(lab: Lab) -> None:
    """The source hands headers to the workers; a wrong type at a path is a dead letter; DESCRIBE shows FROM."""
    columns = (
        "price DOUBLE FROM '$.data.p', type STRING FROM HEADER 'ce_type', id STRING FROM KEY, _time STRING, "
        "first INT FROM '$.list[0]'"
    )
    source, letters = lab.stream(columns), lab.dead_letter_tail()
    made = lab.create("placed", f"SELECT * FROM {source.name} WHERE type = 'trade' AND price < 10 AND _time = 'own'")
    good = b'{"data": {"p": 1.5}, "_time": "own", "list": [7, 8]}'
    source.publish_values(good, key="k1", headers=[("ce_type", b"old"), ("ce_type", b"trade")])
    [bad] = source.publish_values(b'{"data": {"p": "1.5"}}', key="k2", headers=[("ce_type", b"trade")])
    source.publish_values(good, key="k3", headers=[("ce_type", b"quote")])
    source.publish_values(good, key="k4")
    told = {bad.offset: (b"k2", b'{"data": {"p": "1.5"}}')}
    [letter] = await_letters(lab.client, letters, told, source.topic, 0, "undecodable")
    assert "$.data.p" in letter.detail
    lab.results.until(lambda: len(lab.results.of(made["destination"])) == 1, "the one match")
    [found] = lab.results.of(made["destination"])
    assert found.row == {"price": 1.5, "type": "trade", "id": "k1", "_time": "own", "first": 7}
    described = lab.client.result(f"DESCRIBE STREAM {source.name}")["columns"]
    places = ["'$.data.p'", "HEADER 'ce_type'", "KEY", None, "'$.list[0]'"]
    assert places == [column.get("from") for column in described]


def test_a_lenient_stream_counts_what_does_not_fit(lab: Lab) -> None:
    """Values that do not fit are NULL, and DESCRIBE STREAM counts them by column."""
    source = lab.stream(
        "id INT, price DOUBLE, at TIMESTAMP", options="format = 'json', lenient = true, timestamps = 'seconds'"
    )
    made = lab.create("all", f"SELECT * FROM {source.name} WHERE id > 0")
    source.publish_values(
        b'{"id": "1", "price": "1.5", "at": 1763719200}',
        b'{"id": 2.0, "price": "dear", "at": "soon"}',
        b'{"id": 3, "price": "", "at": null}',
        b'{"id": 4, "price": "x"}',
    )
    lab.results.until(lambda: len(lab.results.of(made["destination"])) == 4, "four matches")
    assert [found.row for found in lab.results.of(made["destination"])] == [
        {"id": 1, "price": 1.5, "at": "2025-11-21T10:00:00Z"},
        {"id": 2, "price": None, "at": None},
        {"id": 3, "price": None, "at": None},
        {"id": 4, "price": None, "at": None},
    ]

    def counted() -> bool:
        described = lab.client.result(f"DESCRIBE STREAM {source.name}")
        return bool(described["misfits"] == {"at": 1, "price": 2})

    wait_until(counted, "the counts of misfits")
