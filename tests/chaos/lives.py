"""The CQs of a chaos run: their queries, the events promised to each, and the results received."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests import spelling
from tests.chaos.companies import INDUSTRIES, Join
from tests.oracle import Position, Row
from tests.queries import Conjunct, Item, Query, Stream
from tests.stack.lives import Life
from tests.strategies import BIGINTS, COMPARISONS, query

__all__ = ["AT_ONCE", "DIGESTS", "Cq", "new_cq"]

DIGESTS = ("digest", "counted")
"""The modes of timer-based CQs."""
AT_ONCE = 12
"""Events per group of a counted CQ, by their numbers."""
_MODES = {"shared": 40, "dedicated": 10, "virtual": 10, "digest": 15, "counted": 12, "joined": 13}
"""How many of a hundred CQs have each mode."""

_EVERY = ("1 second", "2 seconds", "3 seconds")
_EVERY_COUNTED = (*_EVERY, "10 seconds")
"""With a tick late enough that groups are put together earlier."""
_START = "START '2026-01-01T00:00:00Z'"
"""Gives timer-based CQs a common phase, so equal CQs share a destination."""


@dataclass(slots=True)
class Cq(Life):
    """A CQ of the run, and its results from the SDK."""

    mode: str = "shared"
    """``shared``, ``dedicated``, ``virtual``, ``digest``, ``counted`` (a digest of groups) or ``joined``."""
    join: Join | None = None
    """How a joined one is joined with the table."""
    promised_until: int = 0
    """Number of events certainly evaluated, and in digests, at the last quiet moment before its DROP."""
    got: Counter[Position] = field(default_factory=Counter)
    """Per event: how often it was handed over as a match."""
    digested: Counter[object] = field(default_factory=Counter)
    """Per number of an event: how often it was handed over in a digest."""
    rows: dict[Position, Row] = field(default_factory=dict)
    """Per event, the result received, where raw records don't show it: for virtual CQs."""
    redis_lost: bool = False
    """Whether Redis was lost in the round of its DROP: events unevaluated by then are evaluated without the CQ."""
    retired: bool = False
    """Whether it was dropped, and compared for the last time."""

    @property
    def gone(self) -> bool:
        """Whether its DROP was answered."""
        return self.gone_from is not None

    def must(self, count: int) -> range:
        """The events that the CQ must have got, out of `count`.

        A DROP discards matches not yet in a digest, and takes effect at once where the reader filters, or where Redis
        is lost before the evaluation (docs/faults.md, the part on faults that are not survived).
        """
        due = Life.must(self, count)
        at_once = self.drop_sent is not None and (self.mode in (*DIGESTS, "virtual") or self.redis_lost)
        return range(due.start, min(due.stop, self.promised_until)) if at_once else due

    def may(self, count: int) -> range:
        """The events that the CQ may have got, out of `count`: a filtering reader reads on up to its CQ's end."""
        allowed = Life.may(self, count)
        return range(allowed.start, count) if self.mode == "virtual" else allowed


def new_cq(
    rng: random.Random, declared: Stream, table: str, before: Sequence[Cq], evaluated: int, subscriber: str
) -> Cq:
    """Return a CQ to be created: any kind, a third of them equal to an earlier one."""
    name = f"q{len(before)}"
    if before and rng.random() < 0.3:
        again = rng.choice(before)
        _, _, rest = again.text.partition(" AS ")
        text = f"CREATE CQ {name} AS {rest}"
        return Cq(again.query, text, name, subscriber, evaluated, mode=again.mode, join=again.join)
    mode = rng.choices(tuple(_MODES), weights=tuple(_MODES.values()))[0]
    asked = _virtual(rng, declared) if mode == "virtual" else query(rng, declared)
    asked = _with(asked, "id", "BIGINT") if mode in DIGESTS else asked
    asked = _with(asked, "Symbol", "STRING") if mode == "joined" else asked
    cq = Cq(asked, "", name, subscriber, evaluated, mode=mode)
    select = spelling.select(asked, rng)
    if mode == "counted":
        select = _counted(select, rng)
    if mode == "joined":
        cq.join = Join(rng.random() < 0.5, rng.choice((None, *INDUSTRIES)))
        select = f"SELECT x.*, industry, written FROM ({select}) AS x {cq.join.clauses(table)}"
    place = mode.upper() if mode in ("dedicated", "virtual") else "SHARED"
    ticks = (
        f" {rng.choice(('', _START))} EVERY '{rng.choice(_EVERY_COUNTED if mode == 'counted' else _EVERY)}'"
        if mode in DIGESTS
        else ""
    )
    cq.text = f"CREATE CQ {name} AS {select} DO PUBLISH {place}{ticks}"
    return cq


def _counted(select: str, rng: random.Random) -> str:
    """Have events counted by dozens; a digit of `digits`, in base 16, says how often an event was."""
    number = f"id % {AT_ONCE}"
    items = f"id DIV {AT_ONCE} AS dozen, count(id) AS n, sum(shiftleft(1L, CAST(4 * ({number}) AS INT))) AS digits"
    having = rng.choice(("", " HAVING count(*) > 0"))
    return f"SELECT {items} FROM ({select}) AS x GROUP BY id DIV {AT_ONCE}{having}"


def _virtual(rng: random.Random, declared: Stream) -> Query:
    """Return a query that a reader can filter by itself: a comparison of numbers, and plain columns."""
    columns = {column.name: column for column in declared.columns}
    where = (Conjunct(columns["volume"], rng.choice(COMPARISONS), (rng.choice(BIGINTS),)),)
    items = tuple(Item(name, columns[name].type, column=name) for name in ("id", "Symbol", "volume"))
    return Query(declared, where, items)


def _with(asked: Query, name: str, kind: str) -> Query:
    """Add a column to the rows: to identify their events, or to join by."""
    if any(item.name == name for item in asked.items):
        return asked
    return replace(asked, items=(Item(name, kind, column=name), *asked.items))
