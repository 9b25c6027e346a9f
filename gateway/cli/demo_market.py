"""The market of `cq demo`: generated quotes, a table of companies, and the CQs of a few subscribers over them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from gateway.sdk.statements import create_cq

__all__ = ["COLUMNS", "COMPANY_COLUMNS", "COMPANY_KEY", "STREAM", "SUBSCRIBERS", "TABLE", "Market", "queries"]

STREAM = "quotes"
COLUMNS = {"symbol": "STRING", "price": "DOUBLE", "volume": "BIGINT", "change": "DOUBLE", "halted": "BOOLEAN"}
TABLE = "companies"
COMPANY_COLUMNS = {"symbol": "STRING", "industry": "STRING", "country": "STRING"}
COMPANY_KEY = "symbol"
SUBSCRIBERS = ("alice", "bob", "carol")

_SYMBOLS = 500
_INDUSTRIES = ("Chips", "Energy", "Finance", "Health", "Retail", "Software")
_COUNTRIES = ("DE", "FR", "IN", "JP", "US")
_EVERY = "10 seconds"
_JOINED = f"{STREAM} q JOIN {TABLE} c ON q.symbol = c.symbol"


def _symbol(number: int) -> str:
    """Return a ticker of three letters."""
    return "".join(chr(ord("A") + number // 26**place % 26) for place in (2, 1, 0))


class Market:
    """Quotes of companies. Each price walks randomly around its opening price. Equal seeds give equal markets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._opened = {
            _symbol(number * 31): round(self._random.lognormvariate(4, 0.7), 2) for number in range(_SYMBOLS)
        }
        self._prices = dict(self._opened)
        self._symbols = list(self._opened)

    @property
    def opened(self) -> dict[str, float]:
        """Symbol → opening price."""
        return self._opened

    def companies(self) -> Iterator[dict[str, str]]:
        """Yield the rows of the table: one company for each symbol."""
        for number, symbol in enumerate(self._symbols):
            industry, country = _INDUSTRIES[number % len(_INDUSTRIES)], _COUNTRIES[number % len(_COUNTRIES)]
            yield {"symbol": symbol, "industry": industry, "country": country}

    def quotes(self, count: int) -> Iterator[dict[str, object]]:
        """Yield the next quotes."""
        for symbol in self._random.choices(self._symbols, k=count):
            opened = self._opened[symbol]
            # Prices tend back to the opening price, so that they cross thresholds near it in both directions.
            pull = (opened - self._prices[symbol]) * 0.02
            price = round(max(0.01, self._prices[symbol] + pull + self._random.gauss(0, opened * 0.01)), 2)
            self._prices[symbol] = price
            yield {
                "symbol": symbol,
                "price": price,
                "volume": int(self._random.paretovariate(1.2) * 100),
                "change": round((price / opened - 1) * 100, 3),
                "halted": self._random.random() < 0.0005,
            }


def queries(market: Market, subscriber: str, count: int, seed: int) -> Iterator[str]:
    """Yield the CREATE CQ statements of a subscriber: a few kinds of queries with many constants.

    Some of the SELECTs are equal to SELECTs of other subscribers. The first CQ reports only the quote with which the
    change of a symbol rises above a threshold, and not each quote above the threshold. The second CQ reports symbols
    without a quote for some seconds.
    """
    chance = random.Random(f"{seed} {subscriber}")
    symbols = list(market.opened)
    crossing = f"SELECT symbol, price, change, _edge FROM {STREAM} WHERE change > 8 EMIT ON ENTER BY _key"
    yield create_cq(f"{subscriber}-crossing", crossing, replace=True)
    silence = f"SELECT symbol, price FROM {STREAM} EMIT ON SILENCE '4 seconds' BY _key"
    yield create_cq(f"{subscriber}-silence", silence, replace=True)
    for number in range(2, count):
        symbol = chance.choice(symbols)
        opened = market.opened[symbol]
        below, above = round(opened * chance.uniform(0.92, 0.99), 1), round(opened * chance.uniform(1.01, 1.08), 1)
        few = ", ".join(f"'{each}'" for each in sorted(chance.sample(symbols, 3)))
        industry, country = chance.choice(_INDUSTRIES), chance.choice(_COUNTRIES)
        own = f"SELECT symbol, price, volume FROM {STREAM} WHERE"
        select, every = chance.choices(
            (
                (f"{own} symbol = '{symbol}' AND price < {below}", None),
                (f"{own} symbol = '{symbol}' AND price > {above}", None),
                (f"{own} symbol = '{symbol}' AND price BETWEEN {round(opened)} AND {round(opened) + 1}", None),
                (f"{own} symbol IN ({few}) AND volume > {chance.randrange(20, 100) * 100}", None),
                (f"{own} volume > {chance.randrange(100, 1000) * 10_000}", None),
                (f"{own} change < {-chance.randrange(60, 100) / 10}", None),
                (f"{own} halted", None),
                (
                    f"SELECT q.symbol, industry, change FROM {_JOINED}"
                    f" WHERE c.industry = '{industry}' AND change < {-chance.randrange(80, 140) / 10}",
                    None,
                ),
                (
                    f"SELECT industry, count(*) AS quotes, max(volume) AS largest FROM {_JOINED}"
                    f" WHERE c.country = '{country}' GROUP BY industry"
                    f" HAVING max(volume) > {chance.randrange(10, 100) * 1_000}",
                    _EVERY,
                ),
            ),
            weights=(45, 30, 12, 10, 1, 1, 1, 8, 3),
        )[0]
        yield create_cq(f"{subscriber}-{number:05}", select, replace=True, every=every)
