"""The answers of statements on CQs (docs/statements.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source

QUOTES = "symbol STRING, price DOUBLE, volume BIGINT, flag BOOLEAN"


@pytest.fixture(scope="module")
def quotes(shared_lab: Lab) -> Source:
    """A stream that no test of this file drops."""
    return shared_lab.stream(QUOTES)


def test_result_of_create(shared_lab: Lab, quotes: Source) -> None:
    """An accepted CREATE CQ answers with all that docs/statements.md lists, in that order."""
    made = shared_lab.where(quotes, "form", "price < 100 AND symbol = 'INTC'", clauses="DO PUBLISH SHARED")
    destination = made["destination"]
    assert ["cq", "group", "signature", "constants", "trigger", "starts_at", "expires_at", "destination"] == list(made)
    assert ("form", {"kind": "change"}, None, None) == (
        made["cq"],
        made["trigger"],
        made["starts_at"],
        made["expires_at"],
    )
    assert made["group"].startswith("g_") and destination["id"].startswith("d_")
    assert "symbol = :c0 AND price < :c1" in made["signature"] and "INTC" not in made["signature"]
    assert ["INTC", 100.0] == made["constants"]
    assert ("shared", "cq.results", destination["id"]) == (
        destination["mode"],
        destination["topic"],
        destination["key"],
    )
    assert isinstance(destination["partition"], int) and isinstance(destination["offset"], int)


def test_ownership(lab: Lab, quotes: Source) -> None:
    """Names are the subscriber's own: two may use one name, and nobody sees or drops another's."""
    lab.where(quotes, "mine", "price > 1")
    for text in ("DESCRIBE CQ mine", "DROP CQ mine", "EXPLAIN CQ mine"):
        assert "unknown-cq" == lab.client.execute(text, lab.subscriber("bob")).code
    lab.where(quotes, "MINE", "price > 2", who="bob")
    assert ["mine"] == [item["cq"] for item in lab.client.result("SHOW CQS", lab.subscriber())["cqs"]]
    assert ["MINE"] == [item["cq"] for item in lab.client.result("show cqs;", lab.subscriber("bob"))["cqs"]]
    assert [2.0] == lab.client.result("DESCRIBE CQ Mine", lab.subscriber("bob"))["constants"]


def test_show_in_pages(lab: Lab, quotes: Source) -> None:
    """SHOW answers in name order, LIKE in any case, LIMIT and AFTER page through, and `next` is null at the end."""
    alice = lab.subscriber()
    names = sorted(f"{'Page' if n % 2 else 'page'}{n:03}" for n in range(25))
    for name in names + ["other"]:
        lab.create(name, f"SELECT symbol FROM {quotes.name}", alice, follow=False)
    expected = sorted(names, key=str.casefold)
    seen: list[str] = []
    after = ""
    while True:
        page = lab.client.result(f"SHOW CQS LIKE 'PAGE%'{after} LIMIT 10", alice)
        seen += [item["cq"] for item in page["cqs"]]
        if page["next"] is None:
            break
        after = f" AFTER '{page['next']}'"
        assert len(page["cqs"]) == 10
    assert expected == seen
    assert 26 == len(lab.client.result("SHOW CQS LIMIT 100000", alice)["cqs"])
    assert [] == lab.client.result("SHOW TIMERS", alice)["timers"]


def test_describe(lab: Lab) -> None:
    """DESCRIBE CQ adds text, status, creation and its destination's matches; DESCRIBE STREAM is open to all."""
    source = lab.stream(QUOTES)
    made = lab.where(source, "told", "symbol = 'A'")
    source.publish_values(b'{"symbol": "A"}', b'{"symbol": "A"}')
    assert 2 == len(lab.matches(made, source))
    alice = lab.subscriber()
    described: dict[str, Any] = {}

    def counted() -> bool:
        described.update(lab.client.result("DESCRIBE CQ told", alice))
        return described["matches"] == 2

    wait_until(counted, "two matches in DESCRIBE")
    assert {**made, "destination": None} == {**{name: described[name] for name in made}, "destination": None}
    assert made["destination"]["id"] == described["destination"]["id"]
    assert ("active", True) == (described["status"], described["text"].startswith('CREATE CQ "told"'))
    assert described["created_at"] and described["last_match_at"]
    columns = lab.client.result(f"DESCRIBE STREAM {source.name.upper()}", lab.subscriber("bob"))
    assert source.name in json.dumps(columns) and "volume" in json.dumps(columns)


@pytest.mark.parametrize(
    "form",
    [
        "/* first */ CREATE CQ {n} AS {q}",
        "-- first\nCREATE CQ {n} AS {q}",
        "   \n\t create  cq {n} as {q} ;",
        "CREATE /* a */ CQ -- b\n {n} AS {q} -- the end",
        "CREATE CQ {n} {q}",
        "create or replace cq {n} as {q}",
        "CREATE CQ `{n}` AS {q} DO PUBLISH",
        'CREATE CQ "{n}" AS {q} do publish shared;',
    ],
)
def test_forms_of_create(shared_lab: Lab, quotes: Source, form: str) -> None:
    """Comments, white space, any case, a semicolon at the end, AS left out, quoted names: all are one statement."""
    alice = shared_lab.subscriber("forms")
    text = form.format(n="formed", q=f"SELECT symbol FROM {quotes.name} WHERE symbol = 'it''s -- no /* comment; '")
    made = shared_lab.client.result(text, alice)
    assert ("formed", ["it's -- no /* comment; "]) == (made["cq"], made["constants"])
    shared_lab.client.result("DELETE CQ Formed", alice)


def test_explain(lab: Lab, quotes: Source) -> None:
    """EXPLAIN answers a plan and a text, also for a SELECT that is not created, and creates nothing."""
    lab.where(quotes, "planned", "symbol = 'A' AND price < 5")
    select = f"SELECT symbol FROM {quotes.name} WHERE symbol = 'A' AND price < 5"
    for text in ("EXPLAIN CQ planned", f"EXPLAIN {select}", f"EXPLAIN STAGES {select}"):
        answer = lab.client.result(text, lab.subscriber())
        assert isinstance(answer["plan"], dict) and "symbol" in answer["text"]
    explained = lab.client.result("""EXPLAIN CQ planned FOR '{"symbol": "A", "price": 6}'""", lab.subscriber())
    assert (False, "price < 5.0 is FALSE") == (explained["event"]["matches"], explained["event"]["why"])
    assert explained["plan"] and explained["event"]["why"] in explained["text"]
    lab.client.result("PAUSE CQ planned", lab.subscriber())
    explained = lab.client.result("""EXPLAIN CQ planned FOR '{"symbol": "A", "price": 4}'""", lab.subscriber())
    assert (True, False) == (explained["event"]["matches"], explained["event"]["delivered"])
    assert 1 == len(lab.client.result("SHOW CQS", lab.subscriber())["cqs"])
    assert "unknown-column" == lab.client.execute(f"EXPLAIN SELECT x FROM {quotes.name}", lab.subscriber()).code
