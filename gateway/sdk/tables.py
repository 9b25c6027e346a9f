"""Writes the records that set and remove a table's rows (docs/statements.md describes the records)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.sdk.errors import GatewayError
from gateway.sdk.publisher import Publisher

__all__ = ["AsyncTable", "Table", "TableForm"]

_encode = msgspec.json.Encoder().encode


class _ColumnForm(msgspec.Struct, frozen=True):
    name: str
    type: str
    place: str = msgspec.field(default="", name="from")


class TableForm(msgspec.Struct, frozen=True):
    """The fields that writers of a table need from the reply to DESCRIBE TABLE."""

    table: str
    topic: str
    format: str
    columns: tuple[_ColumnForm, ...]
    primary_key: tuple[str, ...]

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> TableForm:
        """Read the result of DESCRIBE TABLE.

        Raises:
            GatewayError: The format of the table's topic is not JSON, or a column is read from the records' keys.
        """
        form = msgspec.convert(described, cls)
        if form.format != "json":
            raise GatewayError(
                f'the records of table "{form.table}" are not JSON',
                detail=f'The format of its topic "{form.topic}" is {form.format}.',
                hint="Write its records with the program that has the schema.",
            )
        if any(column.place for column in form.columns):
            raise GatewayError(
                f'columns of table "{form.table}" are read from the keys of its records',
                detail="A column of the table has FROM KEY.",
                hint="Write its records with a Kafka client.",
            )
        return form

    def key(self, values: Mapping[str, Any]) -> bytes:
        """Return the key of the record that sets or removes a row.

        If the PRIMARY KEY is one STRING column, the key is plain text, or a JSON string if the plain text could be read
        as JSON. Otherwise the key is a JSON object.

        Args:
            values: Column → value. Columns outside the PRIMARY KEY are ignored.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None.
        """
        key = {name: values.get(name) for name in self.primary_key}
        if missing := [name for name, value in key.items() if value is None]:
            raise ValueError(f'column "{missing[0]}" of the PRIMARY KEY of table "{self.table}" has no value')
        if self._of_text:
            text = str(key[self.primary_key[0]])
            return _encode(text) if self._looks_like_json(text) else text.encode()
        return _encode(key)

    def _looks_like_json(self, text: str) -> bool:
        """Tell whether the gateway would read a plain text as a JSON key."""
        if text[:1] not in ('"', "{"):
            return False
        try:
            found = msgspec.json.decode(text)
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            return False
        return isinstance(found, str) or self.primary_key[0] in found or found.keys() == {"schema", "payload"}

    @property
    def _of_text(self) -> bool:
        types = {column.name: column.type for column in self.columns}
        return [types[name] for name in self.primary_key] == ["STRING"]

    def removal(self, key: object) -> bytes:
        """Return the key of the record that removes a row.

        Args:
            key: Column → value of the PRIMARY KEY, or only the value if the key has one column.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None.
        """
        if isinstance(key, Mapping):
            return self.key(key)
        if len(self.primary_key) > 1:
            raise ValueError(f'table "{self.table}" has several columns in its PRIMARY KEY: name them')
        return self.key({self.primary_key[0]: key})


class Table:
    """A writer of a table's rows, from `Client.table`; safe to use from several threads.

    The key of a record is the row's PRIMARY KEY, so all changes of a row are in one partition, in order. The text of
    the key decides the partition, so a value must always be given in the same form: `Decimal("1")` and `Decimal("1.0")`
    may lead to different partitions. An event that is published after `put` or `delete` has returned is joined with the
    changed rows.
    """

    def __init__(self, publisher: Publisher, form: TableForm) -> None:
        self._publisher = publisher
        self._form = form

    @property
    def name(self) -> str:
        """The table's name."""
        return self._form.table

    @property
    def primary_key(self) -> Sequence[str]:
        """The columns whose values identify a row."""
        return self._form.primary_key

    def put(self, rows: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, timeout: float = 30.0) -> int:
        """Set one or several rows, and wait until Kafka has them. A row replaces the row with the same PRIMARY KEY.

        Args:
            rows: A row or several rows, each as column → value. A column that is left out is NULL.
            timeout: Seconds to wait for Kafka after the last row was queued.

        Returns:
            The number of rows that were written.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None in a row. Earlier rows are written nevertheless.
            TransportError: Some rows were not written.

        Example:
            client.table("profiles").put({"symbol": "SAP", "industry": "Software"})
        """
        several = [rows] if isinstance(rows, Mapping) else rows
        records = ((self._form.key(row), _encode(row)) for row in several)
        return self._publisher.write(self._form.topic, records, timeout=timeout)

    def delete(self, *keys: object, timeout: float = 30.0) -> int:
        """Remove rows, and wait until Kafka has the records.

        Args:
            keys: For each row, column → value of the PRIMARY KEY, or only the value if the key has one column.
            timeout: Seconds to wait for Kafka after the last record was queued.

        Returns:
            The number of records that were written, including records for rows that did not exist.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None. Records for earlier keys are written
                nevertheless.
            TransportError: Some records were not written.

        Example:
            client.table("profiles").delete("SAP", "INTC")
        """
        records = ((self._form.removal(key), None) for key in keys)
        return self._publisher.write(self._form.topic, records, timeout=timeout)


class AsyncTable:
    """A writer of a table's rows for asyncio, from `AsyncClient.table`. See `Table`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def name(self) -> str:
        """The table's name."""
        return self._table.name

    @property
    def primary_key(self) -> Sequence[str]:
        """The columns whose values identify a row."""
        return self._table.primary_key

    async def put(self, rows: Mapping[str, Any] | Iterable[Mapping[str, Any]], *, timeout: float = 30.0) -> int:
        """Set one or several rows, and wait until Kafka has them. See `Table.put`."""
        return await asyncio.to_thread(self._table.put, rows, timeout=timeout)

    async def delete(self, *keys: object, timeout: float = 30.0) -> int:
        """Remove rows, and wait until Kafka has the records. See `Table.delete`."""
        return await asyncio.to_thread(self._table.delete, *keys, timeout=timeout)
