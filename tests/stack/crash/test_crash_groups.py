"""Aggregates of every kind over joins, while tables change and everything dies: equal to DuckDB's of the same rows."""

from __future__ import annotations

import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from gateway.model.records import instant
from tests.stack.crash.test_crash import wipe_redis
from tests.stack.digests.ticks import digests, now_ms, tick_of
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack
from tests.stack.tracebacks import TOPIC_GREW, WORKER_DEATH

Row = dict[str, Any]

_STREAM = "n INT, symbol STRING, price DOUBLE, amount DECIMAL(10,2), ts TIMESTAMP, flag BOOLEAN"
_TYPES = {
    "n": pa.int32(), "symbol": pa.string(), "price": pa.float64(), "amount": pa.decimal128(10, 2),
    "ts": pa.timestamp("us"), "flag": pa.bool_(), "part": pa.int32(), "pos": pa.int64(), "industry": pa.string(),
    "said": pa.int32(), "owner": pa.string(), "shares": pa.int32(), "owned": pa.int32(),
}  # fmt: skip
"""Columns of the joined rows; `said` and `owned` are numbers of changes."""
_JOINED = (
    "SELECT n, q.symbol AS symbol, price, amount, ts, flag, q._partition AS part, q._offset AS pos, industry,"
    " p.said AS said, owner, shares, o.said AS owned FROM {quotes} q LEFT JOIN {profiles} p ON q.symbol = p.symbol"
    " LEFT JOIN {owners} o ON o.symbol = q.symbol"
)
_QUERIES = {
    "counts": "SELECT industry, count(*) AS c, count(owner) AS o, count(DISTINCT owner) AS d,"
    " approx_count_distinct(n) AS a, sum(n) AS s, avg(price) AS m FROM v GROUP BY industry",
    "extremes": "SELECT symbol, min(price) AS lo, max(ts) AS late, max(owner) AS t, sum(amount) AS a, avg(amount) AS m"
    " FROM v WHERE n >= 0 GROUP BY symbol HAVING count(*) > 3",
    "moments": "SELECT stddev(price) AS a, stddev_pop(n) AS b, var_samp(shares) AS c, var_pop(amount) AS d FROM v",
    "flags": "SELECT industry, owner, bool_and(flag) AS a, bool_or(price > 1) AS o FROM v GROUP BY 1, owner"
    " HAVING bool_or(flag) OR count(*) < 3",
    "filters": "SELECT owner, sum(shares) FILTER (WHERE flag) AS s, count(*) FILTER (WHERE price > 1) AS c"
    " FROM v WHERE n % 2 = 0 GROUP BY owner",
    "arrivals": "SELECT part, first(symbol) AS f, last(n) AS l, min_by(price, n) AS a, max_by(amount, n) AS b"
    " FROM v GROUP BY part",
    "aliases": "SELECT coalesce(industry, 'none') AS i, sum(shares) AS s, max(shares) - min(shares) AS wide FROM v"
    " GROUP BY i HAVING s > 20 OR i = 'none'",
    "nothing": "SELECT sum(n) AS s, count(*) AS c FROM v WHERE n < 0",
    "most": "SELECT symbol, sum(price) AS s FROM v GROUP BY symbol",
    "wide": "SELECT symbol, count(*) AS c, sum(amount) AS s, max(n) AS m FROM v GROUP BY symbol HAVING count(*) > 5",
    "later": "SELECT symbol, count(DISTINCT n) AS c, sum(price) AS s FROM v WHERE n >= {later} GROUP BY symbol",
}
_OVER_MS = 3000
_LATE_MS = 500
"""How far an event's time is behind its publishing, at most."""
_MOST = 2
_ENGINE = duckdb.connect()


class _Table:
    """A table, and its history for each symbol."""

    def __init__(self, lab: Lab, columns: str) -> None:
        self._table = LabTable(lab, columns)
        self.name = self._table.name
        self.states: dict[str, list[frozenset[tuple[Any, ...]]]] = defaultdict(lambda: [frozenset()])
        """By symbol: its rows after each change."""

    def set(self, key: Row, row: Row | None) -> None:
        """Set or remove a row, and return when Kafka has that."""
        named = key["symbol"] if len(key) == 1 else json.dumps(key)
        self._table.write((named, None if row is None else json.dumps(key | row).encode()))
        own = tuple(value for name, value in key.items() if name != "symbol")
        kept = {each for each in self.states[key["symbol"]][-1] if each[: len(own)] != own}
        if row is not None:
            kept.add((*own, *row.values()))
        self.states[key["symbol"]].append(frozenset(kept))


