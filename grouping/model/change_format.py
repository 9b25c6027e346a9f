"""The formats in which tools write changes of database rows as JSON: Debezium, Maxwell and Canal."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

__all__ = ["CHANGE_FORMATS", "ENVELOPE_FIELDS", "ChangeFormat", "ValueEncoding", "is_change_format"]

ChangeFormat = Literal["debezium-json", "maxwell-json", "canal-json"]
CHANGE_FORMATS: tuple[str, ...] = get_args(ChangeFormat)

ENVELOPE_FIELDS: dict[str, tuple[str, ...]] = {
    "debezium-json": (
        "before", "after", "source", "op", "ts_ms", "ts_us", "ts_ns", "transaction", "message", "updateDescription",
    ),
    "maxwell-json": (
        "database", "table", "type", "ts", "xid", "xoffset", "commit", "position", "gtid", "server_id", "thread_id",
        "schema_id", "query", "primary_key", "primary_key_columns", "data", "old", "sql", "def",
    ),
    "canal-json": (
        "data", "old", "type", "database", "table", "es", "ts", "id", "gtid", "isDdl", "mysqlType", "sqlType",
        "pkNames", "sql",
    ),
}  # fmt: skip
"""Format → the fields of a change; the columns of the database are within `before`, `after`, `data` or `old`."""


class ValueEncoding(NamedTuple):
    """How records write DECIMAL and TIMESTAMP values, for which JSON has no types, if a record does not say so."""

    form: str
    """The format."""
    decimals: str = ""
    """How texts for DECIMAL columns are written: ``string`` (a decimal number), ``base64``, or empty for unknown."""
    timestamps: str = ""
    """The unit of numbers for TIMESTAMP columns: ``seconds``, ``millis`` or ``micros``; empty for unknown."""


def is_change_format(form: str) -> bool:
    """Tell whether records of a format are changes of rows.

    Example:
        >>> is_change_format("debezium-json"), is_change_format("json")
        (True, False)
    """
    return form in CHANGE_FORMATS
