"""Checks BY in a digest clause and in AT MOST: its names must be columns of the SELECT list.

The column of TOP must also be of a type with an order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from grouping.digests.digest import column_type
from grouping.model.errors import InputError, near_name
from grouping.model.query import CreateCq, DigestClause
from grouping.model.sql_type import SqlType
from grouping.model.trigger import ChangeBased
from grouping.plan.group import CompiledQuery

__all__ = ["with_digest_columns"]


def with_digest_columns(statement: CreateCq, query: CompiledQuery, top_rows: int) -> CreateCq:
    """Check the names after BY, and return the statement with their spelling from the SELECT list.

    Args:
        statement: The parsed statement.
        query: The compiled SELECT of the statement.
        top_rows: The largest number of rows that TOP may have.

    Raises:
        InputError: ``unknown-column``; ``type-mismatch`` and ``quota-exceeded`` for TOP.
    """
    digest, trigger = statement.publish.digest, statement.trigger
    if isinstance(trigger, ChangeBased) and trigger.throttle is not None:
        throttle = replace(trigger.throttle, columns=_spelled(trigger.throttle.columns, query))
        return msgspec.structs.replace(statement, trigger=ChangeBased(throttle))
    if digest is None or not digest.columns:
        return statement
    digest = replace(digest, columns=_spelled(digest.columns, query))
    if digest.kind == "top":
        _check_top(digest, column_type(digest, query.select), top_rows)
    publish = replace(statement.publish, digest=digest)
    return msgspec.structs.replace(statement, publish=publish)


def _spelled(written: Iterable[str], query: CompiledQuery) -> tuple[str, ...]:
    """Return the names after BY as the SELECT list spells them, each once."""
    names = {item.name.casefold(): item.name for item in query.select.items}
    columns = []
    for column in written:
        name = names.get(column.casefold())
        if name is None:
            raise InputError(
                f'column "{column}" is not in the SELECT list',
                code="unknown-column",
                detail=f"BY names columns of the SELECT list, which are {', '.join(names.values())}.",
                hint=near_name(column, list(names.values())),
            )
        columns.append(name)
    return tuple(dict.fromkeys(columns))


def _check_top(digest: DigestClause, sql_type: SqlType, most: int) -> None:
    if not sql_type.is_ordered:
        raise InputError(
            f'DIGEST TOP cannot compare "{digest.columns[0]}"',
            code="type-mismatch",
            detail=f"The column is {sql_type}, and values of this type have no order.",
        )
    if digest.rows > most:
        raise InputError(
            f"DIGEST TOP {digest.rows} is too large",
            code="quota-exceeded",
            detail=f"A digest with TOP has at most {most} rows.",
            hint="DIGEST ALL shows every match.",
        )
