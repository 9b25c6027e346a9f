"""The identity of destinations, their sharing, and their ends (docs/statements.md, docs/results.md)."""

from __future__ import annotations

import json

import pytest

from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.server import DEDICATED_LIMIT

QUOTES = "symbol STRING, price DOUBLE, volume BIGINT, flag BOOLEAN"


@pytest.fixture(scope="module")
def quotes(shared_lab: Lab) -> Source:
    """A stream that no test of this file drops."""
    return shared_lab.stream(QUOTES)


def test_what_makes_a_destination(lab: Lab, quotes: Source) -> None:
    """Equal constants, SELECT list and word share a destination, over subscribers and re-creation; else they do not."""
    first = lab.where(quotes, "a", "price > 1", clauses="DO PUBLISH SHARED")
    same = lab.where(quotes, "a", "1 < Price", clauses="do publish shared", who="bob")
    assert first["destination"]["id"] == same["destination"]["id"]
    others = [
        lab.where(quotes, "b", "price > 2", clauses="DO PUBLISH SHARED"),
        lab.where(quotes, "c", "price > 1", clauses="DO PUBLISH SHARED", columns="symbol, price"),
        lab.where(quotes, "d", "price > 1", clauses="DO PUBLISH SHARED", columns="symbol AS s"),
        lab.where(quotes, "e", "price > 1", clauses="DO PUBLISH DEDICATED"),
    ]
    assert {first["group"]} == {other["group"] for other in others}
    assert 5 == len({first["destination"]["id"], *(other["destination"]["id"] for other in others)})
    lab.drop("a")
    lab.drop("a", lab.subscriber("bob"))
    again = lab.where(quotes, "a", "price > 1", clauses="DO PUBLISH SHARED")
    assert (first["group"], first["destination"]["id"]) == (again["group"], again["destination"]["id"])


def test_sharers_get_each_result_once(lab: Lab) -> None:
    """A record serves both CQs of a destination; after a drop the other still gets its results."""
    source = lab.stream(QUOTES)
    first = lab.where(source, "a", "symbol = 'A'")
    lab.where(source, "b", "'A' = symbol", who="bob")
    source.publish_values(b'{"symbol": "A"}', b'{"symbol": "B"}', b'{"symbol": "A"}')
    assert [0, 2] == [one.source[2] for one in lab.matches(first, source)]
    lab.drop("a")
    [last] = source.publish_values(b'{"symbol": "A"}')
    assert [0, 2, last.offset] == [one.source[2] for one in lab.matches(first, source)]
    assert [] == [one for one in lab.results.of(first["destination"]) if one.kind == "cq.end"]


def test_end_after_the_last_member(lab: Lab) -> None:
    """When the last CQ of a destination goes, one `cq.end` follows all results, and a dedicated topic goes later."""
    source = lab.stream(QUOTES)
    made = {
        mode: lab.where(source, mode, "symbol = 'A'", clauses=f"DO PUBLISH {mode}") for mode in ("SHARED", "DEDICATED")
    }
    topic = made["DEDICATED"]["destination"]["topic"]
    assert f"cq.results.{made['DEDICATED']['destination']['id']}" == topic and topic in lab.client.topics()
    source.publish_values(*[b'{"symbol": "A"}'] * 50)
    replies = {mode: lab.drop(mode) for mode in made}
    for mode, one in made.items():
        found = lab.results.of(one["destination"])
        lab.results.until(lambda found=found: found and found[-1].kind == "cq.end", f"cq.end of {mode}")
        end = found[-1]
        assert {"ended_at", "reason"} == set(end.row) and "dropped" == end.row["reason"]
        assert source.name == end.headers["ce_source"]
        assert replies[mode].fields["replied_at"] and end.headers["ce_id"].startswith(
            f"{one['destination']['id']}/end/"
        )
        assert 1 == sum(result.kind == "cq.end" for result in found) and found[-1] is end
    wait_until(lambda: lab.client.poll(0.2) or topic not in lab.client.topics(), f"deletion of {topic}")


