"""The CQs of a chaos run: what they ask for, which events each was promised, and what it got."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests import spelling
from tests.oracle import Position, Row
from tests.queries import Conjunct, Item, Query, Stream
from tests.stack.lives import Life
from tests.strategies import BIGINTS, COMPARISONS, query

__all__ = ["Cq", "new_cq"]

_EVERY = ("1 second", "2 seconds", "3 seconds")
_START = "START '2026-01-01T00:00:00Z'"
"""Gives timer-based CQs one phase, so that equal ones share a destination."""


@dataclass(slots=True)
class Cq(Life):
    """One CQ of the run, and what the SDK has handed over for it."""

    mode: str = "shared"
    """``shared``, ``dedicated``, ``virtual`` or ``digest``."""
    promised_until: int = 0
    """So many events were certainly evaluated, and in digests, at the last quiet moment before its DROP."""
    got: Counter[Position] = field(default_factory=Counter)
    """Per event: how often it was handed over as a match."""
    digested: Counter[object] = field(default_factory=Counter)
    """Per number of an event: how often it was handed over in a digest."""
    rows: dict[Position, Row] = field(default_factory=dict)
    """Per event, what was handed over, where the raw records don't show it: of virtual CQs."""
    redis_lost: bool = False
    """Whether Redis was lost in the round of its DROP: what was not evaluated by then is evaluated without it."""
    retired: bool = False
    """Whether it was dropped, and compared for the last time."""

    @property
    def gone(self) -> bool:
        """Whether its DROP was answered."""
        return self.gone_from is not None

    def must(self, count: int) -> range:
        """The events that it must have got, of so many.

        A DROP discards what a digest has not brought yet, and takes effect at once where the reader filters, or where
        Redis is lost before it is evaluated (docs/faults.md, what is not survived).
        """
        due = Life.must(self, count)
        at_once = self.drop_sent is not None and (self.mode in ("digest", "virtual") or self.redis_lost)
        return range(due.start, min(due.stop, self.promised_until)) if at_once else due

    def may(self, count: int) -> range:
        """The events that it may have got, of so many: a reader that filters reads others' up to its CQ's end."""
        allowed = Life.may(self, count)
        return range(allowed.start, count) if self.mode == "virtual" else allowed


def new_cq(rng: random.Random, declared: Stream, before: Sequence[Cq], evaluated: int, subscriber: str) -> Cq:
    """Return a CQ to be created: any kind, a third of them equal to an earlier one."""
    name = f"q{len(before)}"
    if before and rng.random() < 0.3:
        again = rng.choice(before)
        _, _, rest = again.text.partition(" AS ")
        return Cq(again.query, f"CREATE CQ {name} AS {rest}", name, subscriber, evaluated, mode=again.mode)
    mode = rng.choices(("shared", "dedicated", "virtual", "digest"), weights=(50, 10, 12, 28))[0]
    asked = _virtual(rng, declared) if mode == "virtual" else query(rng, declared)
    clauses = {"shared": "DO PUBLISH SHARED", "dedicated": "DO PUBLISH DEDICATED", "virtual": "DO PUBLISH VIRTUAL"}
    if mode == "digest":
        asked = _with_id(asked, declared)
        clauses["digest"] = f"DO PUBLISH SHARED {rng.choice(('', _START))} EVERY '{rng.choice(_EVERY)}'"
    text = f"CREATE CQ {name} AS {spelling.select(asked, rng)} {clauses[mode]}"
    return Cq(asked, text, name, subscriber, evaluated, mode=mode)


def _virtual(rng: random.Random, declared: Stream) -> Query:
    """Return a query that a reader can filter for itself: one comparison of numbers, and plain columns."""
    columns = {column.name: column for column in declared.columns}
    where = (Conjunct(columns["volume"], rng.choice(COMPARISONS), (rng.choice(BIGINTS),)),)
    items = tuple(Item(name, columns[name].type, column=name) for name in ("id", "Symbol", "volume"))
    return Query(declared, where, items)


def _with_id(asked: Query, declared: Stream) -> Query:
    """Have the rows of digests tell which events they are of."""
    if any(item.name == "id" for item in asked.items):
        return asked
    return replace(asked, items=(Item("id", "BIGINT", column="id"), *asked.items))
