"""Queries with EMIT over a table, and their expected results, computed from one record at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

__all__ = ["COLUMNS", "QUERIES", "UNSENT", "DatabaseFold", "TableChange", "TableFold", "TableQuery", "TableRecord"]

COLUMNS = "k STRING PRIMARY KEY, p DOUBLE, s STRING, l MAP<STRING, INT>"
"""The columns of the table."""
UNSENT = "__debezium_unavailable_value"
"""Debezium's placeholder for a value that the database did not send."""
Row = dict[str, Any]


class TableRecord(NamedTuple):
    """A record of the table's topic."""

    key: str | None
    value: bytes | None


class TableChange(NamedTuple):
    """A result."""

    kind: str
    """``insert``, ``delete``, ``update``, ``enter`` or ``exit``."""
    before: Row | None
    row: Row


class TableQuery(NamedTuple):
    """A query, with its WHERE and its SELECT list as Python functions."""

    select: str
    """The text, with ``{table}`` for the table's name."""
    matches: Callable[[Row], bool]
    shown: Callable[[Row], Row]

    @property
    def has_edges(self) -> bool:
        """Whether the results are edges."""
        return "EMIT ON" in self.select


def _above(row: Row) -> bool:
    return row["p"] is not None and row["p"] > 1


QUERIES = (
    TableQuery("SELECT k, s FROM {table} WHERE p > 1 EMIT CHANGES", _above, lambda row: {"k": row["k"], "s": row["s"]}),
    TableQuery(
        "SELECT s || '!' AS t, l FROM {table} WHERE s = 'a' OR p < 1 EMIT CHANGES",
        lambda row: row["s"] == "a" or (row["p"] is not None and row["p"] < 1),
        lambda row: {"t": None if row["s"] is None else row["s"] + "!", "l": row["l"]},
    ),
    TableQuery("SELECT * FROM {table} EMIT CHANGES", lambda row: True, dict),
    TableQuery(
        "SELECT p FROM {table} WHERE k = 'a' AND s IS NULL EMIT CHANGES",
        lambda row: row["k"] == "a" and row["s"] is None,
        lambda row: {"p": row["p"]},
    ),
    TableQuery(
        "SELECT p FROM {table} WHERE p >= 2 EMIT ON ENTER OR EXIT",
        lambda row: row["p"] is not None and row["p"] >= 2,
        lambda row: {"p": row["p"]},
    ),
    TableQuery(
        "SELECT k FROM {table} WHERE s IS NULL EMIT ON ENTER OR EXIT BY k",
        lambda row: row["s"] is None,
        lambda row: {"k": row["k"]},
    ),
)


class TableFold:
    """The rows of a table, and the rows inside the conditions of queries with edges."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._inside: dict[tuple[object, str], bool] = {}

    def changes(
        self, record: TableRecord, live: Iterable[tuple[object, TableQuery]]
    ) -> Iterator[tuple[object, TableChange]]:
        """Yield the results of a record with the names of the queries; a malformed record changes nothing.

        Args:
            record: The next record.
            live: The live queries by name.
        """
        new = None if record.value is None else json.loads(record.value)
        key = record.key if new is None else new.get("k")
        if key is None:
            return
        old = self._rows.pop(key, None)
        if new is not None:
            self._rows[key] = new
        for name, query in live:
            now, before = new is not None and query.matches(new), old is not None and query.matches(old)
            if query.has_edges:
                was, self._inside[name, key] = self._inside.get((name, key), False), now
                if was != now:
                    row = query.shown(new or {"k": key, "p": None, "s": None, "l": None})
                    yield name, TableChange("enter" if now else "exit", None, row)
            elif now != before:
                row = new if now else old
                assert row is not None, "a match has a row"
                yield name, TableChange("insert" if now else "delete", None, query.shown(row))
            elif now and old is not None and new is not None and query.shown(old) != query.shown(new):
                yield name, TableChange("update", query.shown(old), query.shown(new))


class DatabaseFold:
    """Turns records of Debezium and Canal into records of a plain table, one for each changed row."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def changes(self, value: bytes | None) -> list[TableRecord]:
        """Return the changes of the next record; a malformed record and a tombstone change nothing."""
        body = {} if value is None else json.loads(value)
        kind = body.get("op") or body.get("type")
        if kind in ("t", "TRUNCATE"):
            keys, self._rows = sorted(self._rows, key=str.encode), {}
            return [TableRecord(key, None) for key in keys]
        if kind in ("c", "r", "u", "d"):
            after, before = [body.get("after")], [body.get("before") if kind in ("u", "d") else None]
        elif kind in ("INSERT", "UPDATE", "DELETE"):
            rows = [_typed(row) for row in body["data"]]
            old = body.get("old") or [None] * len(rows)
            before = [None if each is None else {**row, **each} for row, each in zip(rows, old, strict=True)]
            after, before = ([], rows) if kind == "DELETE" else (rows, before)
        else:
            return []
        set_rows = [row for row in after if row is not None]
        if any(row["k"] is None for row in set_rows):
            return []
        set_keys = {row["k"] for row in set_rows}
        found = [TableRecord(row["k"], None) for row in before if row is not None and row["k"] not in set_keys]
        for removal in found:
            self._rows.pop(str(removal.key), None)
        for row in set_rows:
            old_row = self._rows.get(row["k"], {})
            self._rows[row["k"]] = new = {
                name: old_row.get(name) if value == UNSENT else value for name, value in row.items()
            }
            found.append(TableRecord(row["k"], json.dumps(new).encode()))
        return found


def _typed(row: dict[str, str | None]) -> Row:
    """Return a row of Canal with the types of the columns, since Canal writes numbers as texts."""
    price = row["p"]
    return {"k": row["k"], "p": None if price is None else float(price), "s": row["s"], "l": None}
