"""Quotes that cross thresholds: the events of the benchmarks of edges, and the constants of `price > ?`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.benchmarks.material import quotes

__all__ = ["crossing_quotes", "thresholds"]

_CROSSED = 0.8
"""Thresholds that an event crosses upward, on the average."""
_STEPS = 6
"""Prices uniform in [-w, w] cross upward w / 6 of the thresholds above 0, on the average."""


def thresholds(count: int, cqs: int) -> pa.Array:
    """Return the lowest `count` of the thresholds of as many CQs, which are evenly spaced above 0."""
    return pa.array((np.arange(count) + 0.5) * quotes.TOP_PRICE / cqs)


def crossing_quotes(count: int, keys: int, cqs: int) -> Iterator[tuple[str, str]]:
    """Yield keys and quotes; a key keeps its partition.

    The first event of each key lies below all thresholds.
    """
    random = np.random.default_rng(1)
    numbers = quotes.keys_in_turns(random, keys, count)
    width = _CROSSED * _STEPS * quotes.TOP_PRICE / cqs
    prices = random.uniform(-width, width, count)
    _, first = np.unique(numbers, return_index=True)
    prices[first] = -width
    for row, (number, price) in enumerate(zip(numbers.tolist(), prices.tolist(), strict=True)):
        symbol = quotes.symbol(number)
        yield symbol, f'{{"symbol": "{symbol}", "price": {price:.7f}, "volume": {row}, "venue": "XNAS"}}'
