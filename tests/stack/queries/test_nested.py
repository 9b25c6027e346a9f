"""Records through the real servers: nested columns, columns at places in the record, and lenient streams."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from tests.kafka_client import wait_until
from tests.queries import Event
from tests.stack.lab import Lab
from tests.stack.letters import await_letters
from tests.stack.server import Stack

_COLUMNS = """id INT, body STRING, tags ARRAY<STRING>, attrs MAP<STRING, STRING>,
    payload STRUCT<user: STRUCT<id: BIGINT, name: STRING>, on: DATE, amount: DECIMAL(6,2),
                   items: ARRAY<STRUCT<sku: STRING, n: INT>>>"""

_CALLS: list[dict[str, Any]] = [
    {
        "id": 1,
        "body": '{"user": "ann", "order": [{"id": 17}]}',
        "tags": ["urgent", "eu", "urgent"],
        "attrs": {"tier": "gold", "": "é"},
        "payload": {
            "user": {"id": 7, "name": "Ann", "surplus": [1]},
            "on": "2026-11-21",
            "amount": "12.50",
            "items": [{"sku": "x", "n": 2}, {"sku": None}],
        },
    },
    {"id": 2, "body": '{"user": "bob"}', "tags": ["eu", None], "attrs": {}, "payload": {"user": {"id": 8}}},
    {"id": 3, "body": "no json", "tags": [], "attrs": None, "payload": {"user": {"id": 7}, "items": []}},
    {"id": 4},
]

_BROKEN = {
    "a number for a STRUCT": b'{"id": 5, "payload": 7}',
    "a text in an ARRAY<STRING>'s place": b'{"id": 5, "tags": "urgent"}',
    "a number in a MAP of texts": b'{"id": 5, "attrs": {"tier": 1}}',
    "a fraction in a BIGINT within": b'{"id": 5, "payload": {"user": {"id": 7.5}}}',
    "a date that is none within": b'{"id": 5, "payload": {"on": "2026-02-30"}}',
}


def test_parts_are_looked_up_and_values_are_results(lab: Lab) -> None:
    """Queries for a part are one group with an index; objects and arrays are results; a bad part is a dead letter."""
    source, letters = lab.stream(_COLUMNS), lab.dead_letter_tail()
    wanted = {
        "payload.user.id = 7": [1, 3],
        "payload.user.id = 8": [2],
        "array_contains(tags, 'urgent')": [1],
        "array_contains(tags, 'eu')": [1, 2],
        "get_json_object(body, '$.user') = 'ann'": [1],
        "get_json_object(body, '$.user') = 'bob'": [2],
        "attrs['tier'] = 'gold' AND payload.amount > 12": [1],
        "size(tags) = 0 OR payload.items[0].n = 2": [1, 3],
    }
    made = {
        where: lab.create(f"cq{number}", f"SELECT id FROM {source.name} WHERE {where}", clauses="DO PUBLISH SHARED")
        for number, where in enumerate(wanted)
    }
    parts = "payload.user.name, payload.items.sku AS skus, attrs['tier'] AS tier"
    everything = lab.create("all", f"SELECT *, {parts} FROM {source.name} WHERE id > 0")
    digest = lab.create(
        "digest", f"SELECT id, tags, payload.user AS who FROM {source.name} WHERE id <= 2", clauses="EVERY '1 second'"
    )
    assert 5 == len({one["group"] for one in made.values()})

    source.publish([Event(call) for call in _CALLS[:2]], lambda event: json.dumps(event.values).encode())
    bad = source.publish_values(*_BROKEN.values())
    source.publish([Event(call) for call in _CALLS[2:]], lambda event: json.dumps(event.values).encode())
    source.fence()
    found = {where: [one.row["id"] for one in lab.settled_matches(cq, source)] for where, cq in made.items()}
    assert wanted == found

    rows = [one.row for one in lab.settled_matches(everything, source)]
    assert [_shown(call) for call in _CALLS] == rows
    lab.results.until(lambda: sum(one.row["count"] for one in lab.results.of(digest["destination"])) >= 2, "a digest")
    held = [row for one in lab.results.of(digest["destination"]) for row in one.row["rows"]]
    assert [{key: shown[key] for key in ("id", "tags", "who")} for shown in map(_with_user, _CALLS[:2])] == held
    letters_of = dict(zip([place.offset for place in bad], [(None, value) for value in _BROKEN.values()], strict=True))
    await_letters(lab.client, letters, letters_of, source.topic, 0, "undecodable")


def _shown(call: dict[str, Any]) -> dict[str, Any]:
    """Return the row that a call gives `SELECT *, name, skus, tier`."""
    row = {name: call.get(name) for name in ("id", "body", "tags", "attrs")}
    payload = call.get("payload")
    items = payload and payload.get("items")
    row["payload"] = payload and {
        "user": _user(call),
        "on": payload.get("on"),
        "amount": payload.get("amount"),
        "items": items and [{"sku": item["sku"], "n": item.get("n")} for item in items],
    }
    if items == []:
        row["payload"]["items"] = []
    user = row["payload"] and row["payload"]["user"]
    skus = items if not items else [item["sku"] for item in items]
    return {**row, "name": user and user["name"], "skus": skus, "tier": (call.get("attrs") or {}).get("tier")}


def _user(call: dict[str, Any]) -> dict[str, Any]:
    user = call["payload"]["user"]
    return {"id": user["id"], "name": user.get("name")}


def _with_user(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "who": _user(call)}


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
    letters_of = {bad.offset: (b"k2", b'{"data": {"p": "1.5"}}')}
    [letter] = await_letters(lab.client, letters, letters_of, source.topic, 0, "undecodable")
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


def test_dead_letters_among_the_first_records_are_told(lab: Lab) -> None:
    """DESCRIBE STREAM warns where half of a stream's first records are dead letters."""
    source = lab.stream("id INT, repository STRUCT<created_at: TIMESTAMP>")
    bad = b'{"repository": {"created_at": 7}}'
    source.publish_values(b'{"id": 1}', bad, bad, b"[]")
    detail = 'Field "repository.created_at" of type TIMESTAMP cannot hold the value: a number is no string; '
    detail += "a stream takes it with timestamps = 'seconds'."
    warning = f"3 of the first 4 records are dead letters, mostly for this reason: {detail}"
    wait_until(lambda: lab.client.result(f"DESCRIBE STREAM {source.name}").get("warnings") == [warning], "the warning")


