"""The clauses after the columns of a stream, PARTITION KEY and WATERMARK FOR, and the option `idle`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlglot.tokenizer_core import TokenType

from grouping.model.column import EventTime
from grouping.model.errors import InputError, near_name
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import TIMESTAMP, SqlType
from grouping.statements.column_parts import read_key
from grouping.statements.tokens import Tokens, clipped
from grouping.values.times import parse_delay, parse_interval

__all__ = ["at_clause", "declared_time", "read_idle", "read_stream_clauses", "refuse_watermark"]

_RECORD_TIME = "_time"
_SHORTEST_IDLE = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)


def _at_watermark(tokens: Tokens) -> bool:
    return tokens.word() == "WATERMARK" and tokens.word(1) == "FOR"


def at_clause(tokens: Tokens) -> bool:
    """Tell whether PARTITION KEY or WATERMARK FOR comes next, and not a column with such a name."""
    return _at_watermark(tokens) or (tokens.word() == "PARTITION" and tokens.word(1) == "KEY")


def read_stream_clauses(tokens: Tokens) -> tuple[tuple[str, ...], EventTime | None]:
    """Read PARTITION KEY and WATERMARK FOR in any order, each at most once, and the end of the parentheses.

    Raises:
        InputError: ``syntax-error``, ``bad-interval`` or ``unsupported-query``.
    """
    key: tuple[str, ...] = ()
    watermark: EventTime | None = None
    while True:
        if not key and tokens.accept("PARTITION", "KEY"):
            key = read_key(tokens)
        elif watermark is None and tokens.accept("WATERMARK", "FOR"):
            watermark = _read_watermark(tokens)
        else:
            raise tokens.unexpected("PARTITION KEY or WATERMARK FOR, each once and after the last column")
        if not tokens.accept_symbol(TokenType.COMMA):
            tokens.expect_symbol(TokenType.R_PAREN, ")")
            return key, watermark


def refuse_watermark(tokens: Tokens) -> None:
    """Refuse WATERMARK FOR in a table.

    Raises:
        InputError: ``unsupported-query``.
    """
    if _at_watermark(tokens):
        raise unsupported(
            "WATERMARK FOR in a table",
            "A table has the latest row of each key, whatever the times of the rows.",
            "Leave WATERMARK FOR out.",
        )


def _read_watermark(tokens: Tokens) -> EventTime:
    """Read the rest of WATERMARK FOR: the column as written, and the delay.

    Raises:
        InputError: ``syntax-error``, ``bad-interval``, or ``unsupported-query`` for any other expression.

    Example:
        >>> _read_watermark(Tokens("at AS at - INTERVAL '5' SECONDS"))
        EventTime(column='at', delay_ms=5000, idle_ms=None)
    """
    column = tokens.name("the name of a column")
    tokens.expect("AS")
    is_name = tokens.type() is TokenType.IDENTIFIER or tokens.word()
    same = is_name and tokens.name("the same column").casefold() == column.casefold()
    if not (same and tokens.accept_symbol(TokenType.DASH) and tokens.accept("INTERVAL")):
        raise unsupported(
            "a watermark other than the column less an interval",
            "The watermark is the latest event time less a constant delay.",
            f"Write WATERMARK FOR {clipped(column)} AS {clipped(column)} - INTERVAL '5 seconds'.",
        )
    sign = "-" if tokens.accept_symbol(TokenType.DASH) else ""
    if tokens.type() is TokenType.NUMBER:
        text = tokens.source()
        tokens.index += 1
    else:
        text = tokens.string("the delay", "seconds")
    text = sign + text
    if unit := tokens.word():
        text += f" {unit}"
        tokens.index += 1
    if text.lstrip().startswith("-"):
        raise InputError(
            f'the delay "{clipped(text)}" is negative',
            code="bad-interval",
            detail="The watermark is behind the latest event time, not ahead of it.",
            hint="Write the interval without its sign.",
        )
    return EventTime(column, parse_delay(text) // _MILLISECOND)


def read_idle(tokens: Tokens) -> int:
    """Read the value of the option `idle`, in milliseconds.

    Raises:
        InputError: ``syntax-error``, or ``bad-interval``, also for an interval of less than a second.
    """
    text = tokens.string("the idle time", "seconds")
    idle = parse_interval(text)
    if idle < _SHORTEST_IDLE:
        raise InputError(
            f'the idle time "{clipped(text)}" is too short',
            code="bad-interval",
            detail="The idle time of a partition must be at least 1 second.",
            hint="Write idle = '1 minute'.",
        )
    return idle // _MILLISECOND


def declared_time(
    columns: Sequence[tuple[str, SqlType]], written: EventTime | None, idle_ms: int | None, stream: str
) -> EventTime | None:
    """Return the event time of a stream, with the column's declared name; None without a declared event time.

    Args:
        columns: All columns.
        written: The clause WATERMARK FOR; None without the clause.
        idle_ms: The option `idle`, in milliseconds; None without the option.
        stream: The name of the stream, for errors.

    Raises:
        InputError: ``unknown-column``, or ``type-mismatch`` for a column that is not a TIMESTAMP.
    """
    if written is None or written.column is None:
        return None if idle_ms is None else EventTime(idle_ms=idle_ms)
    found = next((each for each in columns if each[0].casefold() == written.column.casefold()), None)
    if found is None and written.column.casefold() == _RECORD_TIME:
        return EventTime(None, written.delay_ms, idle_ms)
    if found is None:
        names = [*(name for name, _ in columns), _RECORD_TIME]
        raise InputError(
            f'column "{written.column}" does not exist',
            code="unknown-column",
            detail=f'WATERMARK FOR of stream "{stream}" names the column; there are {", ".join(names)}.',
            hint=near_name(written.column, names),
        )
    name, sql_type = found
    if sql_type != TIMESTAMP:
        raise mismatch(
            f'column "{name}" is not a TIMESTAMP',
            f"The type of the column is {sql_type}, and an event time is a TIMESTAMP.",
            f"Declare {name} TIMESTAMP; with timestamps = 'millis' a JSON stream reads numbers as times.",
        )
    return EventTime(name, written.delay_ms, idle_ms)
