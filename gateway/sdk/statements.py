"""Makes the texts of statements (docs/statements.md) from their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

__all__ = [
    "CqClauses",
    "create_cq",
    "create_stream",
    "create_table",
    "create_view",
    "described_columns",
    "described_options",
    "interval",
    "options_text",
    "partition_key_text",
    "quoted",
    "show",
    "text_literal",
    "watermark_text",
]


def quoted(name: str) -> str:
    """Return a name as a quoted identifier.

    Example:
        >>> quoted('my "first" CQ')
        '"my ""first"" CQ"'
    """
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a standard SQL string.

    Example:
        >>> text_literal("O'Neil")
        "'O''Neil'"
    """
    return "'" + text.replace("'", "''") + "'"


def interval(length: timedelta | str) -> str:
    """Return the literal of an interval. A text, such as `10 minutes` or an ISO 8601 duration, is only quoted.

    Example:
        >>> interval(timedelta(minutes=10))
        "'600 seconds'"

    Raises:
        ValueError: The interval is not a whole number of seconds.
    """
    if isinstance(length, str):
        return text_literal(length)
    seconds, rest = divmod(length, timedelta(seconds=1))
    if rest:
        raise ValueError("an interval is a whole number of seconds")
    return text_literal(f"{seconds} seconds")


def moment(at: datetime | str) -> str:
    """Return the literal of a time. A text is only quoted.

    Raises:
        ValueError: The time has no zone.
    """
    if isinstance(at, str):
        return text_literal(at)
    if at.tzinfo is None:
        raise ValueError("a time needs a zone, such as datetime.UTC")
    return text_literal(at.isoformat())


class CqClauses(TypedDict, total=False):
    """The clauses of a CQ, as keyword arguments. A clause that is None is left out."""

    replace: bool
    """Whether the new CQ replaces an existing CQ with its name (CREATE OR REPLACE)."""
    publish: str | None
    """The words after `DO PUBLISH`, such as `SHARED` or `DIGEST LATEST BY symbol`."""
    start: datetime | str | None
    """START: events before this time are not evaluated for the CQ."""
    every: timedelta | str | None
    """The interval of digests; without `every` and `cron`, each match is published at once."""
    cron: str | None
    """A cron expression for the times of digests, instead of `every`."""
    zone: str | None
    """The time zone of `cron`, such as `Europe/Madrid`; UTC without one."""
    expire: datetime | timedelta | str | None
    """When the CQ ends: a time, as `datetime` or text, or a `timedelta` after its acceptance."""


def create_cq(name: str, select: str, **clauses: Unpack[CqClauses]) -> str:
    """Return a CREATE CQ statement.

    Args:
        name: The CQ's name; any characters are allowed.
        select: The SELECT.
        clauses: The clauses.

    Example:
        >>> print(create_cq("intel", "SELECT price FROM quotes", every="10 minutes"))
        CREATE CQ "intel" AS SELECT price FROM quotes EVERY '10 minutes'

    Raises:
        TypeError: An argument is not a clause.
        ValueError: Both `every` and `cron` are given, or `zone` without `cron`, or a time has no zone, or an interval
            is not a whole number of seconds.
    """
    if unknown := clauses.keys() - CqClauses.__annotations__.keys():
        raise TypeError(f"a CQ has no clause {', '.join(sorted(unknown))}")
    every, cron, zone, expire = clauses.get("every"), clauses.get("cron"), clauses.get("zone"), clauses.get("expire")
    if cron is None and zone is not None:
        raise ValueError("zone is for cron, which is not given")
    if cron is not None and every is not None:
        raise ValueError("digests are sent at an interval (every) or at times (cron), not at both")
    query = f"CREATE {'OR REPLACE ' if clauses.get('replace') else ''}CQ {quoted(name)} AS {select.strip().rstrip(';')}"
    parts = []
    if (publish := clauses.get("publish")) is not None:
        parts.append(f"DO PUBLISH {publish}")
    if (start := clauses.get("start")) is not None:
        parts.append(f"START {moment(start)}")
    if every is not None:
        parts.append(f"EVERY {interval(every)}")
    if cron is not None:
        parts.append(f"EVERY CRON {text_literal(cron)}")
    if zone is not None:
        parts.append(f"AT TIME ZONE {text_literal(zone)}")
    if isinstance(expire, timedelta):
        parts.append(f"EXPIRE AFTER {interval(expire)}")
    elif expire is not None:
        parts.append(f"EXPIRE {moment(expire)}")
    # A comment at the end of the SELECT would swallow clauses on its line.
    gap = "\n" if "--" in select.rsplit("\n", 1)[-1] else " "
    return gap.join([query, " ".join(parts)]) if parts else query


