"""Queries that harm their evaluator, by faults planted by the test: the others go on (docs/faults.md)."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pytest

from tests.fuzz.hostile_aggregates import COLUMNS, WITNESS_SECONDS, hostile_rounds
from tests.kafka_client import wait_until
from tests.kafka_tail import DeadLetter, Tail, dead_letters
from tests.stack.lab import Lab, Source
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

pytestmark = pytest.mark.traceback(WORKER_DEATH)


def _publish(source: Source, first: int, count: int) -> list[int]:
    values = [b'{"symbol": "A", "n": %d, "deadly": "x", "endless": "x"}' % n for n in range(first, first + count)]
    return [at.offset for at in source.publish_values(*values)]


def _numbers(lab: Lab, created: Any) -> list[int]:
    lab.results.drain()
    return [one.row["n"] for one in lab.results.of(created["destination"]) if one.kind == "cq.match"]


def _await_numbers(lab: Lab, created: list[Any], count: int) -> None:
    """Wait until each CQ has the first results, in order."""
    for one in created:
        lab.results.until(lambda one=one: len(_numbers(lab, one)) >= count, "results of healthy CQs")  # type: ignore[misc]
        assert list(range(count)) == _numbers(lab, one)


def _letters(lab: Lab, tail: Tail, source: Source, offsets: list[int]) -> list[DeadLetter]:
    """Wait until each of the events has a dead letter."""
    found: list[DeadLetter] = []
    expected = {f"{source.topic}/0/{offset}" for offset in offsets}

    def complete() -> bool:
        found.extend(letter for letter in dead_letters(tail) if letter.source.startswith(f"{source.topic}/"))
        return expected <= {letter.source for letter in found}

    wait_until(complete, f"dead letters of {sorted(expected)}")
    assert {"not-evaluated"} == {letter.code for letter in found}
    return found


def _await_status(stack: Stack, name: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []

    def seen() -> bool:
        answers.append(stack.report())
        return condition(answers[-1]["streams"].get(name, {}))

    wait_until(seen, f"status of {name}")
    return answers[-1]


@pytest.mark.traceback("MemoryError: planted")
@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ("SELECT n FROM {} WHERE symbol = 'A' AND deadly LIKE '%x%'", "ended the worker"),
        ("SELECT n FROM {} WHERE symbol = 'A' AND endless LIKE '%x%'", "too much CPU time"),
        ("SELECT n, n AS deadly FROM {} WHERE symbol = 'A'", "ended the worker"),
        ("SELECT n, n AS raising FROM {} WHERE symbol = 'A'", "MemoryError"),
    ],
    ids=["predicate kills", "predicate hangs", "select list kills", "select list raises"],
)
def test_healthy_queries_go_on(harmed: Stack, lab: Lab, select: str, reason: str) -> None:
    """The others have all results, of the same group too; the guilty one's are dead letters, and it is told of."""
    source, tail = lab.stream("symbol STRING, n INT, deadly STRING, endless STRING"), lab.dead_letter_tail()
    healthy = [
        lab.create("same group", f"SELECT n FROM {source.name} WHERE symbol = 'A'", clauses="DO PUBLISH SHARED"),
        lab.create("every event", f"SELECT n FROM {source.name}", clauses="DO PUBLISH SHARED"),
        lab.create("dedicated", f"SELECT n, symbol FROM {source.name} WHERE n >= 0", clauses="DO PUBLISH DEDICATED"),
    ]
    guilty = lab.create("guilty", select.format(source.name), lab.subscriber("mallory"), follow=False)
    offsets = _publish(source, 0, 20)
    _await_numbers(lab, healthy, 20)
    letters = _letters(lab, tail, source, offsets)
    assert all(f'"{guilty["group"]}"' in letter.detail and reason in letter.detail for letter in letters)
    assert b'"n": 0' in (letters[0].value or b"")

    status = _await_status(harmed, source.name, lambda report: bool(report.get("quarantined")))
    shown = status["streams"][source.name]["quarantined"]
    assert [guilty["group"]] == [share.split("/")[0] for share in shown]
    described = lab.client.result("DESCRIBE CQ guilty", lab.subscriber("mallory"))
    assert reason in described["quarantined"]["reason"]
    assert lab.client.result('DESCRIBE CQ "same group"', lab.subscriber())["quarantined"] is None
    groups = {item["group"]: item for item in lab.client.result("SHOW GROUPS", lab.subscriber("mallory"))["groups"]}
    assert groups[guilty["group"]]["quarantined"] is not None
    wanted = (
        f'cq_live_cqs{{stream="{source.name}"}} 4.0',
        f'cq_quarantined_groups{{stream="{source.name}"}} 1.0',
        'cq_evaluator_dead_letters{code="not-evaluated"}',
    )

    def measured() -> bool:
        metrics = urlopen(harmed.endpoints()["metrics_url"]).read().decode()
        return all(line in metrics for line in wanted)

    wait_until(measured, "metrics of the quarantine")

    _publish(source, 20, 20)
    _await_numbers(lab, healthy, 40)
    lab.drop("guilty", lab.subscriber("mallory"))
    _await_status(harmed, source.name, lambda report: not report.get("quarantined") and "reason" not in report)
    wait_until(lambda: harmed.report()["state"] == "ready", "roles that are all ready")
    _publish(source, 40, 5)
    _await_numbers(lab, healthy, 45)


