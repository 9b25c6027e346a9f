"""Applies the filters and SELECT lists of virtual destinations (docs/results.md). Only this module needs DuckDB.

The events that a subscription has fetched together become a table with the stream's types, so a BIGINT or a DECIMAL is
compared exactly, and times are compared as times. The row that is handed over has the values as they are in the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.sdk.errors import FilterUnavailable
from gateway.sdk.records.reader import Filter
from gateway.sdk.results import Destination
from gateway.sdk.statements import quoted

if TYPE_CHECKING:
    import duckdb

__all__ = ["VirtualFilters"]

_DUCKDB_TYPES = {"STRING": "VARCHAR", "INT": "INTEGER", "BINARY": "VARCHAR"}
"""The gateway's name of a type → DuckDB's name, if the names differ."""

_decode_event = msgspec.json.Decoder(dict[str, Any]).decode


class VirtualFilters:
    """The filters of a subscription. Filters over the same topic share a table of events."""

    def __init__(self) -> None:
        self._events: dict[str, _EventTable] = {}

    def of(self, destination: Destination) -> Filter | None:
        """Return a filter for a destination's WHERE and SELECT, or None if the destination is not virtual.

        Raises:
            FilterUnavailable: The destination is virtual, but DuckDB is not installed, or the filter, the SELECT list
                or the columns are missing or not valid.
        """
        if destination.mode != "virtual":
            return None
        where, columns = destination.filter, destination.columns
        # Without the filter, each event of the group would be taken as a match.
        if not where or not destination.select or not columns:
            raise FilterUnavailable(
                f'destination "{destination.id}" is virtual, and its filter is not known here',
                detail='A virtual destination has "filter", "select" and "columns".',
                hint="Subscribe by the name of the CQ.",
            )
        events = self._events.get(destination.topic)
        if events is None:
            events = self._events[destination.topic] = _EventTable(destination.id, columns)
        row = events.select_list(destination.id, destination.select)

        def apply(values: Sequence[bytes]) -> list[Mapping[str, Any] | None]:
            events.load(destination.id, values)
            rows: list[Mapping[str, Any] | None] = [None] * len(values)
            for place in events.where(destination.id, where):
                event = _decode_event(values[place])
                rows[place] = {name: event.get(what) if known else what for name, (known, what) in row.items()}
            return rows

        return apply


class _EventTable:
    """A batch of one topic's events as a table of an in-memory DuckDB."""

    def __init__(self, destination: str, columns: Sequence[Mapping[str, str]]) -> None:
        self._connection = _connected(destination)
        self._names = [column["name"] for column in columns]
        taken = {name.casefold() for name in self._names}
        self._place = next(name for number in count() if (name := f"place{number}") not in taken)
        """A column with the place of each event in its batch; the stream has no column of this name."""
        self._types = msgspec.json.encode(
            [{column["name"]: _duckdb_type(column["type"]) for column in columns}]
        ).decode()
        self._loaded: Sequence[bytes] | None = None

    def select_list(self, destination: str, select: str) -> dict[str, tuple[bool, Any]]:
        """Return output name → True and the column's name, or False and the constant.

        The SELECT list of a virtual destination has only plain columns and constants. DuckDB runs the SELECT list over
        a row in which the value of each column is a STRUCT with the column's own name. No constant is a STRUCT, so the
        result shows which values are columns.
        """
        marked = ", ".join(f"{{'column': {_text(name)}}} AS {quoted(name)}" for name in self._names)
        found = self._run(destination, f"SELECT {select} FROM (SELECT {marked})")
        names = [column[0] for column in found.description or ()]
        values = found.fetchone() or ()
        return {
            name: (True, value["column"]) if isinstance(value, dict) else (False, msgspec.to_builtins(value))
            for name, value in zip(names, values, strict=True)
        }

    def load(self, destination: str, values: Sequence[bytes]) -> None:
        """Load events into the table, unless another destination has just loaded the same list."""
        if self._loaded is values:
            return
        body = b"[" + b",".join(values) + b"]"
        self._run(
            destination,
            f"CREATE OR REPLACE TEMP TABLE events AS SELECT unnest(range({len(values)})) AS {self._place}, "
            "unnest(from_json($1, $2), recursive := true)",
            body.decode(),
            self._types,
        )
        self._loaded = values

    def where(self, destination: str, condition: str) -> list[int]:
        """Return the indexes of the events that satisfy a condition."""
        return [
            row[0] for row in self._run(destination, f"SELECT {self._place} FROM events WHERE {condition}").fetchall()
        ]

    def _run(self, destination: str, text: str, *given: str) -> duckdb.DuckDBPyConnection:
        import duckdb  # noqa: PLC0415  see `_connected`

        try:
            return self._connection.execute(text, given)
        except duckdb.Error as exc:
            raise FilterUnavailable(
                f'the filter of destination "{destination}" cannot be applied here', detail=f"{exc}."
            ) from exc


def _connected(destination: str) -> duckdb.DuckDBPyConnection:
    try:
        import duckdb  # noqa: PLC0415  the one optional library: imported when it is needed
    except ImportError as exc:
        raise FilterUnavailable(
            f'destination "{destination}" is virtual, and its filter cannot be applied here',
            detail="DuckDB is not installed.",
            hint='Install it: pip install "cq-gateway[virtual]".',
        ) from exc
    # DuckDB 2.0.0 has a bug: `CASE … END = column` fails if statistics show that no event satisfies a branch.
    return duckdb.connect(":memory:", config={"threads": 1, "disabled_optimizers": "statistics_propagation"})


def _duckdb_type(kind: str) -> str:
    """Return the DuckDB type of a column. A nested column becomes JSON, since filters do not use its parts."""
    return "JSON" if "<" in kind or kind == "VARIANT" else _DUCKDB_TYPES.get(kind, kind)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
