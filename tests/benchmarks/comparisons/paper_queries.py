"""NiagaraCQ's experiments (SIGMOD 2000, §5): its quotes, its types of queries, and the constants of each figure.

As in the paper, each symbol changes at most once in a delta, and both sides get the decoded delta.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from grouping.model.catalog import Stream, StreamColumn

__all__ = [
    "CHANGED",
    "FIRED",
    "Setting",
    "delta_values",
    "mixed",
    "selections",
    "stream",
    "symbol",
    "thresholds",
]

CHANGED = 1_000
"""Changed tuples, unless a figure says otherwise: tuples of the first of 5,000 symbols."""
FIRED = 100
"""Queries that fire in case 2 of Figure 5.3."""
_INDUSTRIES = 100
_TOP_PRICE = 200.0
_COLUMNS = {"symbol": "STRING", "industry": "STRING", "current_price": "DOUBLE", "change_ratio": "DOUBLE"}
_SELECT = "SELECT symbol, industry, current_price, change_ratio FROM quotes WHERE "
_ENCODER = msgspec.json.Encoder()

Constants = Sequence[tuple[str | float, ...]]


@dataclass(frozen=True, slots=True)
class Setting:
    """Queries of one type, and the constants of each."""

    template: str
    """The SELECT, with places for the constants."""
    columns: tuple[tuple[str, str], ...]
    """Column and operator of each conjunct."""
    constants: Constants

    def texts(self) -> Iterator[str]:
        """Yield the queries."""
        return (self.template.format(*constants) for constants in self.constants)


def stream(stream_id: str = "s_paper", topic: str = "paper") -> Stream:
    """Return the stream of quotes."""
    columns = tuple(StreamColumn(*column) for column in _COLUMNS.items())
    return Stream(stream_id, "quotes", columns, topic, "json", {"0": 0}, "2026-01-01T00:00:00Z")


def symbol(number: int) -> str:
    """Return the name of a symbol."""
    return f"S{number:04d}"


def delta_values(changed: int) -> list[bytes]:
    """Return changed quotes of `changed` symbols, as the values of records."""
    random = np.random.default_rng(1)
    industries = random.integers(0, _INDUSTRIES, changed).tolist()
    prices = random.uniform(0, _TOP_PRICE, changed).tolist()
    ratios = random.normal(0, 1, changed).tolist()
    return [
        _ENCODER.encode({"symbol": symbol(number), "industry": f"I{industry:02d}", "current_price": price,
                         "change_ratio": ratio})
        for number, (industry, price, ratio) in enumerate(zip(industries, prices, ratios, strict=True))
    ]  # fmt: skip


def selections(count: int, among: int = CHANGED, fired: int | None = None) -> Setting:
    """Return queries of type 1, `symbol = ?`.

    Args:
        count: How many.
        among: How many of the first symbols are the constants, in turn.
        fired: How many queries have such a constant, the rest a constant that never changes; None for all.
    """
    fired = count if fired is None else fired
    constants = [(symbol(number % among) if number < fired else f"U{number:06d}",) for number in range(count)]
    return Setting(_SELECT + "symbol = '{}'", (("symbol", "="),), constants)


def thresholds(count: int, *, uniform: bool = False) -> Setting:
    """Return queries of type 2, `change_ratio > ?`: normal around 3, or uniform over the data's range."""
    random = np.random.default_rng(2)
    limits = random.uniform(-3, 3, count) if uniform else random.normal(3, 1, count)
    return Setting(_SELECT + "change_ratio > {}", (("change_ratio", ">"),), [(limit,) for limit in limits.tolist()])


def mixed(count: int) -> Setting:
    """Return queries of type 3, `symbol = ? AND current_price < ?`."""
    limits = np.random.default_rng(2).uniform(0, _TOP_PRICE, count).tolist()
    constants = [(symbol(number % CHANGED), limit) for number, limit in enumerate(limits)]
    columns = (("symbol", "="), ("current_price", "<"))
    return Setting(_SELECT + "symbol = '{}' AND current_price < {}", columns, constants)
