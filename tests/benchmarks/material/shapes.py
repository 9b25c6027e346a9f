"""Queries of many shapes: conjuncts of every kind, each combination of which is a signature of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, combinations
from random import Random

from tests.benchmarks.material.market import TOP_PRICE, TOP_VOLUME, VENUES, symbol

__all__ = ["shaped_queries", "single_conjuncts"]


def _price(random: Random, low: float = 0.3, high: float = 0.7) -> str:
    return f"{random.uniform(low, high) * TOP_PRICE:.3f}"


def _volume(random: Random, low: float = 0.3, high: float = 0.7) -> str:
    return str(round(random.uniform(low, high) * TOP_VOLUME))


# About half of all quotes pass each.
_CONJUNCTS: tuple[Callable[[Random], str], ...] = (
    lambda r: f"symbol LIKE '%{r.choice('13579')}%'",
    lambda r: f"venue LIKE '{r.choice(('X%S', 'XN%', '%A%', '%L%'))}'",
    lambda r: f"(price < {_price(r, 0.2, 0.4)} OR volume > {_volume(r, 0.6, 0.8)})",
    lambda r: f"(venue = '{r.choice(VENUES)}' OR price > {_price(r)})",
    lambda r: f"price * volume > {r.uniform(0.1, 0.3) * TOP_PRICE * TOP_VOLUME:.3f}",
    lambda r: f"volume % {r.randint(2, 4)} = {r.randint(0, 1)}",
    lambda r: f"price - volume / 100 < {r.uniform(-0.2, 0.2) * TOP_PRICE:.3f}",
    lambda r: f"upper(venue) < '{r.choice(VENUES[3:8])}'",
    lambda r: f"length(symbol) + volume < {_volume(r)}",
    lambda r: f"abs(price - {_price(r)}) < {_price(r, 0.2, 0.3)}",
    lambda r: f"substring(symbol, 7, 1) < '{r.randint(3, 7)}'",
    lambda r: f"round(price) > {_price(r)}",
    lambda r: f"coalesce(volume, 0) < {_volume(r)}",
    lambda r: f"sqrt(price) > {r.uniform(6, 8):.3f}",
    lambda r: f"NOT (volume > {_volume(r)} OR venue = '{r.choice(VENUES)}')",
    lambda r: f"CASE WHEN price > {_price(r)} THEN volume ELSE 0 END > {_volume(r, 0.1, 0.3)}",
    lambda r: f"concat(venue, symbol) > '{r.choice(VENUES[3:8])}'",
    lambda r: f"greatest(price, {_price(r, 0.1, 0.2)}) < {_price(r)}",
    lambda r: f"nullif(venue, '{r.choice(VENUES)}') IS NOT NULL",
    lambda r: f"venue NOT IN ({', '.join(repr(venue) for venue in r.sample(VENUES, 4))})",
)


_WRITTEN_IN_ALERTS: tuple[Callable[[Random], str], ...] = (
    lambda r: f"symbol ILIKE '%{r.choice('13579')}%{r.choice('13579')}%'",
    lambda r: f"symbol RLIKE '[{r.randint(1, 4)}-{r.randint(5, 9)}]{{2}}$'",
    lambda r: f"regexp_extract(symbol, '([0-9])', 1) < '{r.randint(3, 7)}'",
    lambda r: f"levenshtein(venue, '{r.choice(VENUES)}') < {r.randint(2, 4)}",
    lambda r: f"format_string('%s-%d', venue, volume) < '{r.choice(VENUES[3:8])}'",
    lambda r: f"md5(concat(venue, '{r.randint(0, 9)}')) < '{r.choice('6789')}'",
    lambda r: f"hex(volume + {_volume(r)}) < '{r.choice('6789')}'",
    lambda r: f"volume & {2 ** r.randint(1, 6)} = 0",
    lambda r: f"CAST(price AS FLOAT) * {r.uniform(0.5, 2):.3f}F < {_price(r)}",
    lambda r: f"split(symbol, '3')[0] < '{r.choice('STU')}'",
    lambda r: f"exists(array(price, volume), x -> x > {_price(r, 0.8, 0.9)})",
    lambda r: f"EXTRACT(SECOND FROM _time + INTERVAL '{r.randint(1, 9)}' SECOND) < {r.randint(20, 40)}",
    lambda r: f"date_format(_time, 'HH:mm') < '{r.randint(10, 14)}:30'",
    lambda r: f"timestampdiff(MINUTE, TIMESTAMP'2026-01-01 00:00:00', _time) % {r.randint(2, 9)} = 0",
)


def single_conjuncts(count: int, *, of_alerts: bool = False) -> Iterator[list[str]]:
    """Yield for each kind of conjunct a number of SELECTs with this conjunct alone.

    Args:
        count: How many.
        of_alerts: The kinds used by authors of alerts beside comparisons and arithmetic, instead of the kinds of
            shapes.
    """
    random = Random(3)
    for make in _WRITTEN_IN_ALERTS if of_alerts else _CONJUNCTS:
        yield [f"SELECT symbol, price FROM quotes WHERE {make(random)}" for _ in range(count)]


def shaped_queries(count: int, shapes: int, symbols: int | None) -> Iterator[str]:
    """Yield SELECTs of `shapes` signatures, as many of each.

    Each has three conjuncts that about one quote in eight passes together.

    Args:
        count: How many.
        shapes: Signatures, at most 1,140.
        symbols: The first conjunct is ``symbol = ?`` with each of these in turn; None for queries without one.
    """
    random = Random(3)
    chosen = random.sample(list(combinations(_CONJUNCTS, 3)), shapes)
    for number in range(count):
        conjuncts = (make(random) for make in chosen[number % shapes])
        key = () if symbols is None else (f"symbol = '{symbol(number * 7919 % symbols)}'",)
        yield f"SELECT symbol, price FROM quotes WHERE {' AND '.join(chain(key, conjuncts))}"