def test_each_element_of_a_record_is_an_event(lab: Lab) -> None:
    """Results, digests and ids of elements; a record of many elements; a bad element is a dead letter of its record."""
    options = "format = 'json', explode = '$.logs[*].list[*]'"
    blank = b'{"logs": [{"list": [{}]}]}'
    source = lab.stream("n INT, scope STRING FROM '^.s'", options=options, blank=blank)
    letters = lab.dead_letter_tail()
    made = lab.create("all", f"SELECT n, scope FROM {source.name} WHERE n >= 0")
    every = f"SELECT count(*) AS c, sum(n) AS total FROM {source.name} WHERE n >= 0 EVERY '1 second'"
    counted = lab.create("counted", every)
    mixed = b'{"logs": [{"s": "a", "list": [{"n": 0}, {"n": "x"}, {"n": 1}]}, {"s": "b", "list": [{"n": 2}]}]}'
    many = json.dumps({"logs": [{"list": [{"n": n} for n in range(12_000)]}]}).encode()
    [first] = source.publish_values(mixed)
    source.publish_values(b'{"logs": []}', b"{}")
    [last] = source.publish_values(many)
    await_letters(lab.client, letters, {first.offset: (None, mixed)}, source.topic, 0, "undecodable")
    found = [(one.headers["ce_id"].removeprefix(f"{source.name}/0/"), one.row) for one in lab.matches(made, source)]
    assert found[:3] == [
        (f"{first.offset}/0", {"n": 0, "scope": "a"}),
        (f"{first.offset}/2", {"n": 1, "scope": "a"}),
        (f"{first.offset}/3", {"n": 2, "scope": "b"}),
    ]
    assert found[3:] == [(f"{last.offset}/{n}", {"n": n, "scope": None}) for n in range(12_000)]

    def rows() -> list[dict[str, Any]]:
        digests = [one.row for one in lab.results.of(counted["destination"]) if one.kind == "cq.digest"]
        return [row for digest in digests for row in digest["rows"]]

    lab.results.until(lambda: sum(row["c"] for row in rows()) >= 12_003, "digests of all elements")
    assert (sum(row["c"] for row in rows()), sum(row["total"] for row in rows())) == (12_003, 3 + sum(range(12_000)))


def test_headers_of_a_stream_that_runs(stack: Stack, lab: Lab) -> None:
    """A query with `_headers` has them for each event after its reply: before Spark asks Kafka for them, and then."""

    def publish(first: int, count: int) -> None:
        for n in range(first, first + count):
            source.publish_values(b'{"n": %d, "x": [%d]}' % (n, n), headers=[("of", b"old"), ("of", b"n%d" % n)])

    source = lab.stream("n INT")
    plain = lab.create("plain", f"SELECT n FROM {source.name} WHERE n >= 0")
    publish(0, 3)
    assert 3 == len(lab.matches(plain, source))
    began = _starts(stack, source.name)
    typed = lab.create("typed", f"SELECT n, _headers, _value FROM {source.name} WHERE _headers['of'] <> 'n4'")
    publish(3, 3)
    assert [3, 5] == [one.row["n"] for one in lab.matches(typed, source)]

    def with_headers() -> bool:
        """Tell whether the stream has a new query, or is in the lane, which has the headers of all its streams."""
        return _starts(stack, source.name) > began or stack.stream_report(source.name).get("lane", False)

    wait_until(with_headers, "the query with headers")
    publish(6, 2)
    rows = [one.row for one in lab.matches(typed, source)]
    assert rows == [
        {"n": n, "_headers": {"of": b64encode(b"n%d" % n).decode()}, "_value": {"n": n, "x": [n]}} for n in (3, 5, 6, 7)
    ]
    assert list(range(8)) == [one.row["n"] for one in lab.settled_matches(plain, source)]


def _starts(stack: Stack, stream: str) -> int:
    """Return how often the evaluator has started a query of the stream, or of the lane."""
    lines = (stack.data / "logs" / "evaluator.log").read_text(errors="replace").splitlines()
    return sum("lane started" in line or ("stream started" in line and stream in line) for line in lines)
