"""Digests of a table's rows through the real servers: the rows of the tick, once, also where a role dies meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from grouping.digests.orders import ORDERS, Order
from tests.kafka_tail import Result, Tail
from tests.stack.digests.ticks import digests, now_ms, tick_of
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import WORKER_DEATH

_PARTITIONS = 2
_AGAIN = "digests of rows not written, will be tried again"
_Rows = dict[str, dict[str, Any]]


class _Phase(NamedTuple):
    """A time in which the table has the same rows."""

    since_ms: int
    until_ms: int
    rows: _Rows


class _RowTable:
    """The table, and the rows that it had."""

    def __init__(self, lab: Lab) -> None:
        self.table = LabTable(lab, "k STRING PRIMARY KEY, industry STRING, staff INT", partitions=_PARTITIONS)
        self._rows: _Rows = {}
        self._since_ms = now_ms()
        self.phases: list[_Phase] = []

    def put(self, **rows: tuple[str, int] | None) -> None:
        """Set rows, None to remove one, and return when Kafka has them."""
        self.close()
        for key, row in rows.items():
            value = None if row is None else {"k": key, "industry": row[0], "staff": row[1]}
            body = None if value is None else json.dumps(value).encode()
            self.table.write((key, body), partition=ord(key) % _PARTITIONS)
            self._rows = {name: each for name, each in self._rows.items() if name != key}
            self._rows |= {} if value is None else {key: value}
        self._since_ms = now_ms()

    def close(self) -> None:
        """Note that the rows of this time may change from now on."""
        self.phases.append(_Phase(self._since_ms, now_ms(), self._rows))

    def of(self, digest: Result) -> _Phase | None:
        """Return the phase of a digest; None where the rows changed about the tick, or until the cut was made."""
        fired_ms = _ms(digest.row["fired_at"])
        return next(
            (each for each in self.phases if each.since_ms <= tick_of(digest) <= fired_ms <= each.until_ms), None
        )


def _of(industry: str) -> Callable[[_Rows], list[Any]]:
    return lambda rows: [{"k": row["k"], "staff": row["staff"]} for row in rows.values() if row["industry"] == industry]


def _staff(rows: _Rows) -> list[Any]:
    names = sorted({row["industry"] for row in rows.values()})
    sums = {name: sum(row["staff"] for row in rows.values() if row["industry"] == name) for name in names}
    return [{"industry": name, "staff": total} for name, total in sums.items() if total > 3]


def _by_partition(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row.get("k", ""))


def _check(table: _RowTable, found: list[Result], shown: Callable[[_Rows], list[Any]]) -> int:
    """Compare the digests of a CQ with the rows at their ticks; return how many phases had a digest."""
    ticks = [tick_of(one) for one in found]
    assert sorted(set(ticks)) == ticks
    phases = {each.since_ms: each for one in found if (each := table.of(one)) is not None}
    for one in found:
        if (phase := table.of(one)) is not None:
            assert _by_partition(one.row["rows"]) == _by_partition(shown(phase.rows)), (one.row, phase)
    return len(phases)


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_digests_have_the_rows_of_their_ticks(stack: Stack, lab: Lab) -> None:
    """Updates and removals count up to the tick; a gateway that dies after the cut was made changes nothing."""
    table = _RowTable(lab)
    table.put(a=("Chips", 5), b=("Software", 7), c=("Software", 2))
    name, clauses = table.table.name, "EVERY '2 seconds' DO PUBLISH SHARED"
    select, groups = f"SELECT k, staff FROM {name} WHERE industry", f"FROM {name} GROUP BY industry"
    asked = {
        "chips": (f"{select} = 'Chips'", _of("Chips")),
        "software": (f"{select} = 'Software'", _of("Software")),
        "staff": (f"SELECT industry, sum(staff) AS staff {groups} HAVING sum(staff) > 3", _staff),
    }
    made = {each: lab.create(each, text, clauses=clauses) for each, (text, _) in asked.items()}
    assert made["chips"]["group"] == made["software"]["group"]
    last = lab.create("last", f"{select} = 'Chips'", clauses="EVERY '1 hour' EXPIRE AFTER '4 seconds'")
    altered = lab.create("altered", f"{select} = 'Software'", clauses="EVERY '1 hour'")
    altered |= lab.client.result("ALTER CQ altered SET EXPIRE AFTER '4 seconds'", lab.subscriber())

    def until(tick_ms: int) -> None:
        def came() -> bool:
            found = [digests(lab, each) for each in made.values()]
            return all(some and tick_of(some[-1]) >= tick_ms for some in found)

        lab.results.until(came, f"the digests of {tick_ms}")

    until(now_ms())
    with closing(Tail(stack.bootstrap)) as tail:
        tail.add_topic(f"{lab.client.prefix}orders")
        table.put(b=("Chips", 7), c=None, d=("Software", 4))
        changed_ms, pid, tick_ms = now_ms(), 0, 0
        while not pid:
            for message in tail.poll(0.1):
                if message.partition() == ORDERS and (body := message.value()) is not None:
                    order = msgspec.msgpack.decode(body, type=Order)
                    tick_ms = max((each.tick_ms for each in order.digests if each.of_rows), default=0)
                    if tick_ms >= changed_ms and not pid:
                        pid = stack.kill("gateway")
    until(tick_ms)
    stack.await_restart("gateway", pid)
    until(now_ms())
    table.close()
    for each, (_, shown) in asked.items():
        assert _check(table, digests(lab, made[each]), shown) == len(table.phases) - 1, each  # the table began empty
    for name, created, shown in (("last", last, _of("Chips")), ("altered", altered, _of("Software"))):
        lab.results.until(lambda each=created: _ended(lab, each), "the end")
        [digest] = digests(lab, created)
        assert tick_of(digest) == _ms(created["expires_at"])
        _check(table, [digest], shown)
        lab.cqs.pop((lab.subscriber(), name))


def _ended(lab: Lab, created: dict[str, Any]) -> bool:
    return any(one.kind == "cq.end" for one in lab.results.of(created["destination"]))


@pytest.mark.traceback(WORKER_DEATH)
def test_a_worker_that_dies_amid_a_digest_ends_no_evaluator(stack: Stack, lab: Lab) -> None:
    """The evaluator carries the job out again, so streams go on meanwhile, and each tick has one digest."""
    table = LabTable(lab, "k STRING PRIMARY KEY")
    table.put({"k": "a"})
    made = lab.create("rows", f"SELECT k FROM {table.name}", clauses="EVERY '2 seconds' DO PUBLISH SHARED")
    lab.results.until(lambda: bool(digests(lab, made)), "a digest")
    pid, log = stack.report()["roles"]["evaluator"]["pid"], stack.data / "logs" / "evaluator.log"
    before = log.read_text(errors="replace").count(_AGAIN)

    def died() -> bool:
        stack.kill_workers()
        return log.read_text(errors="replace").count(_AGAIN) > before

    lab.results.until(died, "a death amid a digest")
    since = now_ms()
    lab.results.until(lambda: tick_of(digests(lab, made)[-1]) > since, "a later digest")
    assert stack.report()["roles"]["evaluator"]["pid"] == pid
    ticks = [tick_of(one) for one in digests(lab, made)]
    assert sorted(set(ticks)) == ticks
