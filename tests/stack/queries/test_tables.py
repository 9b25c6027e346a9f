"""Tables, views and joins with tables, through the real servers (docs/statements.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.kafka_tail import Result, dead_letters
from tests.queries import Event
from tests.stack.lab import Lab, Source
from tests.stack.lab_table import LabTable
from tests.stack.letters import await_letters
from tests.stack.server import EVENT_ROWS, Stack
from tests.unit.envelopes.changes import bytes_of, decimal_schema, envelope, field, schema_of

_COMPANIES = "symbol STRING PRIMARY KEY, industry STRING, staff INT"
_OWNERS = "owner STRING, symbol STRING, shares INT, PRIMARY KEY (owner, symbol)"


def _publish(source: Source, *rows: dict[str, Any]) -> None:
    source.publish([Event(row) for row in rows], lambda event: json.dumps(event.values).encode())


def _rows(found: list[Result]) -> list[dict[str, Any]]:
    return [one.row for one in found]


def test_an_event_meets_the_row_that_there_is(lab: Lab) -> None:
    """Rows are set, changed and removed; each event meets the changes acknowledged before it was published."""
    source, table = lab.stream(), LabTable(lab, _COMPANIES)
    table.put({"symbol": "INTC", "industry": "Chips", "staff": 10}, {"symbol": "SAP", "industry": "Software"})
    join = f"{source.name} q JOIN {table.name} c ON q.symbol = c.symbol"
    inner = lab.create("inner", f"SELECT q.symbol, qty, c.industry FROM {join} WHERE c.industry = 'Software'")
    left = lab.create(
        "left",
        f"SELECT q.symbol, qty, staff FROM {source.name} q LEFT JOIN {table.name} USING (symbol)"
        " WHERE industry IS NULL",
    )
    assert inner["signature"].endswith(
        f"JOIN {table.name} ON symbol = {table.name}.symbol WHERE {table.name}.industry = :c0"
    )
    _publish(source, {"symbol": "SAP", "qty": 1}, {"symbol": "INTC", "qty": 2}, {"symbol": "IBM", "qty": 3})
    source.fence()
    wait_until(lambda: table.described()["state"] == "ready", "the workers' notes")
    described = table.described()
    assert (
        described["rows"],
        described["lag"],
        described["cqs"],
        described["bytes"] > 0,
        described["workers"] > 0,
    ) == (2, 0, 2, True, True)
    table.put({"symbol": "INTC", "industry": "Software"})
    assert 1 == table.described()["lag"]
    _publish(source, {"symbol": "INTC", "qty": 4})
    source.fence()
    table.write(("INTC", None))
    _publish(source, {"symbol": "INTC", "qty": 5})
    assert _rows(lab.matches(inner, source)) == [
        {"symbol": "SAP", "qty": 1, "industry": "Software"},
        {"symbol": "INTC", "qty": 4, "industry": "Software"},
    ]
    without = [row for row in _rows(lab.matches(left, source)) if row["symbol"] is not None]
    assert without == [{"symbol": "IBM", "qty": 3, "staff": None}, {"symbol": "INTC", "qty": 5, "staff": None}]


def test_several_rows_of_one_event_have_numbers(lab: Lab) -> None:
    """An equality with a part of the key meets several rows, told apart by their number in the order of their keys."""
    source, table = lab.stream(), LabTable(lab, _OWNERS)
    table.put(*({"owner": owner, "symbol": "INTC", "shares": 5} for owner in ("rose", "abe", "kim")))
    made = lab.create(
        "many", f"SELECT o.owner FROM {source.name} q JOIN {table.name} o ON q.symbol = o.symbol WHERE shares > 1"
    )
    _publish(source, {"symbol": "INTC", "qty": 1})
    source.fence()
    lab.results.until(lambda: len(lab.results.of(made["destination"])) == 3, "three results")
    found = lab.results.of(made["destination"])
    assert [(one.row["owner"], one.headers["ce_id"].rpartition("/")[2]) for one in found] == [
        ("abe", "0"), ("kim", "1"), ("rose", "2"),
    ]  # fmt: skip


def test_digests_over_a_join(lab: Lab) -> None:
    """A digest has the rows of its events, all of them where an event meets several rows of a table."""
    source, table, owners = lab.stream(), LabTable(lab, _COMPANIES), LabTable(lab, _OWNERS)
    table.put({"symbol": "INTC", "industry": "Chips"})
    join = f"{source.name} q JOIN {table.name} c ON q.symbol = c.symbol"
    made = lab.create("digest", f"SELECT qty, c.industry FROM {join}", clauses="EVERY '1 second'")
    _publish(source, {"symbol": "INTC", "qty": 1}, {"symbol": "SAP", "qty": 2}, {"symbol": "INTC", "qty": 3})
    lab.results.until(lambda: sum(one.row["count"] for one in lab.results.of(made["destination"])) >= 2, "a digest")
    rows = [row for one in lab.results.of(made["destination"]) for row in one.row["rows"]]
    assert rows == [{"qty": 1, "industry": "Chips"}, {"qty": 3, "industry": "Chips"}]
    owners.put(*({"owner": owner, "symbol": "INTC", "shares": 5} for owner in ("rose", "abe", "kim")))
    several = f"SELECT qty, o.owner FROM {source.name} q JOIN {owners.name} o ON q.symbol = o.symbol"
    made = lab.create("several", several, clauses="EVERY '1 second'")
    _publish(source, {"symbol": "INTC", "qty": 4}, {"symbol": "INTC", "qty": 5})
    lab.results.until(lambda: sum(one.row["count"] for one in lab.results.of(made["destination"])) >= 6, "a digest")
    found = [row for one in lab.results.of(made["destination"]) for row in one.row["rows"]]
    assert [(row["qty"], row["owner"]) for row in found] == [
        (qty, owner) for qty in (4, 5) for owner in ("abe", "kim", "rose")
    ]


def test_a_table_in_use_stays(lab: Lab) -> None:
    """DROP TABLE and DROP VIEW are refused while something reads them; they share their names with streams."""
    source, table, owner = lab.stream(), LabTable(lab, _COMPANIES), lab.subscriber("owner")
    view = f"view_{lab.token}"
    select = f"SELECT q.symbol, c.industry FROM {source.name} q JOIN {table.name} c USING (symbol)"
    assert lab.client.result(f"CREATE VIEW {view} AS {select}", owner)["reads"] == sorted([source.name, table.name])
    made = lab.create("viewed", f"SELECT symbol FROM {view} WHERE industry = 'a'")
    again = lab.create("written", f"{select} WHERE c.industry = 'b'")
    assert made["group"] == again["group"]
    for statement, code in (
        (f"DROP TABLE {table.name}", "stream-in-use"),
        (f"DROP VIEW {view}", "stream-in-use"),
        (f"DROP STREAM {source.name}", "stream-in-use"),
        (f"CREATE TABLE {view} ({_COMPANIES}) WITH (topic = 'x', format = 'json')", "stream-exists"),
        (f"CREATE VIEW {table.name} AS SELECT symbol FROM {source.name}", "stream-exists"),
        (f"CREATE CQ c AS {select} DO PUBLISH VIRTUAL", "unsupported-query"),
        (f"DESCRIBE TABLE {view}", "unknown-stream"),
    ):
        assert lab.client.execute(statement, owner).code == code, statement
    described = lab.client.result(f"DESCRIBE TABLE {table.name}", owner)
    assert (described["primary_key"], described["cqs"]) == (["symbol"], 2)
    assert (described["state"], described["rows"], described["lag"]) == ("unread", None, None)
    assert lab.client.result(f"DESCRIBE VIEW {view}", owner)["cqs"] == 1
    assert table.name in [
        one["table"] for one in lab.client.result(f"SHOW TABLES LIKE '{table.name}'", owner)["tables"]
    ]
    [computed] = [
        each
        for each in lab.client.result("SHOW COMPUTATIONS", lab.subscriber())["computations"]
        if table.name in each["tables"]
    ]
    assert (computed["streams"], computed["groups"], computed["cqs"]) == ([source.name], 1, 2)
    assert lab.client.result("SHOW COMPUTATIONS", owner)["computations"] == []
    root = lab.client.result("EXPLAIN CQ viewed", lab.subscriber())["plan"]["tree"]
    [joined] = root["inputs"]
    assert (root["group"], root["cqs"], joined["computation"]) == (made["group"], 2, computed["computation"])
    assert [each["cqs"] for each in joined["inputs"]] == [2, 2]
    assert [one["view"] for one in lab.client.result(f"SHOW VIEWS LIKE '{view}'", owner)["views"]] == [view]
    for name in ("viewed", "written"):
        lab.drop(name)
    shown = lab.client.result("SHOW COMPUTATIONS", lab.subscriber())["computations"]
    assert computed["computation"] not in [each["computation"] for each in shown]
    lab.client.result(f"DROP VIEW {view}", owner)
    table.drop()


@pytest.mark.traceback("TableAway: topic .* cannot be read")
def test_a_table_that_lost_its_topic_holds_up_its_own_streams(stack: Stack, lab: Lab) -> None:
    """`cq status` says why; other streams go on. When the topic is there again the table has its rows."""
    source, other, table = lab.stream(), lab.stream(), LabTable(lab, _COMPANIES)
    table.put({"symbol": "INTC", "industry": "Chips"}, {"symbol": "SAP", "industry": "Software"})
    join = f"{source.name} q JOIN {table.name} c ON q.symbol = c.symbol"
    joined = lab.create("joined", f"SELECT q.symbol, c.industry FROM {join}", clauses="DO PUBLISH SHARED")
    alone = lab.create("alone", f"SELECT symbol FROM {other.name} WHERE qty > 0", clauses="DO PUBLISH SHARED")
    lab.client.admin.delete_topics([table.topic])[table.topic].result()
    _publish(source, {"symbol": "INTC", "qty": 1})

    def reason() -> str:
        return str(stack.stream_report(source.name).get("reason"))

    wait_until(lambda: f'"{table.topic}"' in reason(), "the reason")
    wait_until(lambda: table.described()["state"] == "topic-lost", "the state in the answer")
    wait_until(lambda: stack.table_report(table.name).get("state") == "topic-lost", "the state")
    _publish(other, {"symbol": "INTC", "qty": 1})
    assert [{"symbol": "INTC"}] == _rows(lab.matches(alone, other))
    lab.client.make_topic(table.topic, 1)
    table.put({"symbol": "INTC", "industry": "Silicon"})
    _publish(source, {"symbol": "SAP", "qty": 1}, {"symbol": "INTC", "qty": 1})
    found = _rows(lab.matches(joined, source))
    assert {"symbol": "INTC", "industry": "Silicon"} == found[-1]
    assert {"Silicon"} == {row["industry"] for row in found}


def test_a_table_that_may_lose_rows_is_told_in_the_reply(lab: Lab) -> None:
    """Its topic is compacted early, or deletes by age; DESCRIBE warns too, but not if the topic keeps all."""
    assert "warning" not in LabTable(lab, _COMPANIES).created, "the gateway made its topic"
    kept = {"retention_ms": "-1", "retention_bytes": "-1"}
    late = {"cleanup_policy": "compact", "min_compaction_lag_ms": "86400000"}
    for number, (config, warnings) in enumerate(
        (
            (kept, None),
            (late, None),
            ({"cleanup_policy": "compact"}, "compacted after 0 ms (min.compaction.lag.ms)"),
            ({"retention_ms": "60000"}, "deletes records of its topic by age or size"),
            (kept | {"retention_bytes": "1000"}, "deletes records of its topic by age or size"),
            (late | {"cleanup_policy": "compact,delete"}, "deletes records of its topic by age or size"),
        )
    ):
        topic, name = lab.client.make_topic(f"rows-{lab.token}-{number}", **config), f"rows_{lab.token}_{number}"
        options = f"topic = '{topic}', format = 'json'"
        replies = [
            lab.client.result(statement, lab.subscriber("owner"))
            for statement in (f"CREATE TABLE {name} ({_COMPANIES}) WITH ({options})", f"DESCRIBE TABLE {name}")
        ]
        for answer in replies:
            assert (warnings or "no word") in answer.get("warning", "no word"), config
        lab.client.result(f"DROP TABLE {name}", lab.subscriber("owner"))


def test_a_bad_record_of_a_table_is_a_dead_letter(lab: Lab) -> None:
    """The record changes no row, is reported at least once, and events go on."""
    source, table, letters = lab.stream(), LabTable(lab, _COMPANIES), lab.dead_letter_tail()
    table.put({"symbol": "INTC", "industry": "Chips"})
    table.write((None, b"no json"), (None, b'{"industry": "x"}'), (None, None))
    made = lab.create("joined", f"SELECT q.symbol, industry FROM {source.name} q JOIN {table.name} c USING (symbol)")
    for qty in (1, 2):
        _publish(source, {"symbol": "INTC", "qty": qty})
        source.fence()
    assert _rows(lab.matches(made, source)) == [{"symbol": "INTC", "industry": "Chips"}] * 2

    bad = {1: (None, b"no json"), 2: (None, b'{"industry": "x"}'), 3: (None, None)}
    wanted = {(f"{table.topic}/0/{offset}", "undecodable", *record) for offset, record in bad.items()}
    reported: set[tuple[str, str, bytes | None, bytes | None]] = set()

    def complete() -> bool:
        found = (letter for letter in dead_letters(letters) if letter.source.startswith(table.topic))
        reported.update((letter.source, letter.code, letter.key, letter.value) for letter in found)
        return reported >= wanted

    wait_until(complete, "three dead letters")
    assert reported == wanted


def test_an_event_of_too_many_rows_is_a_dead_letter(lab: Lab) -> None:
    """No query over the join sees it; others do, and the join goes on with an event of as many rows as may be."""
    source, table, letters = lab.stream(), LabTable(lab, _OWNERS), lab.dead_letter_tail()
    counts = {"MANY": EVENT_ROWS + 1, "MOST": EVENT_ROWS}
    table.put(*({"owner": f"o{at}", "symbol": name} for name, count in counts.items() for at in range(count)))
    join = f"FROM {source.name} q JOIN {table.name} o ON q.symbol = o.symbol"
    joined = lab.create("joined", f"SELECT q.symbol, owner {join} WHERE length(owner) < 3")
    alone = lab.where(source, "alone", "qty > 0")
    bodies = [json.dumps({"symbol": name, "qty": 1}).encode() for name in counts]
    many, _ = source.publish_values(*bodies)
    source.fence()
    expected = {many.offset: (None, bodies[0])}
    [letter] = await_letters(lab.client, letters, expected, source.topic, 0, "too-many-rows")
    assert f"more than {EVENT_ROWS} rows" in letter.detail
    found = sorted(_rows(lab.settled_matches(joined, source)), key=lambda row: row["owner"])
    assert found == [{"symbol": "MOST", "owner": f"o{at}"} for at in range(10)]
    assert [row["symbol"] for row in _rows(lab.settled_matches(alone, source))] == list(counts)


def test_changes_of_a_database(lab: Lab) -> None:
    """Debezium's rows: a decimal by its schema, a value that was not sent, a delete by the key, a truncate."""
    columns = "id STRING PRIMARY KEY, price DECIMAL(10,2), note STRING"
    source, table = lab.stream(), LabTable(lab, columns, form="debezium-json")
    fields = [field("id", "string"), decimal_schema("price", 2), field("note", "string")]

    def change(op: str, **rows: dict[str, Any]) -> bytes:
        return envelope({"op": op, "before": None, "after": None} | rows, schema_of(*fields))

    join = f"{source.name} q LEFT JOIN {table.name} p ON q.symbol = p.id"
    made = lab.create("priced", f"SELECT q.symbol, qty, p.price, note FROM {join} WHERE qty > 0")
    seen: list[Any] = []

    def look(*records: tuple[str | None, bytes | None]) -> list[Any]:
        table.write(*records)
        _publish(source, *({"symbol": symbol, "qty": 1} for symbol in ("a", "b")))
        found = _rows(lab.matches(made, source))
        new = [(row["symbol"], row["price"], row["note"]) for row in found[len(seen) :]]
        seen.extend(found[len(seen) :])
        return new

    first = {"id": "a", "price": bytes_of(12345), "note": "old"}
    assert look((None, change("c", after=first)), (None, change("c", after=first | {"id": "b"}))) == [
        ("a", "123.45", "old"), ("b", "123.45", "old"),
    ]  # fmt: skip
    unavailable = {"id": "a", "price": bytes_of(-5), "note": "__debezium_unavailable_value"}
    key = '{"schema": {"type": "struct"}, "payload": {"id": "b"}}'
    assert look((None, change("u", after=unavailable)), (key, change("d")), (key, None)) == [
        ("a", "-0.05", "old"), ("b", None, None),
    ]  # fmt: skip
    assert look((None, change("t"))) == [("a", None, None), ("b", None, None)]


def test_a_key_in_two_partitions_is_told(lab: Lab) -> None:
    """DESCRIBE TABLE names the likely cause."""
    source, table = lab.stream(), LabTable(lab, _COMPANIES, partitions=2)
    lab.create("split", f"SELECT qty FROM {source.name} q JOIN {table.name} c ON q.symbol = c.symbol")
    for partition in (0, 1):
        table.write((None, b'{"symbol": "INTC"}'), partition=partition)
    _publish(source, {"symbol": "INTC", "qty": 1})
    source.fence()
    wait_until(lambda: table.described().get("warnings"), "the workers' notes")
    [warning] = table.described()["warnings"]
    assert "partitioner" in warning