def test_re_creation_takes_the_destination_over(lab: Lab) -> None:
    """A CQ created again before its topic is deleted goes on there, from its own offset, past the old `cq.end`."""
    source = lab.stream(QUOTES)
    first = lab.where(source, "a", "symbol = 'A'", clauses="DO PUBLISH DEDICATED")
    source.publish_values(b'{"symbol": "A"}')
    assert 1 == len(lab.matches(first, source))
    lab.drop("a")
    second = lab.where(source, "a", "symbol = 'A'", clauses="DO PUBLISH DEDICATED")
    assert first["destination"]["id"] == second["destination"]["id"]
    assert second["destination"]["offset"] >= 1
    [at] = source.publish_values(b'{"symbol": "A"}')
    assert at.offset == lab.matches(second, source)[-1].source[2]


def test_a_refused_create_leaves_a_topic_to_its_readers(lab: Lab) -> None:
    """A CREATE that asks for a dropped destination and is refused does not take its topic away: the end comes."""
    source = lab.stream(QUOTES)
    lab.where(source, "other", "symbol = 'B'")
    first = lab.where(source, "a", "symbol = 'A'", clauses="DO PUBLISH DEDICATED")
    lab.drop("a")
    select = f"SELECT symbol FROM {source.name} WHERE symbol = 'A'"
    refused = lab.client.execute(f"CREATE CQ other AS {select} DO PUBLISH DEDICATED", lab.subscriber())
    assert "cq-exists" == refused.code
    found = lab.results.of(first["destination"])
    lab.results.until(lambda: found and found[-1].kind == "cq.end", "cq.end")


def test_dedicated_up_to_the_limit(lab: Lab, quotes: Source) -> None:
    """Without a word a destination is dedicated up to the limit, then shared; DEDICATED is then refused."""

    def lingering() -> int:
        return sum(topic.startswith("cq.results.d_") for topic in lab.client.admin.list_topics().topics)

    wait_until(lambda: lingering() <= DEDICATED_LIMIT // 2, "room beside the topics of ended destinations")
    modes = [lab.where(quotes, f"m{n}", f"volume = {n}")["destination"]["mode"] for n in range(DEDICATED_LIMIT + 1)]
    assert modes[0] == "dedicated" and modes[-1] == "shared"
    assert sorted(modes) == modes
    reply = lab.client.execute(
        f"CREATE CQ more AS SELECT symbol FROM {quotes.name} DO PUBLISH DEDICATED", lab.subscriber()
    )
    assert "quota-exceeded" == reply.code
    assert str(DEDICATED_LIMIT) in json.dumps(reply.fields)
    joined = lab.where(quotes, "joins", "volume = 0", who="bob")
    assert "dedicated" == joined["destination"]["mode"]


def test_or_replace(lab: Lab) -> None:
    """OR REPLACE creates, changes nothing when the text is equal, and otherwise an event counts for one form only."""
    source = lab.stream(QUOTES)
    alice = lab.subscriber()
    text = f"CREATE OR REPLACE CQ a AS SELECT volume FROM {source.name} WHERE volume >= 0 DO PUBLISH SHARED"
    first = lab.client.result(text, alice)
    lab.cqs[alice, "a"] = first
    lab.results.follow(first["destination"])
    described = lab.client.result("DESCRIBE CQ a", alice)
    assert first["destination"]["id"] == lab.client.result(text, alice)["destination"]["id"]
    assert described["created_at"] == lab.client.result("DESCRIBE CQ a", alice)["created_at"]
    source.publish_values(*[b'{"volume": %d}' % n for n in range(200)])
    pending = lab.client.send(text.replace(">= 0", "> -1"), alice)
    source.publish_values(*[b'{"volume": %d}' % n for n in range(200, 400)])
    second = lab.client.reply(pending).result
    lab.results.follow(second["destination"])
    source.publish_values(*[b'{"volume": %d}' % n for n in range(400, 600)])
    new = [one.row["volume"] for one in lab.matches(second, source)]
    found = lab.results.of(first["destination"])
    lab.results.until(lambda: any(one.kind == "cq.end" for one in found), "cq.end of the first form")
    old = [one.row["volume"] for one in found if one.kind == "cq.match"]
    old = [volume for volume in old if volume is not None]
    assert list(range(0, 600)) == old + new
    ends = [one.row["reason"] for one in found if one.kind == "cq.end"]
    assert ["replaced"] == ends