def create_stream(
    name: str,
    columns: Mapping[str, str],
    options: Mapping[str, str | int],
    partition_key: Sequence[str] = (),
    event_time: Mapping[str, str] | None = None,
) -> str:
    """Return a CREATE STREAM statement.

    Args:
        name: The name of the stream.
        columns: Column → type.
        options: Name of an option → value.
        partition_key: The columns of PARTITION KEY; none for a stream without the clause.
        event_time: The `column` and the `delay` of WATERMARK FOR, as in the reply to DESCRIBE STREAM; None for a stream
            without the clause.

    Example:
        >>> print(create_stream("quotes", {"symbol": "STRING"}, {"topic": "quotes", "partitions": 2}))
        CREATE STREAM "quotes" ("symbol" STRING) WITH (topic = 'quotes', partitions = 2)
    """
    key = f", {partition_key_text(map(quoted, partition_key))}" if partition_key else ""
    watermark = f", {watermark_text(quoted(event_time['column']), event_time['delay'])}" if event_time else ""
    return f"CREATE STREAM {quoted(name)} ({_declared(columns)}{key}{watermark}) WITH ({options_text(options)})"


def partition_key_text(columns: Iterable[str]) -> str:
    """Return the PARTITION KEY clause of a stream. The names must already be quoted where necessary.

    Example:
        >>> partition_key_text(['"device"', '"room"'])
        'PARTITION KEY ("device", "room")'
    """
    return f"PARTITION KEY ({', '.join(columns)})"


def watermark_text(column: str, delay: str) -> str:
    """Return the WATERMARK FOR clause of a stream. The name must already be quoted if necessary.

    Example:
        >>> watermark_text("at", "PT5S")
        "WATERMARK FOR at AS at - INTERVAL 'PT5S'"
    """
    return f"WATERMARK FOR {column} AS {column} - INTERVAL {text_literal(delay)}"


def create_table(
    name: str, columns: Mapping[str, str], primary_key: Sequence[str], options: Mapping[str, str | int]
) -> str:
    """Return a CREATE TABLE statement.

    Example:
        >>> print(create_table("profiles", {"symbol": "STRING", "beta": "DOUBLE"}, ["symbol"], {"topic": "profiles"}))
        CREATE TABLE "profiles" ("symbol" STRING, "beta" DOUBLE, PRIMARY KEY ("symbol")) WITH (topic = 'profiles')
    """
    key = ", ".join(quoted(column) for column in primary_key)
    return f"CREATE TABLE {quoted(name)} ({_declared(columns)}, PRIMARY KEY ({key})) WITH ({options_text(options)})"


def create_view(name: str, select: str, options: Mapping[str, str | int] | None = None) -> str:
    """Return a CREATE VIEW statement.

    Example:
        >>> print(create_view("cheap", "SELECT symbol FROM quotes WHERE price < 10"))
        CREATE VIEW "cheap" AS SELECT symbol FROM quotes WHERE price < 10
    """
    with_ = f" WITH ({options_text(options)})" if options else ""
    return f"CREATE VIEW {quoted(name)}{with_} AS {select.strip().rstrip(';')}"


def _declared(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())


def options_text(options: Mapping[str, str | int]) -> str:
    """Return the text of options between the parentheses after WITH.

    Example:
        >>> options_text({"topic": "quotes", "partitions": 2, "lenient": True})
        "topic = 'quotes', partitions = 2, lenient = TRUE"
    """
    return ", ".join(
        f"{key} = {text_literal(value) if isinstance(value, str) else str(value).upper()}"
        for key, value in options.items()
    )


_TOPIC_OPTIONS = (
    *("topic", "format", "framing", "schema", "schemas", "registry", "descriptor", "message"),
    *("access", "lenient", "timestamps", "decimals", "explode", "idle"),
)
"""The options of a stream or table that determine how its records are read."""


def described_columns(source: Mapping[str, Any]) -> dict[str, str]:
    """Return column → type, from a reply to DESCRIBE STREAM or TABLE. FROM follows the type if the column has it."""
    return {
        column["name"]: column["type"] + (f" FROM {column['from']}" if "from" in column else "")
        for column in source["columns"]
    }


def described_options(source: Mapping[str, Any]) -> dict[str, str | int]:
    """Return, from a reply to DESCRIBE STREAM or TABLE, the options that determine how the records are read."""
    return {name: source[name] for name in _TOPIC_OPTIONS if source.get(name) is not None}


def show(what: str, *, like: str | None = None, after: str | None = None, limit: int | None = None) -> str:
    """Return a SHOW statement.

    Example:
        >>> show("CQS", like="a%", after="aa")
        "SHOW CQS LIKE 'a%' AFTER 'aa'"
    """
    parts = [f"SHOW {what}"]
    if like is not None:
        parts.append(f"LIKE {text_literal(like)}")
    if after is not None:
        parts.append(f"AFTER {text_literal(after)}")
    if limit is not None:
        parts.append(f"LIMIT {limit}")
    return " ".join(parts)
