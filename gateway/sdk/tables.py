"""A table's rows, set and removed by records on its topic (docs/statements.md has their form)."""

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
    """The fields of DESCRIBE TABLE's answer that writers of the table need."""

    table: str
    topic: str
    format: str
    columns: tuple[_ColumnForm, ...]
    primary_key: tuple[str, ...]

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> TableForm:
        """Read DESCRIBE TABLE's answer.

        Raises:
            GatewayError: The table's topic holds no JSON, or the table has columns in the key of the record.
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
        """Return the key of the record that sets or removes a row: plain text for one STRING column, else JSON.

        Args:
            values: The columns of the PRIMARY KEY, and any others.

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
        """Tell whether a key in plain text would be read as JSON."""
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
            key: Column → value of the PRIMARY KEY, or the value itself if the key is one column.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None.
        """
        if isinstance(key, Mapping):
            return self.key(key)
        if len(self.primary_key) > 1:
            raise ValueError(f'table "{self.table}" has several columns in its PRIMARY KEY: name them')
        return self.key({self.primary_key[0]: key})


class Table:
    """A writer of a table's rows; made by `Client.table`, and safe to use from several threads.

    Records have the row's PRIMARY KEY as their key, so that all changes of a row lie in one partition, in order. A key
    should be spelt alike each time (`Decimal("1")`, not once `Decimal("1.0")`): its text decides the partition.
    An event that is published after `put` or `delete` has returned is joined with the change.
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
        """Set one row or many, each in place of the row with its PRIMARY KEY, and wait until Kafka has them.

        Args:
            rows: Column → value; a column that is left out is NULL.
            timeout: Seconds to wait for Kafka at the end.

        Returns:
            How many rows were written.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None; the rows before are written.
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
            keys: Column → value of the PRIMARY KEY, or the value itself if the key is one column.
            timeout: Seconds to wait for Kafka at the end.

        Returns:
            How many keys were written; they count even without a row in the table.

        Raises:
            ValueError: A column of the PRIMARY KEY is missing or None; the keys before are written.
            TransportError: Some keys were not written.

        Example:
            client.table("profiles").delete("SAP", "INTC")
        """
        records = ((self._form.removal(key), None) for key in keys)
        return self._publisher.write(self._form.topic, records, timeout=timeout)


class AsyncTable:
    """A writer of a table's rows for asyncio; made by `AsyncClient.table`. See `Table`."""

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
        """Set one row or many, and wait until Kafka has them. See `Table.put`."""
        return await asyncio.to_thread(self._table.put, rows, timeout=timeout)

    async def delete(self, *keys: object, timeout: float = 30.0) -> int:
        """Remove rows, and wait until Kafka has the records. See `Table.delete`."""
        return await asyncio.to_thread(self._table.delete, *keys, timeout=timeout)
