"""The CREATE STREAM statement of an existing stream."""

from __future__ import annotations

import re
from typing import cast

from gateway.sdk.statements import (
    described_columns,
    described_options,
    options_text,
    partition_key_text,
    quoted,
    watermark_text,
)
from gateway.sources.streams import describe_stream
from grouping.model.catalog import Stream

__all__ = ["stream_statement"]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    (
        "all alter and any as between case create cross current_catalog current_date current_time current_timestamp "
        "current_user distinct drop else except false fetch for from glob grant having ilike in inner insert intersect "
        "into is join lateral like localtime localtimestamp not notnull null on or outer partitioned_by qualify regexp "
        "returning revoke rlike rollback select session_user straight_join tablesample then true uncache union using "
        "when where with xor"
    ).split()
)
"""Words that must be quoted to be the name of a column in CREATE STREAM or in a SELECT."""


def stream_statement(stream: Stream, **options: str) -> str:
    r"""Return the CREATE STREAM that would declare an existing stream again, over its existing topic.

    Args:
        stream: The stream.
        options: Further options for the statement, which the stream does not store.

    Example:
        >>> from grouping.model.column import StreamColumn
        >>> columns = (StreamColumn("id_orig_h", "STRING", "'$[\"id.orig_h\"]'"), StreamColumn("from", "BIGINT"))
        >>> stream = Stream("s_1", "log", columns, "log", "json", {}, "", lenient=True)
        >>> print(stream_statement(stream))  # doctest: +NORMALIZE_WHITESPACE
        CREATE STREAM log (id_orig_h STRING FROM '$["id.orig_h"]', "from" BIGINT)
            WITH (topic = 'log', format = 'json', lenient = TRUE)
    """
    described = describe_stream(stream) | {"access": stream.access.kind}
    parts = [f"{_written(name)} {rest}" for name, rest in described_columns(described).items()]
    if stream.partition_key:
        parts.append(partition_key_text(map(_written, stream.partition_key)))
    if (event_time := cast(dict[str, str] | None, described.get("event_time"))) is not None:
        parts.append(watermark_text(_written(event_time["column"]), event_time["delay"]))
    written = options_text(described_options(described) | options)
    return f"CREATE STREAM {_written(stream.name)} ({', '.join(parts)}) WITH ({written})"


def _written(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED else quoted(name)
