"""A table as a test declares it, with its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from gateway.testing.records import json_record
from grouping.model.catalog import StreamColumn
from grouping.model.errors import InputError
from grouping.model.query import CreateTable
from grouping.model.table import Table as CatalogTable
from grouping.settings import Settings
from grouping.statements.command import parse
from spark_jobs.batch.headers import unpacked_headers
from spark_jobs.replica.replica import Replica
from spark_jobs.replica.table_view import TableView

__all__ = ["Table"]

_SETTINGS = Settings.model_construct()
"""The defaults, whatever the environment says."""


class Table:
    """A table: the name and columns that its CREATE TABLE has, and the rows that events meet.

    Example:
        >>> profiles = Table("profiles (symbol STRING PRIMARY KEY, industry STRING)", [{"symbol": "INTC"}])
        >>> profiles.name, profiles.declared.key
        ('profiles', ('symbol',))
    """

    def __init__(self, declaration: str, rows: Iterable[Mapping[str, object]] = ()) -> None:
        """Declare a table.

        Args:
            declaration: ``name (column TYPE, …, PRIMARY KEY (column, …))``.
            rows: Of two with one PRIMARY KEY the later counts.

        Raises:
            InputError: As CREATE TABLE is refused.
            ValueError: A row is none of the table's: it would be a dead letter.
        """
        statement = parse(f"CREATE TABLE {declaration} WITH (topic = 'rows', format = 'json')")
        if not isinstance(statement, CreateTable):
            raise InputError(
                "this is no table", code="unknown-statement", detail="A table's name and columns are wanted here."
            )
        self.declared = CatalogTable(
            table_id=f"t_{statement.name.casefold()}",
            name=statement.name,
            columns=tuple(StreamColumn(name, str(kind)) for name, kind in statement.columns),
            key=statement.key,
            topic=statement.topic,
            format=statement.format,
            created_at="",
        )
        """As the gateway and the evaluator know it."""
        self._records = [json_record(row) for row in rows]
        self.view()

    @property
    def name(self) -> str:
        """Its name in JOIN."""
        return self.declared.name

    def view(self) -> TableView:
        """Return the table as a worker holds it.

        Raises:
            ValueError: A row is none of the table's.
        """
        return Replica(self.declared, _Rows(self._records), _SETTINGS, self._refuse).at({0: len(self._records)})

    def _refuse(self, letters: pa.RecordBatch) -> None:
        headers = dict(unpacked_headers(letters["headers"][0].as_py()))
        number = int(headers["source"].rpartition(b"/")[2])
        raise ValueError(f"row {number} of table {self.name}: {headers['detail'].decode()}")


class _Rows:
    """The topic of the table: its records are there as a whole."""

    def __init__(self, records: list[bytes]) -> None:
        self._records = records

    def read(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        count = len(self._records)
        yield pa.record_batch(
            {
                "key": pa.nulls(count, pa.binary()),
                "value": pa.array(self._records, pa.binary()),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(count), pa.int64()),
            }
        )