class _Market:
    """A stream and its tables; changes of these and events follow each other."""

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        self._rng = rng
        self._lab = lab
        self.source = lab.stream(_STREAM, partitions=2)
        self._profiles = _Table(lab, "symbol STRING PRIMARY KEY, industry STRING, said INT")
        self._owners = _Table(lab, "owner STRING, symbol STRING, shares INT, said INT, PRIMARY KEY (owner, symbol)")
        names = {"quotes": self.source.name, "profiles": self._profiles.name, "owners": self._owners.name}
        self.joined = f"({_JOINED.format(**names)}) AS v"
        self.sent: list[tuple[str | None, int, int]] = []
        """By number of an event: its symbol, and how many changes of its rows it must have seen."""
        self._changes = 0

    def run(self, steps: int) -> None:
        """Change rows and publish events, again and again."""
        for _ in range(steps):
            self._change()
            self._publish(self._rng.choice((1, 3, 8)))
            self._lab.results.until(lambda: True, "")

    def _change(self) -> None:
        self._changes += 1
        symbol, changes = self._rng.choice("ABC"), {"said": self._changes}
        if self._rng.random() < 0.5:
            row = {"industry": self._rng.choice(("x", "y", None))} | changes
            self._profiles.set({"symbol": symbol}, row if self._rng.random() < 0.8 else None)
        else:
            row = {"shares": self._rng.choice((1, 5, 9, None))} | changes
            key = {"owner": self._rng.choice("pqr"), "symbol": symbol}
            self._owners.set(key, row if self._rng.random() < 0.8 else None)

    def _publish(self, count: int) -> None:
        records = []
        for _ in range(count):
            number, symbol = len(self.sent), self._rng.choice(("A", "B", "C", "Z", None))
            seen = (len(table.states[symbol or ""]) - 1 for table in (self._profiles, self._owners))
            self.sent.append((symbol, *seen))
            row = {
                "n": number, "symbol": symbol, "price": self._rng.choice((0.5, 1.25, 1e9, None)),
                "amount": self._rng.choice(("0.01", "-7.50", "99999999.99", None)), "ts": instant(number),
                "flag": self._rng.choice((True, False, None)),
            }  # fmt: skip
            at_ms = now_ms() + self._rng.choice((0, 0, -_LATE_MS, 1500))
            records.append((json.dumps(row).encode(), None, number % self.source.partitions, at_ms))
        self._lab.client.publish_all(self.source.topic, records)

    def check(self, rows: Iterable[Row]) -> None:
        """Check that each event was joined once, with the rows of a moment since its publication."""
        rows_of: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            rows_of[row["n"]].append(row)
        assert sorted(rows_of) == list(range(len(self.sent)))
        for number, (symbol, *seen) in enumerate(self.sent):
            parts = (("industry", "said"), ("owner", "shares", "owned"))
            for names, table, least in zip(parts, (self._profiles, self._owners), seen, strict=True):
                found = [tuple(row[name] for name in names) for row in rows_of[number] if row[names[-1]] is not None]
                assert frozenset(found) in table.states[symbol or ""][least:], f"event {number} met {found}"
            owners = {row["owner"] for row in rows_of[number]}
            assert len(owners) == len(rows_of[number]), f"event {number} met a row twice: {rows_of[number]}"


