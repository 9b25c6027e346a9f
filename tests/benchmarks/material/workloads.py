"""The queries to measure the evaluator with: a single kind each, in any number, with about one match per event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from tests.benchmarks.material import calls, market
from tests.benchmarks.material.market import TOP_PRICE, symbol
from tests.benchmarks.material.shapes import shaped_queries
from tests.benchmarks.material.tables import Contents

__all__ = ["WORKLOADS", "Workload"]

_ORDERS = 1e4
"""Between the narrowest and the widest of mixed ranges."""
_ANY_SYMBOLS = 1_000


class Source(Protocol):
    """The events of a benchmark."""

    def stream(self, stream_id: str, topic: str) -> Stream:
        """Return their stream, read from the topic's beginning."""

    def publish(self, bootstrap: str, topic: str, count: int, symbols: int, /) -> None:
        """Write that many events of that many symbols."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Some number of CQs, and the events that they are for."""

    title: str
    full: int
    """CQs in the measurement that the targets are about."""
    quick: int
    fill: Callable[[Contents, int], Contents]
    """Adds a number of queries."""
    target: float | None
    """Events per second ÷ the plain copy's, at least."""
    per_symbol: int | None = None
    """CQs of each symbol, or of each user of calls; None for queries that have nothing to do with symbols."""
    source: Source = market
    """The events that they are for."""
    slow: bool = False
    """Whether an event takes milliseconds, so that few events are enough."""

    def contents(self, stream: Stream, cqs: int) -> Contents:
        """Return the tables of `cqs` CQs."""
        return self.fill(Contents(stream), cqs)

    def symbols(self, cqs: int) -> int:
        """Return how many symbols the events are of."""
        return max(1, cqs // self.per_symbol) if self.per_symbol else _ANY_SYMBOLS


def _equal(contents: Contents, cqs: int) -> Contents:
    names = pa.array([symbol(number) for number in range(cqs)])
    return contents.add("SELECT symbol, price, volume FROM quotes WHERE symbol = 'a'", {"c0": names})


def _prefixes(contents: Contents, cqs: int) -> Contents:
    patterns = pa.array([f"{symbol(number).lower()}%" for number in range(cqs)])
    return contents.add("SELECT symbol, price, volume FROM quotes WHERE symbol ILIKE 'a%'", {"c0": patterns})


def _users(contents: Contents, cqs: int) -> Contents:
    return contents.add("SELECT * FROM calls WHERE payload.user.id = 1", {"c0": pa.array(range(cqs), pa.int64())})


def _tags(contents: Contents, cqs: int) -> Contents:
    names = pa.array([calls.tag(number) for number in range(cqs)])
    return contents.add("SELECT * FROM calls WHERE array_contains(tags, 'a')", {"c0": names})


def _ranges(low_width: float, high_width: float) -> Callable[[Contents, int], Contents]:
    """Return queries whose widths are log-uniform between these, as multiples of the mean distance of two queries."""

    def fill(contents: Contents, cqs: int) -> Contents:
        random = np.random.default_rng(2)
        widths = np.exp(random.uniform(np.log(low_width), np.log(high_width), cqs)) * (TOP_PRICE / cqs)
        low = random.uniform(0, TOP_PRICE, cqs)
        select = "SELECT symbol, price, volume FROM quotes WHERE price BETWEEN 1.5 AND 2.5"
        return contents.add(
            select, {"c0": pa.array(low + widths), "c1": pa.array(low)}
        )  # price <= :c0 AND price >= :c1

    return fill


def _above(contents: Contents, cqs: int) -> Contents:
    limits = np.random.default_rng(2).uniform(0, TOP_PRICE, cqs)
    select = "SELECT symbol, price, volume FROM quotes WHERE price > 1.5"
    return contents.add(select, {"c0": pa.array(limits)}, "virtual")


def _shaped(shapes: int, *, keyed: bool) -> Callable[[Contents, int], Contents]:
    def fill(contents: Contents, cqs: int) -> Contents:
        return contents.add_each(shaped_queries(cqs, min(shapes, cqs), max(1, cqs // 10) if keyed else None))

    return fill


_NARROWEST = np.log(_ORDERS) / (_ORDERS - 1)
"""Log-uniform widths from here over `_ORDERS` have the mean 1, so that an event meets one range."""

WORKLOADS = {
    "equal": Workload("symbol = ?", 1_000_000, 50_000, _equal, 0.8, per_symbol=1),
    "between": Workload("price BETWEEN ? AND ?, equal widths", 1_000_000, 50_000, _ranges(1, 1), 0.7),
    "mixed-widths": Workload(
        "the same, widths over four orders of magnitude",
        1_000_000,
        50_000,
        _ranges(_NARROWEST, _NARROWEST * _ORDERS),
        0.5,
    ),
    "ilike": Workload("symbol ILIKE 'x%'", 100_000, 50_000, _prefixes, 0.5, per_symbol=1),
    "fields": Workload("payload.user.id = ?", 100_000, 50_000, _users, 0.5, per_symbol=1, source=calls),
    "elements": Workload("array_contains(tags, ?)", 100_000, 50_000, _tags, 0.5, per_symbol=1, source=calls),
    "virtual": Workload("price > ?, virtual", 1_000_000, 50_000, _above, 0.8),
    "shapes": Workload(
        "100 shapes, ten candidates an event", 10_000, 2_000, _shaped(100, keyed=True), 0.5, per_symbol=10
    ),
    "groups": Workload("1,000 groups of 100", 100_000, 10_000, _shaped(1_000, keyed=True), 0.3, per_symbol=10),
    "scan": Workload("100 shapes, no index", 10_000, 1_000, _shaped(100, keyed=False), None, slow=True),
}
