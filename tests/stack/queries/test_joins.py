"""Every form of a join with tables, through the real servers, beside DuckDB, which runs each query alone."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from tests.join_oracle import COLUMNS, QUERIES, Row, alone
from tests.oracle import Position
from tests.queries import Event
from tests.stack.lab import Lab, Source
from tests.stack.lab_table import LabTable

_SYMBOLS, _INDUSTRIES, _NUMBERS = ("a", "b", "c", None), ("a", "x", "y", None), (0, 1, 2, None)
_ROUNDS, _EVENTS = 5, 40

_Found = list[tuple[Position, tuple[Any, ...]]]


class _Shop:
    """A stream and two tables, whose rows come, change and go between rounds of events."""

    def __init__(self, lab: Lab, rng: random.Random) -> None:
        self._rng = rng
        self.source = lab.stream(COLUMNS["quotes"], partitions=2)
        self.tables = {
            "profiles": LabTable(lab, f"{COLUMNS['profiles']}, PRIMARY KEY (symbol)"),
            "owners": LabTable(lab, f"{COLUMNS['owners']}, PRIMARY KEY (owner, symbol)"),
        }
        self.rows: dict[str, dict[tuple[str, ...], Row]] = {"profiles": {}, "owners": {}}
        """By table, its rows by their keys."""

    def sql(self, select: str) -> str:
        """Return a query with the names that its stream and tables have here."""
        names = {name: table.name for name, table in self.tables.items()} | {"quotes": f'"{self.source.name}"'}
        return re.sub(r"\b(quotes|profiles|owners)\b", lambda found: names[found[0]], select)

    def change(self) -> None:
        """Set some rows, set some of them once more, and remove some."""
        for symbol in self._rng.sample("abcxy", 3):
            row = {"industry": self._rng.choice(_INDUSTRIES), "staff": self._rng.choice(_NUMBERS)}
            self._set("profiles", symbol, {"symbol": symbol, **row})
        for _ in range(4):
            owner, symbol = self._rng.choice("pqr"), self._rng.choice("abc")
            self._set("owners", owner, symbol, {"owner": owner, "symbol": symbol, "n": self._rng.choice(_NUMBERS)})
        for name, rows in self.rows.items():
            for key in self._rng.sample(sorted(rows), min(1, len(rows))):
                del rows[key]
                columns = ("symbol",) if name == "profiles" else ("owner", "symbol")
                named = key[0] if name == "profiles" else json.dumps(dict(zip(columns, key, strict=True)))
                self.tables[name].write((named, None))

    def _set(self, name: str, *key_and_row: Any) -> None:
        *key, row = key_and_row
        for _ in range(self._rng.choice((1, 1, 2))):
            self.tables[name].put(row)
        self.rows[name][tuple(key)] = row

    def publish(self) -> list[tuple[Position, Row]]:
        """Publish events, and return them with their positions."""
        made = [
            {"symbol": self._rng.choice(_SYMBOLS), "price": self._rng.choice((0.5, 1.0, None)), "n": number}
            for number in self._rng.choices(_NUMBERS, k=_EVENTS)
        ]
        events = [Event(row, self._rng.randrange(2)) for row in made]
        return list(zip(self.source.publish(events, lambda one: json.dumps(one.values).encode()), made, strict=True))

    def wanted(self, select: str, events: list[tuple[Position, Row]]) -> _Found:
        """Return DuckDB's rows of events and the present rows."""
        rows = [list(self.rows[name].values()) for name in ("profiles", "owners")]
        found = alone(select, [row for _, row in events], *rows)
        return [(events[number][0], tuple(values)) for number, *values in found]


def _results(lab: Lab, created: Any, source: Source) -> _Found:
    found = lab.settled_matches(created, source)
    return [(Position(*one.source[1:]), tuple(one.row.values())) for one in found]


def test_joins_are_as_each_query_alone(lab: Lab) -> None:
    """Inner and LEFT, by a whole key and by a part of one, several tables, NULLs; while rows come, change and go."""
    shop = _Shop(lab, random.Random(14))
    created = {
        select: lab.create(f"q{number}", shop.sql(select), clauses="DO PUBLISH SHARED")
        for number, select in enumerate(QUERIES)
    }
    wanted: dict[str, _Found] = {select: [] for select in QUERIES}
    for _ in range(_ROUNDS):
        shop.change()
        events = shop.publish()
        for select, found in wanted.items():
            found.extend(shop.wanted(select, events))
        shop.source.fence()  # these events have not seen the next change
    lab.results.drain()
    for select, made in created.items():
        assert sorted(_results(lab, made, shop.source), key=repr) == sorted(wanted[select], key=repr), select
    assert min(map(len, wanted.values())) > 0, "each query has results"