def _alone(select: str, rows: list[Row]) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows of joined rows."""
    read = {"amount": Decimal, "ts": lambda text: datetime.fromisoformat(text).replace(tzinfo=None)}
    columns = {
        name: pa.array([row[name] and read[name](row[name]) if name in read else row[name] for row in rows], kind)
        for name, kind in _TYPES.items()
    }
    _ENGINE.register("v", pa.table(columns))
    text = select.replace("approx_count_distinct(", "count(DISTINCT ")
    text = re.sub(r"\b(min|max)_by\(", r"arg_\1_null(", text)
    return _ENGINE.execute(re.sub(r"\b(first|last)\((\w+)\)", r"\1(\2 ORDER BY pos)", text)).fetchall()


def _plain(value: Any) -> Any:
    """Return a value of a digest or of DuckDB in one form."""
    if isinstance(value, str) and value.endswith("Z") and value != "Z":
        value = datetime.fromisoformat(value).replace(tzinfo=None)
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        value = Decimal(value)
    return float(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def _same(found: list[Row], wanted: list[tuple[Any, ...]]) -> bool:
    """Tell whether rows are equal in some order: each begins with the keys of its group."""
    ours, theirs = ([tuple(map(_plain, row)) for row in rows] for rows in ((row.values() for row in found), wanted))
    pairs = zip(sorted(ours, key=repr), sorted(theirs, key=repr), strict=False)
    return len(ours) == len(theirs) and all(_close(*values) for row in pairs for values in zip(*row, strict=True))


def _close(one: Any, other: Any) -> bool:
    both = isinstance(one, float) and isinstance(other, float)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6) if both else one == other


class _Queries:
    """CQs over the same join with the same ticks: one has the rows of the join, the others count them."""

    def __init__(self, lab: Lab, joined: str, start_ms: int) -> None:
        self._lab = lab
        self._joined = joined
        self._start = f"START '{instant(start_ms)}' DO PUBLISH SHARED"
        self._selects: dict[str, str] = {}
        self._digests: dict[str, dict[int, Row]] = defaultdict(dict)
        self._made: dict[str, Any] = {"rows": self.create("rows", "SELECT * FROM v")}

    def create(self, name: str, select: str, more: str = "", over: str = "") -> Any:
        """Create a CQ."""
        clauses = f"{self._start} {more} EVERY '1 second' {over}"
        return self._lab.create(name, select.replace("FROM v", f"FROM {self._joined}"), clauses=clauses)

    def watch(self, name: str, **values: int) -> None:
        """Create a CQ whose digests are compared."""
        self._selects[name] = select = _QUERIES[name].format(**values)
        more = {"nothing": "EVEN IF EMPTY", "most": f"DIGEST TOP {_MOST} BY s"}.get(name, "")
        over = f"OVER LAST '{_OVER_MS // 1000} seconds'" if name == "wide" else ""
        self._made[name] = self.create(name, select, more, over)

    def await_accepted(self) -> None:
        """Return when the times of all later events are after all acceptances so far.

        An event of an earlier time would be in an earlier digest of rows than in that of a just accepted CQ, or before
        the START of all.
        """
        accepted_ms = now_ms()
        self._lab.results.until(lambda: now_ms() > accepted_ms + _LATE_MS, "events after the acceptance")

    def digests(self, name: str) -> dict[int, Row]:
        """Return the digests of a CQ so far, by their ticks."""
        known = self._digests[name]
        known.update(
            {tick: one.row for one in digests(self._lab, self._made[name]) if (tick := tick_of(one)) not in known}
        )
        return known

    def rows(self) -> list[Row]:
        """Return the joined rows of all digests so far."""
        return [row for digest in self.digests("rows").values() for row in digest["rows"]]

    def await_all(self, count: int) -> None:
        """Return when all events are in digests of rows."""
        self._lab.results.until(lambda: len({row["n"] for row in self.rows()}) >= count, "all events", 300)

    def check(self, without: tuple[int, int] = (0, 0)) -> None:
        """Check that each digest is DuckDB's result over the rows of its ticks.

        Args:
            without: The ticks between the two are not checked for the CQ with a window: a tick of OVER LAST missed by
                the gateway has no digest, and the following digest has only its own window, where the digest of rows
                has all rows.
        """
        after, before = without
        for name in self._selects:
            wanted = {
                tick: rows
                for tick in self.digests("rows")
                if not (name == "wide" and after < tick < before) and (rows := self._aggregated(name, tick))
            }
            self._lab.results.until(lambda name=name, wanted=wanted: wanted.keys() <= self.digests(name).keys(), name)  # type: ignore[misc]
            found = self.digests(name)
            if name == "wide":
                found = {tick: digest for tick, digest in found.items() if not after < tick < before}
            assert wanted.keys() == found.keys() or name in ("nothing", "wide"), name
            for tick, digest in found.items():
                rows = wanted.get(tick) or self._aggregated(name, tick)
                assert _same(digest["rows"], rows), f"{name} at {tick} is {digest}, and not {rows}"

    def _aggregated(self, name: str, tick: int) -> list[tuple[Any, ...]]:
        first = tick - _OVER_MS if name == "wide" else tick - 1
        rows = [row for at, digest in self.digests("rows").items() if first < at <= tick for row in digest["rows"]]
        order = f" ORDER BY s DESC NULLS LAST, symbol NULLS LAST LIMIT {_MOST}" if name == "most" else ""
        return _alone(self._selects[name] + order, rows)


@pytest.mark.traceback(WORKER_DEATH)
@pytest.mark.traceback(TOPIC_GREW)  # the query may just start anew, after the death of its workers
@pytest.mark.timeout(900)  # Redis and all roles start anew
def test_groups_are_as_each_query_alone(stack: Stack, lab: Lab) -> None:
    """Workers, evaluator and gateway are killed, Redis is lost, and the stream gets a partition; CQs come and go.

    Each digest equals DuckDB's result over the joined rows in the plain digest of the same tick, and each of these rows
    shows the tables at a moment between the event's publication and its evaluation.
    """
    market = _Market(lab, random.Random(14))
    queries = _Queries(lab, market.joined, now_ms() - 250)
    for name in _QUERIES.keys() - {"later"}:
        queries.watch(name)
    queries.await_accepted()
    market.run(30)
    stack.kill_workers()
    market.run(30)
    lab.client.grow_topic(market.source.topic, 3)
    market.source.partitions = 3
    passing = _QUERIES["counts"] + " HAVING count(*) >"
    for number in range(3):
        queries.create(f"passing{number}", f"{passing} {number}")
        market.run(5)
        lab.drop(f"passing{number}")
    queries.watch("later", later=len(market.sent))
    queries.await_accepted()
    market.run(10)
    queries.await_all(len(market.sent))
    queries.check()
    checked_ms = max(queries.digests("wide"))
    market.run(10)
    wipe_redis(stack)  # before Redis dies: it is started again at once
    killed = {role: stack.kill(role) for role in ("redis", "gateway", "evaluator")}
    market.run(30)
    for role, pid in killed.items():
        stack.await_restart(role, pid)
    market.run(20)
    queries.await_all(len(market.sent))
    settled_ms = now_ms() + _OVER_MS
    lab.results.until(lambda: now_ms() > settled_ms, "the end of the windows that meet the crash")
    market.run(20)
    queries.await_all(len(market.sent))
    market.check(queries.rows())
    queries.check((checked_ms, settled_ms))
    lab.results.until(lambda: max(queries.digests("wide")) > settled_ms, "a window after the crash")
