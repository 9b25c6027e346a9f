"""A table of a test, with its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gateway.evaluation.table_rows import table_of
from gateway.testing.records import json_record
from grouping.model.catalog import StreamColumn
from grouping.model.errors import InputError
from grouping.model.query import CreateTable
from grouping.model.table import Table as CatalogTable
from grouping.statements.command import parse
from spark_jobs.engine.operators.lookup_join.table_view import TableView

__all__ = ["Table"]


class Table:
    """A table with the name and the columns of its CREATE TABLE, and with the rows for joins.

    Example:
        >>> profiles = Table("profiles (symbol STRING PRIMARY KEY, industry STRING)", [{"symbol": "INTC"}])
        >>> profiles.name, profiles.declared.key
        ('profiles', ('symbol',))
    """

    def __init__(self, declaration: str, rows: Iterable[Mapping[str, object]] = ()) -> None:
        """Declare a table.

        Args:
            declaration: ``name (column TYPE, …, PRIMARY KEY (column, …))``.
            rows: The rows. A later row replaces an earlier row with the same PRIMARY KEY.

        Raises:
            InputError: The gateway would refuse the CREATE TABLE.
            ValueError: A row does not fit the table. On a gateway it would become a dead letter.
        """
        statement = parse(f"CREATE TABLE {declaration} WITH (topic = 'rows', format = 'json')")
        if not isinstance(statement, CreateTable):
            raise InputError(
                "this is not a CREATE TABLE",
                code="unknown-statement",
                detail="A table's name and columns are required here.",
            )
        self.declared = CatalogTable(
            table_id=f"t_{statement.name.casefold()}",
            name=statement.name,
            columns=tuple(StreamColumn(name, str(sql_type)) for name, sql_type in statement.columns),
            key=statement.key,
            topic=statement.topic,
            format=statement.format,
            created_at="",
        )
        """The declaration, in the form that gateway and evaluator use."""
        self._records = [json_record(row) for row in rows]
        self.view()

    @property
    def name(self) -> str:
        """The table's name, for JOIN."""
        return self.declared.name

    def view(self) -> TableView:
        """Return the table in the form of a worker's memory.

        Raises:
            ValueError: A row does not fit the table.
        """
        return table_of(self.declared, self._records)