def test_an_aggregate_that_never_ends_harms_nobody_else(harmed: Stack, lab: Lab) -> None:
    """A text of 500 KB and a pattern of quadratic time: the worker dies once, and the others have all results."""
    source, tail = lab.stream("symbol STRING, n INT, body STRING"), lab.dead_letter_tail()
    mallory = lab.subscriber("mallory")
    healthy = lab.create("healthy", f"SELECT n FROM {source.name} WHERE n >= 0", clauses="DO PUBLISH SHARED")
    text = f"SELECT sum(regexp_count(body, '.*x|.')) AS c FROM {source.name} WHERE n > 0"
    guilty = lab.create("endless", text, mallory, clauses="EVERY '1 second'", follow=False)
    values = [b'{"symbol": "A", "n": %d, "body": "%s"}' % (n, b"a" * (500_000 if n == 1 else 1)) for n in range(4)]
    offsets = [at.offset for at in source.publish_values(*values)]
    _await_numbers(lab, [healthy], 4)
    letters = _letters(lab, tail, source, offsets[1:])
    assert all(f'"{guilty["group"]}"' in letter.detail for letter in letters)
    described = "DESCRIBE CQ endless"
    wait_until(lambda: "too much CPU time" in str(lab.client.result(described, mallory)["quarantined"]), "the reason")
    lab.drop("endless", mallory)


def test_a_witness_is_served_beside_hostile_aggregates(lab: Lab) -> None:
    """The beginning of `python -m tests.fuzz.hostile_aggregates`, which has a thousand of them."""
    rounds = hostile_rounds(lab, lab.stream(COLUMNS), random.Random(39), rounds=2, at_once=3)
    assert max(rounds) < 5 * WITNESS_SECONDS, "on a machine that is slow, and does other work, too"


def test_details_are_logged_at_run_time(harmed: Stack, lab: Lab) -> None:
    """SIGUSR1 has gateway and evaluator log details, SIGUSR2 ends that, and both go on."""
    source, numbers = lab.stream("n INT"), itertools.count()
    made = lab.create("every event", f"SELECT n FROM {source.name}", clauses="DO PUBLISH SHARED")

    def details(role: str) -> set[str]:
        """Return the messages at level DEBUG that an event and a command cause."""
        before, number = len(_objects(harmed, role)), next(numbers)
        source.publish_values(b'{"n": %d}' % number)
        _await_numbers(lab, [made], number + 1)
        lab.client.result("SHOW CQS", lab.subscriber())
        harmed.settled_streams()
        return {line["message"] for line in _objects(harmed, role)[before:] if line["level"] == "DEBUG"}

    def send(number: signal.Signals) -> None:
        for role in ("gateway", "evaluator"):
            os.kill(harmed.endpoints()["pids"][role], number)

    send(signal.SIGUSR1)
    wait_until(lambda: "commands answered" in details("gateway"), "details of the gateway")
    wait_until(lambda: "micro-batch evaluated" in details("evaluator"), "details of the evaluator")
    send(signal.SIGUSR2)
    wait_until(lambda: not details("gateway"), "the end of the gateway's details")
    wait_until(lambda: not details("evaluator"), "the end of the evaluator's details")


def test_each_line_of_the_logs_is_json(harmed: Stack) -> None:
    """Lines of gateway, evaluator, workers, Spark and Java are objects, lines of dead workers included."""
    wait_until(lambda: harmed.report()["state"] == "ready", "roles that are all ready")
    found = _objects(harmed, "evaluator")
    assert any("incubator modules" in line.get("message", "") for line in found), "a line of Java itself"
    assert any("exception" in line for line in found), "a stack trace of Spark"
    assert any("MemoryError: planted" in line.get("stack", "") for line in found), "a stack trace of a worker"
    assert _objects(harmed, "gateway")


def _objects(stack: Stack, role: str) -> list[dict[str, Any]]:
    lines = (stack.data / "logs" / f"{role}.log").read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
