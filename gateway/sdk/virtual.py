"""Applying a virtual destination's filter and SELECT list (contract §6), by DuckDB where it is installed.

Everything else in the SDK does without SQL: only a reader of a virtual destination needs it.
Values have the types that their JSON has; NULLs and three-valued logic are SQL's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.sdk.errors import FilterUnavailable
from gateway.sdk.reader import Filter
from gateway.sdk.results import Destination
from gateway.sdk.statements import quoted

__all__ = ["filter_of"]

_SQL_TYPES: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


def filter_of(destination: Destination) -> Filter | None:
    """Return what applies the destination's filter to an event, or None where there is nothing to apply.

    Raises:
        FilterUnavailable: The destination is virtual, and DuckDB is not installed.
    """
    if destination.mode != "virtual":
        return None
    try:
        import duckdb  # noqa: PLC0415  the one optional library: imported when it is needed
    except ImportError as exc:
        raise FilterUnavailable(
            f'destination "{destination.id}" is virtual, and its filter cannot be applied here',
            detail="DuckDB is not installed.",
            hint="Install duckdb.",
        ) from exc
    connection = duckdb.connect(":memory:", config={"threads": 1})
    select, where = destination.select or "*", destination.filter or "TRUE"

    def apply(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        columns = ", ".join(
            f"CAST(? AS {_SQL_TYPES.get(type(value), 'VARCHAR')}) AS {quoted(name)}"
            if value is not None
            else f"NULL AS {quoted(name)}"
            for name, value in event.items()
        )
        given = [value for value in event.values() if value is not None]
        try:
            found = connection.execute(f"SELECT {select} FROM (SELECT {columns}) WHERE {where}", given)
        except duckdb.Error as exc:
            raise FilterUnavailable(
                f'the filter of destination "{destination.id}" cannot be applied here', detail=f"{exc}."
            ) from exc
        names = [column[0] for column in found.description or ()]
        row = found.fetchone()
        return None if row is None else dict(zip(names, msgspec.to_builtins(row), strict=True))

    return apply
