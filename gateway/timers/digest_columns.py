"""BY of a digest clause: its names are those of the SELECT list."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from grouping.errors import InputError, near_name
from grouping.group import CompiledQuery
from grouping.query import CreateCq

__all__ = ["with_digest_columns"]


def with_digest_columns(statement: CreateCq, query: CompiledQuery) -> CreateCq:
    """Return the statement with BY's columns spelt as the SELECT list has them.

    Raises:
        InputError: ``unknown-column``.
    """
    digest = statement.publish.digest
    if digest is None or not digest.columns:
        return statement
    names = {item.name.casefold(): item.name for item in query.select.items}
    columns = []
    for column in digest.columns:
        name = names.get(column.casefold())
        if name is None:
            raise InputError(
                f'column "{column}" is not in the SELECT list',
                code="unknown-column",
                detail=f"BY names columns of the SELECT list, which are {', '.join(names.values())}.",
                hint=near_name(column, list(names.values())),
            )
        columns.append(name)
    publish = replace(statement.publish, digest=replace(digest, columns=tuple(dict.fromkeys(columns))))
    return msgspec.structs.replace(statement, publish=publish)
