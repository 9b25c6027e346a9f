"""The table in the joins of a chaos run: its rows have the time of writing, and are otherwise always the same."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tests.queries import Event, Item
from tests.stack.lab_table import LabTable
from tests.strategies import STRINGS

__all__ = ["INDUSTRIES", "JOINED", "Companies", "Join", "industry_of"]

JOINED = (Item("industry", "STRING", column="industry"), Item("written", "BIGINT", column="written"))
"""The columns that a joined CQ's results have besides."""
INDUSTRIES = ("steel", "tea", "wool")
_LISTED = STRINGS[::2]
"""The symbols that have a row."""


@dataclass(frozen=True, slots=True)
class Join:
    """How a CQ's stream is joined with the table."""

    left: bool
    """Whether an event without a row counts, with NULLs."""
    industry: str | None
    """The industry to select, if any."""

    def clauses(self, table: str) -> str:
        """Return the clauses behind the stream, which is called `x`."""
        condition = f" WHERE industry = '{self.industry}'" if self.industry else ""
        return f"{'LEFT ' if self.left else ''}JOIN {table} ON x.symbol = listed{condition}"

    def keeps(self, event: Event) -> bool:
        """Tell whether an event that meets the rest of the query meets the join as well."""
        industry = industry_of(event)
        return industry == self.industry if self.industry else self.left or industry is not None


class Companies:
    """Writes the table's rows again and again; each write has a number of its own, which grows."""

    def __init__(self, table: LabTable, rng: random.Random) -> None:
        self.name, self.topic = table.name, table.topic
        self._table = table
        self._rng = rng
        self._number = 0
        self._written: dict[str, int] = {}
        """By symbol: the number of the last write that Kafka has acknowledged."""
        self._write(_LISTED)

    def step(self) -> None:
        """Write some rows anew."""
        self._write(self._rng.sample(_LISTED, 3))

    def written(self, event: Event) -> int | None:
        """Return the least number that an event published from now on may meet; None where it has no row."""
        symbol = event.values.get("Symbol")
        return self._written.get(symbol) if isinstance(symbol, str) else None

    def drop(self) -> None:
        """End the table."""
        self._table.drop()

    def _write(self, symbols: Sequence[str]) -> None:
        self._number += 1
        rows = [{"listed": each, "industry": _industry(each), "written": self._number} for each in symbols]
        self._table.write(*((None, json.dumps(row).encode()) for row in rows))
        self._written.update(dict.fromkeys(symbols, self._number))


def industry_of(event: Event) -> str | None:
    """Return the industry in the row of an event's symbol, if there is a row."""
    symbol = event.values.get("Symbol")
    return _industry(symbol) if isinstance(symbol, str) and symbol in _LISTED else None


def _industry(symbol: str) -> str:
    return INDUSTRIES[zlib.crc32(symbol.encode()) % len(INDUSTRIES)]
