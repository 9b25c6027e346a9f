"""The page about changes of databases: its statements are accepted, and its records are what it says."""

from __future__ import annotations

import pytest

from gateway.sources.declarations import declared_columns
from grouping.model.catalog import Stream
from grouping.model.query import CreateStream, CreateTable
from grouping.model.table import Table
from grouping.statements.command import parse
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.operators.lookup_join.changes import decode_changes
from tests.pages import blocks
from tests.unit.matching.event_batches import SETTINGS, batch

_PAGE = [*blocks("debezium.md")]
_SOURCES = {
    statement.name: statement
    for block in _PAGE
    if block.language == "sql" and isinstance(statement := parse(block.text), CreateStream | CreateTable)
}
_RECORDS = [(block.title, block.text) for block in _PAGE if block.language == "json"]
_SHOWN = {"customers": [1, "Ann", "123.45"], "list_prices": [7, "123.45"], "stock": [1, 5, "2.50"]}
"""The first values of rows that the page speaks of."""


@pytest.mark.parametrize(("name", "record"), _RECORDS, ids=[name for name, _ in _RECORDS])
def test_a_record_is_read(name: str, record: str) -> None:
    """No record of the page is a dead letter."""
    statement = _SOURCES[name]
    columns, decimals = declared_columns(statement), statement.decimals or ""
    if isinstance(statement, CreateStream):
        of = Stream("s_1", name, columns, "t", statement.format, {"0": 0}, "", decimals=decimals)  # type: ignore[arg-type]
        events, letters = decode(batch([record.encode()]), of, SETTINGS)
        assert letters is None
        assert ["u", 7, "123.45", "100.00"] == [str(each) if at > 1 else each for at, each in enumerate(
            events.column(column).to_pylist()[0] for column in ("op", "id", "old", "price")
        )]  # fmt: skip
        return
    times = statement.timestamps or ""
    table = Table("t_1", name, columns, statement.key, "t", statement.format, "", decimals=decimals, timestamps=times)
    changes, letters = decode_changes(batch([record.encode()]), table, SETTINGS)
    assert letters is None
    row = [*changes.rows.to_pylist()[0].values()]
    shown = _SHOWN.get(name, [])
    assert shown == [str(value) if isinstance(want, str) else value for want, value in zip(shown, row, strict=False)]
