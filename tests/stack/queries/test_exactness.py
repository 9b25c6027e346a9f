"""Through the real servers, each CQ's results equal its results alone in another engine (issue 4, "Exact")."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import datetime

import pytest

from tests import spelling, strategies
from tests.codec import avro_event, avro_schema, json_event
from tests.queries import BASE_MS, Column, Conjunct, Event, Item, Query, Stream
from tests.stack.lab import Lab, Source
from tests.stack.lives import Play


def declare(lab: Lab, name: str, declared: Stream, *, partitions: int, options: str, blank: bytes) -> Source:
    """Create a generated stream on a topic of its own."""
    topic = f"{name}-topic"
    lab.client.result(declared.ddl(topic, partitions=partitions, options=options), lab.subscriber("owner"))
    return lab.adopt(Source(lab, name, topic, partitions, blank))


def play(lab: Lab, rng: random.Random, *, framing: str = "", steps: int = 250) -> Play:
    """Play a seeded case on a JSON stream, or on an Avro stream with a framing."""
    name = f"x_{lab.token}"
    declared = strategies.stream(rng, name, avro=bool(framing))
    if not framing:
        source = declare(lab, name, declared, partitions=rng.choice((1, 3)), options="format = 'json'", blank=b"{}")
        return Play(lab, source, declared, lambda one: json_event(one, rng), rng)
    schema = avro_schema(declared)
    text = json.dumps(schema).replace("'", "''")
    options = f"format = 'avro', framing = '{framing}', schema = '{text}'"
    blank = avro_event(schema, Event(), framing)
    source = declare(lab, name, declared, partitions=2, options=options, blank=blank)
    return Play(lab, source, declared, lambda one: avro_event(schema, one, framing), rng)


@pytest.mark.parametrize(("seed", "framing"), [(5, ""), (3, "single-object"), (4, "confluent")])
def test_results_equal_each_query_run_alone(lab: Lab, seed: int, framing: str) -> None:
    """While CQs come and go and events flow, every destination holds exactly the union of its CQs' own results."""
    rng = random.Random(seed)
    playing = play(lab, rng, framing=framing)
    playing.run(250)
    assert playing.check() > 200


def test_groups_and_destinations_follow_from_meaning_not_spelling(lab: Lab) -> None:
    """Generated queries are in one group when their predicates are equal up to constants (docs/statements.md)."""
    rng = random.Random(11)
    declared = strategies.stream(rng, f"g_{lab.token}")
    declare(lab, declared.name, declared, partitions=1, options="format = 'json'", blank=b"{}")
    asked = [strategies.query(rng, declared) for _ in range(120)]
    asked += [Query(declared, one.where, one.items, one.star) for one in asked]
    sent = [
        lab.client.send(f"CREATE CQ c{number} AS {spelling.select(one, rng)} DO PUBLISH SHARED")
        for number, one in enumerate(asked)
    ]
    groups, shapes, destinations = defaultdict(set), defaultdict(set), defaultdict(set)
    for number, (one, command_id) in enumerate(zip(asked, sent, strict=True)):
        reply = lab.client.reply(command_id)
        assert reply.code == "ok", reply.fields
        lab.cqs["alice", f"c{number}"] = reply.result
        groups[one.shape].add(reply.result["group"])
        shapes[reply.result["group"]].add(one.shape)
        if len(set(one.shape)) == len(one.shape):
            destinations[one.constants, one.items].add(reply.result["destination"]["id"])
    assert {shape: 1 for shape in groups} == {shape: len(found) for shape, found in groups.items()}
    assert {group: 1 for group in shapes} == {group: len(found) for group, found in shapes.items()}
    assert {key: 1 for key in destinations} == {key: len(found) for key, found in destinations.items()}


def test_in_list_of_ten_thousand(lab: Lab) -> None:
    """A list of 10,000 strings or integers, with quotes in them, matches exactly its own members."""
    name, rng = f"in_{lab.token}", random.Random(5)
    symbol, volume = Column("symbol", "STRING"), Column("volume", "BIGINT")
    declared = Stream(name, (symbol, volume))
    source = declare(lab, name, declared, partitions=1, options="format = 'json'", blank=b"{}")
    asked = {
        "strings": Query(
            declared, (Conjunct(symbol, "in", tuple(f"it's {n}" for n in range(10_000))),), _items(symbol)
        ),
        "numbers": Query(
            declared, (Conjunct(volume, "in", tuple(2**53 + 2 * n for n in range(10_000))),), _items(volume)
        ),
    }
    created = {cq: lab.create(cq, spelling.select(one, rng)) for cq, one in asked.items()}
    events = [Event({"symbol": f"it's {n}", "volume": 2**53 + n}) for n in (0, 1, 2, 9_999, 10_000, 19_998, 20_000)]
    source.publish(events, lambda one: json_event(one, rng))
    assert [0, 1, 2, 9_999] == [_number(one.row["symbol"]) for one in lab.matches(created["strings"], source)]
    numbers = lab.settled_matches(created["numbers"], source)
    assert [0, 2, 10_000, 19_998] == [one.row["volume"] - 2**53 for one in numbers]


def test_ids_headers_and_order(lab: Lab) -> None:
    """A match has the headers of docs/results.md, and one source partition's matches come in its order."""
    source = lab.stream("n INT", partitions=3)
    created = lab.create("all", f'SELECT n FROM "{source.name}"', clauses="DO PUBLISH SHARED")
    events = [Event({"n": n}, partition=n % 3, time_ms=BASE_MS + n) for n in range(300)]
    source.publish(events, lambda one: json_event(one, random.Random(0)))
    found = lab.matches(created, source)
    assert 300 == len(found)
    for one in found:
        n = one.row["n"]
        assert one.key == created["destination"]["key"] == created["destination"]["id"]
        assert (one.topic, one.partition) == ("cq.results", created["destination"]["partition"])
        assert ("1.0", "cq.match", source.name) == tuple(
            one.headers[name] for name in ("ce_specversion", "ce_type", "ce_source")
        )
        assert f"{source.name}/{n % 3}/{n // 3}" == one.headers["ce_id"]
        assert BASE_MS + n == _epoch_ms(one.headers["ce_time"])
    for partition in range(3):
        assert list(range(partition, 300, 3)) == [one.row["n"] for one in found if one.source[1] == partition]


def _items(column: Column) -> tuple[Item, ...]:
    return (Item(column.name, column.type, column=column.name),)


def _number(text: str) -> int:
    return int(text.split()[1])


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
