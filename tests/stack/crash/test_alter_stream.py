"""ALTER STREAM amid events: each event is evaluated by one declaration, also over crashes (docs/statements.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.kafka_client import wait_until
from tests.kafka_tail import Tail, dead_letters
from tests.stack.crash.test_crash import wipe_redis
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack


@pytest.fixture
def letters(lab: Lab) -> Iterator[Tail]:
    """Dead letters from now on."""
    yield lab.dead_letter_tail()


def _alter(lab: Lab, source: Source, change: str) -> Any:
    return lab.client.result(f"ALTER STREAM {source.name} {change}", lab.subscriber("owner"))


def _numbers(lab: Lab, created: Any) -> list[int]:
    return [one.row["n"] for one in lab.results.of(created["destination"]) if one.kind == "cq.match"]


def _await(lab: Lab, created: Any, numbers: Iterable[int]) -> None:
    wanted = set(numbers)
    lab.results.until(lambda: wanted <= set(_numbers(lab, created)), f"{len(wanted)} matches")


def test_a_column_is_added_amid_events(lab: Lab) -> None:
    """A CQ on the new column misses nothing that is published after its reply; CQs that exist stay as they were."""
    source = lab.stream("n INT", partitions=2)
    everything = lab.create("all", f"SELECT * FROM {source.name} WHERE n >= 0")
    count = late = 0
    with_column: Any = None
    for number in range(8):
        values = [b'{"n": %d, "venue": "v%d"}' % (n, n) for n in range(count, count + 100)]
        source.publish_values(*values, partition=number % 2)
        count += 100
        if number == 3:
            described = _alter(lab, source, "ADD COLUMN venue STRING")
            assert ["n", "venue"] == [column["name"] for column in described["columns"]]
            with_column = lab.create("late", f"SELECT * FROM {source.name} WHERE venue LIKE 'v%'")
            late = count
    _await(lab, everything, range(count))
    _await(lab, with_column, range(late, count))
    assert list(range(count)) == sorted(_numbers(lab, everything))
    assert {("n",)} == {tuple(one.row) for one in lab.results.of(everything["destination"])}
    rows = [one.row for one in lab.results.of(with_column["destination"])]
    assert all(row == {"n": row["n"], "venue": f"v{row['n']}"} for row in rows)
    assert len(rows) == len({row["n"] for row in rows})
    lab.client.result("PAUSE CQ all", lab.subscriber())
    lab.client.result("RESUME CQ all", lab.subscriber())
    source.publish_values(b'{"n": -1}', b'{"n": 5000, "venue": "v5000"}')
    _await(lab, everything, [5000])
    assert {"n": 5000} == lab.results.of(everything["destination"])[-1].row


def test_options_change_amid_events(lab: Lab, letters: Tail) -> None:
    """Values that do not fit are dead letters, NULL after SET, and dead letters again."""
    source = lab.stream("n INT, price DOUBLE")
    made = lab.create("all", f"SELECT n, price FROM {source.name} WHERE n >= 0")
    for number, change in enumerate(("SET (lenient = TRUE)", "SET (lenient = FALSE)", "")):
        value = b'{"n": %d, "price": "dear"}' % number
        source.publish_values(value)
        _await_one(lab, letters, source, made, number, lenient=number == 1)
        if change:
            _alter(lab, source, change)
    assert [{"n": 1, "price": None}] == [one.row for one in lab.results.of(made["destination"])]


def _await_one(lab: Lab, letters: Tail, source: Source, made: Any, number: int, *, lenient: bool) -> None:
    if lenient:
        _await(lab, made, [number])
        return
    place = f"{source.topic}/0/{number}"
    wait_until(lambda: any(each.source == place for each in dead_letters(letters)), f"the dead letter of {place}")


def test_a_column_in_a_header_is_added_amid_events(lab: Lab) -> None:
    """The query that Spark runs has no headers: the first events after the reply have them all the same."""
    source = lab.stream("n INT")
    before = lab.create("before", f"SELECT n FROM {source.name} WHERE n >= 0")
    source.publish_values(*[b'{"n": %d}' % n for n in range(50)], headers=[("ce_type", b"trade")])
    _await(lab, before, range(50))
    _alter(lab, source, "ADD COLUMN type STRING FROM HEADER 'ce_type'")
    after = lab.create("after", f"SELECT n FROM {source.name} WHERE type = 'trade'")
    for first in range(50, 250, 50):
        source.publish_values(*[b'{"n": %d}' % n for n in range(first, first + 50)], headers=[("ce_type", b"trade")])
        _await(lab, after, range(first, first + 50))
    _await(lab, before, range(250))
    assert list(range(250)) == _numbers(lab, before)


@pytest.mark.timeout(900)  # an evaluator, and Redis with all roles, start anew
def test_each_event_has_one_declaration_over_crashes(stack: Stack, lab: Lab, letters: Tail) -> None:
    """An evaluator is killed amid events and the stream is altered meanwhile; then Redis is lost with all it held."""
    source = lab.stream("n INT, price DOUBLE")
    made = lab.create("all", f"SELECT n, price FROM {source.name} WHERE n >= 0")
    found: set[int] = set()

    def flow(first: int, count: int) -> None:
        source.publish_values(
            *[b'{"n": %d, "price": "%d", "venue": "v"}' % (n, n) for n in range(first, first + count)]
        )

    def lost() -> set[int]:
        places = (each.source.rsplit("/", 2) for each in dead_letters(letters))
        found.update(int(offset) for topic, _, offset in places if topic == source.topic)
        return found

    flow(0, 2000)
    wait_until(lost, "a dead letter")
    pid = stack.kill("evaluator")
    _alter(lab, source, "SET (lenient = TRUE)")
    _alter(lab, source, "ADD COLUMN venue STRING")
    by_venue = lab.create("by_venue", f"SELECT n, venue FROM {source.name} WHERE venue = 'v'")
    flow(2000, 500)
    stack.await_restart("evaluator", pid)
    _await(lab, made, range(2000, 2500))
    _await(lab, by_venue, range(2000, 2500))
    wait_until(lambda: len(lost() | set(_numbers(lab, made))) == 2500, "all events, by either declaration")
    assert not lost() & set(_numbers(lab, made))
    wipe_redis(stack)
    pid = stack.kill("redis")
    flow(2500, 500)
    stack.await_restart("redis", pid)
    flow(3000, 500)
    _await(lab, made, range(2500, 3500))
    _await(lab, by_venue, range(2500, 3500))
    assert not lost() & set(_numbers(lab, made))
    described = lab.client.result(f"DESCRIBE STREAM {source.name}")
    assert (["n", "price", "venue"], True) == ([each["name"] for each in described["columns"]], described["lenient"])
