"""The field's workloads as plain conjuncts, from which SQL and the peer's queries are made alike.

Numbers are whole and columns few, since the peer supports no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, NamedTuple

__all__ = ["COLUMNS", "WORKLOADS", "Conjunct", "PeerWorkload", "sql"]

COLUMNS = {"symbol": "STRING", "venue": "STRING", "price": "BIGINT"}
_TOP = 1_000_000
_HITS = 100
_VENUES = ("NASDAQ", "NYSE", "LSE", "XETRA", "EURONEXT")

Event = dict[str, str | int]


class Conjunct(NamedTuple):
    """A comparison; `value` is a tuple for ``in`` and ``between`` (both ends included)."""

    column: str
    op: Literal["=", "<>", ">", "<", "between", "in", "prefix", "suffix", "wildcard", "nocase"]
    value: Any


Selection = Sequence[Conjunct]


@dataclass(frozen=True, slots=True)
class PeerWorkload:
    """Queries of one kind, and the events for them."""

    title: str
    queries: Callable[[Random, int], Iterator[Selection]]
    symbols: Callable[[int], int]
    """By the number of queries, how many symbols the events are of."""
    most: int
    """Queries for which an event's matches can still be listed in reasonable time."""

    def events(self, queries: int, count: int) -> list[Event]:
        """Return events for this number of queries, the same ones each time."""
        random, symbols = Random(1), self.symbols(queries)
        return [
            {
                "symbol": _symbol(random.randrange(symbols)),
                "venue": random.choice(_VENUES),
                "price": random.randrange(_TOP),
            }
            for _ in range(count)
        ]


def sql(selection: Selection) -> str:
    """Return a selection as a SELECT."""
    return f"SELECT symbol, price FROM quotes WHERE {' AND '.join(map(_condition, selection))}"


def _condition(conjunct: Conjunct) -> str:
    column, op, value = conjunct
    match op:
        case "between":
            return f"{column} BETWEEN {value[0]} AND {value[1]}"
        case "in":
            return f"{column} IN ({', '.join(map(_literal, value))})"
        case "prefix":
            return f"{column} LIKE '{value}%'"
        case "suffix":
            return f"{column} LIKE '%{value}'"
        case "wildcard":
            return f"{column} LIKE '{value.replace('*', '%')}'"
        case "nocase":
            return f"lower({column}) = '{value}'"
    return f"{column} {op} {_literal(value)}"


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def _symbol(number: int) -> str:
    return f"S{number:07d}"


def _equal(random: Random, count: int) -> Iterator[Selection]:
    return ([Conjunct("symbol", "=", _symbol(number))] for number in range(count))


def _equal_above(random: Random, count: int) -> Iterator[Selection]:
    for number in range(count):
        yield [Conjunct("symbol", "=", _symbol(number // 10)), Conjunct("price", ">", random.randrange(_TOP))]


def _ranges(random: Random, count: int) -> Iterator[Selection]:
    """Ten thousand ranges, each event in a hundred of them (Siddhi's issue 384): the width stays for other numbers."""
    for _ in range(count):
        low = random.randrange(_TOP)
        yield [Conjunct("price", "between", (low, low + _TOP // _HITS))]


def _narrow(random: Random, count: int) -> Iterator[Selection]:
    for _ in range(count):
        low = random.randrange(_TOP)
        yield [Conjunct("price", "between", (low, low + _TOP // count))]


def _above(random: Random, count: int) -> Iterator[Selection]:
    return ([Conjunct("price", ">", random.randrange(_TOP))] for _ in range(count))


def _lists(random: Random, count: int) -> Iterator[Selection]:
    for _ in range(count):
        yield [Conjunct("symbol", "in", tuple(_symbol(random.randrange(count)) for _ in range(5)))]


def _prefixes(random: Random, count: int) -> Iterator[Selection]:
    return ([Conjunct("symbol", "prefix", _symbol(random.randrange(count))[:-1])] for _ in range(count))


def _ruler(kind: str) -> Callable[[Random, int], Iterator[Selection]]:
    """Five rules of one of Event Ruler's kinds."""
    values: dict[str, Callable[[Random], Conjunct]] = {
        "exact": lambda r: Conjunct("symbol", "=", _symbol(r.randrange(1000))),
        "prefix": lambda r: Conjunct("symbol", "prefix", _symbol(r.randrange(1000))[:-1]),
        "suffix": lambda r: Conjunct("symbol", "suffix", f"{r.randrange(1000):03d}"),
        "wildcard": lambda r: Conjunct("symbol", "wildcard", f"S*{r.randrange(10)}*{r.randrange(10)}"),
        "equals-ignore-case": lambda r: Conjunct("symbol", "nocase", _symbol(r.randrange(1000)).lower()),
        "numeric": lambda r: Conjunct("price", "between", (low := r.randrange(_TOP), low + _TOP // 1000)),
        "anything-but": lambda r: Conjunct("venue", "<>", r.choice(_VENUES)),
    }
    return lambda random, count: ([values[kind](random)] for _ in range(count))


_RULER_KINDS = ("exact", "prefix", "suffix", "wildcard", "equals-ignore-case", "numeric", "anything-but")
_RULES = 5

WORKLOADS = {
    "W1": PeerWorkload("symbol = ?", _equal, lambda n: n, 1_000_000),
    "W2": PeerWorkload("symbol = ? AND price > ?, ten a symbol", _equal_above, lambda n: max(1, n // 10), 1_000_000),
    "W3": PeerWorkload("ranges of a hundredth (Siddhi #384)", _ranges, lambda n: 1_000, 10_000),
    "W3 narrow": PeerWorkload("ranges, one met an event", _narrow, lambda n: 1_000, 1_000_000),
    "W4": PeerWorkload("price > ?, half of them met", _above, lambda n: 1_000, 10_000),
    "W5 lists": PeerWorkload("symbol IN (five)", _lists, lambda n: n, 1_000_000),
    "W5 prefixes": PeerWorkload("symbol LIKE 'prefix%'", _prefixes, lambda n: n, 10_000),
    **{f"W6 {kind}": PeerWorkload("five rules", _ruler(kind), lambda n: 1_000, _RULES) for kind in _RULER_KINDS},
}
