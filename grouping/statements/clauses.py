"""The clauses after a SELECT: EMIT, AT MOST, then DO PUBLISH, START, EVERY and EXPIRE, in any order.

Each clause may occur once. EMIT is a part of the query: a statement's SELECT is a text that includes EMIT, and the
compiler parses it (`cut_emit`). AT MOST has a module of its own (`throttle_clause`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, cast

from sqlglot.tokenizer_core import TokenType

from grouping.model.errors import InputError
from grouping.model.query import DigestClause, Edge, Publish
from grouping.model.refusals import unsupported
from grouping.model.trigger import CronBased, TimerBased
from grouping.statements.refused_forms import BEFORE_NAMES, CLAUSE_HINTS, check_words
from grouping.statements.throttle_clause import beside_every
from grouping.statements.tokens import Tokens, clipped
from grouping.values.cron.every import read_every
from grouping.values.cron.expression import parse_cron
from grouping.values.times import format_instant, format_interval, parse_instant, parse_interval

__all__ = [
    "CLAUSE_READERS",
    "Clauses",
    "EmitClause",
    "KeyName",
    "begins_clause",
    "cut_emit",
    "read_clauses",
    "read_settings",
]

_MOST_ROWS = 2**31 - 1
"""The largest number of matches for DIGEST TOP."""
_MOST_TICKS = 1440
"""The largest number of ticks in OVER LAST."""
_OPERANDS = frozenset(
    (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN, TokenType.END)
    + (TokenType.TRUE, TokenType.FALSE, TokenType.NULL)
)
_CLAUSES = "DO PUBLISH, START, EVERY or EXPIRE"


@dataclass(slots=True)
class Clauses:
    """The clauses of a statement; None for each absent clause."""

    publish: Publish | None = None
    trigger: TimerBased | CronBased | None = None
    start: datetime | None = None
    expire: datetime | timedelta | None = None


class KeyName(NamedTuple):
    """The name of a column of BY, as written."""

    qualifier: str
    name: str
    quoted: bool


class EmitClause(NamedTuple):
    """EMIT ON ENTER | EXIT | ENTER OR EXIT | SILENCE BY columns FOR interval UNTIL condition, or EMIT CHANGES."""

    edge: Edge
    by: tuple[KeyName, ...] = ()
    without_by: InputError | None = None
    """The error to raise if EMIT has no BY and the query reads a stream; None with BY. A table needs no BY."""
    until: str = ""
    """A SELECT whose WHERE is the condition of UNTIL. The condition has the same position as in the query, so that
    errors name the right place. "" without UNTIL."""
    snapshot: bool = False
    """Whether EMIT CHANGES has WITH SNAPSHOT."""
    interval_ms: int = 0
    """The interval of ON SILENCE, or of FOR, in milliseconds; 0 without an interval."""


def cut_emit(query: str) -> tuple[str, EmitClause | None]:
    """Split a query before EMIT, its last clause. Return the text before EMIT, and the parsed EMIT (None without EMIT).

    Raises:
        InputError: ``syntax-error``, or ``unsupported-query`` for parts that EMIT cannot have.

    Example:
        >>> select, emit = cut_emit("SELECT a FROM s WHERE b > 5 EMIT ON ENTER BY a")
        >>> select, emit.edge, emit.by[0].name
        ('SELECT a FROM s WHERE b > 5 ', 'enter', 'a')
    """
    if "emit" not in query.casefold():
        return query, None
    tokens = Tokens(query)
    depth = 0
    while (kind := tokens.type()) is not None:
        depth += (kind in _OPENING) - (kind in _CLOSING)
        named = tokens.index > 0 and tokens.type(-1) in BEFORE_NAMES
        if depth == 0 and not named and tokens.word(2) in _OCCASIONS and tokens.accept("EMIT", "ON"):
            return tokens.before(tokens.index - 2), _read_emit(tokens)
        if depth == 0 and not named and tokens.accept("EMIT", "CHANGES"):
            return tokens.before(tokens.index - 2), _read_changes(tokens)
        tokens.index += 1
    return query, None


def _read_emit(tokens: Tokens) -> EmitClause:
    edge = next(edge for words, edge in _EDGES.items() if tokens.accept(*words))
    interval = parse_interval(tokens.string("the interval of SILENCE", "hours")) if edge == "silence" else timedelta(0)
    by, without_by = list[KeyName](), None
    if tokens.accept("BY"):
        by.append(_key_name(tokens))
        while tokens.accept_symbol(TokenType.COMMA):
            by.append(_key_name(tokens))
    else:
        without_by = tokens.unexpected("BY and the columns of the key", hint=_EMIT_HINT)
    if edge != "silence" and tokens.accept("FOR"):
        interval = parse_interval(tokens.string("the interval of FOR", "minutes"))
    if edge != "silence" and by and tokens.accept("UNTIL"):
        until = _SELECT + tokens.rest()[len(_SELECT) :]
        return EmitClause(edge, tuple(by), until=until, interval_ms=interval // timedelta(milliseconds=1))
    if tokens.type() is not None:
        raise without_by or tokens.unexpected(f"the end of the query, or {_CLAUSES}")
    return EmitClause(edge, tuple(by), without_by, interval_ms=interval // timedelta(milliseconds=1))


def _read_changes(tokens: Tokens) -> EmitClause:
    snapshot = tokens.accept("WITH", "SNAPSHOT")
    if tokens.type() is not None:
        raise tokens.unexpected(f"the end of the query, or {_CLAUSES}")
    return EmitClause("changes", snapshot=bool(snapshot))


def _key_name(tokens: Tokens) -> KeyName:
    parts: list[str] = []
    while True:
        quoted = tokens.type() is TokenType.IDENTIFIER
        parts.append(tokens.name("the name of a column"))
        if not tokens.accept_symbol(TokenType.DOT):
            return KeyName(".".join(parts[:-1]), parts[-1], quoted)


_OPENING = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE))
_CLOSING = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE))
_EDGES: dict[tuple[str, ...], Edge] = {
    ("ENTER", "OR", "EXIT"): "both",
    ("EXIT", "OR", "ENTER"): "both",
    ("ENTER",): "enter",
    ("EXIT",): "exit",
    ("SILENCE",): "silence",
}
_OCCASIONS = frozenset(words[0] for words in _EDGES)
_EMIT_HINT = "EMIT ON ENTER BY symbol reports each symbol that becomes a match."
_SELECT = "SELECT 1 AS a FROM s WHERE "  # must not be longer than the text before any UNTIL condition


def begins_clause(tokens: Tokens, ahead: int = 0) -> bool:
    """Return whether a clause begins at the token `ahead` places after the next token.

    The words of clauses are not reserved (a column may be called ``start``), so the token after the word decides.
    """
    word = tokens.word(ahead)
    if word == "AT":
        return tokens.word(ahead + 1) == "MOST" and tokens.type(ahead - 1) not in BEFORE_NAMES
    if word not in CLAUSE_READERS:
        return False
    following = tokens.word(ahead + 1)
    if word == "DO":
        return following == "PUBLISH" or (following not in CLAUSE_READERS and _is_action(tokens, ahead))
    if (word == "EXPIRE" and following == "AFTER") or (word == "EVERY" and following == "CRON"):
        ahead += 1
    return tokens.type(ahead + 1) is TokenType.STRING


def _is_action(tokens: Tokens, ahead: int) -> bool:
    """Return whether DO begins a clause with an unknown action: DO stands between an operand and a plain word."""
    return tokens.type(ahead - 1) in _OPERANDS and tokens.type(ahead + 1) is TokenType.VAR


def read_clauses(tokens: Tokens) -> Clauses:
    """Read all clauses that follow a CREATE CQ's SELECT and AT MOST.

    Raises:
        InputError: ``syntax-error``, ``bad-interval`` or ``bad-time``.
    """
    clauses = Clauses()
    while tokens.type() not in (None, TokenType.SEMICOLON):
        _read_clause(tokens, clauses, tuple(CLAUSE_READERS), _CLAUSES)
    _check_times(clauses)
    return clauses


def read_settings(tokens: Tokens) -> Clauses:
    """Read the clauses of ALTER CQ … SET, with commas between.

    Raises:
        InputError: ``syntax-error``, ``bad-interval`` or ``bad-time``.
    """
    clauses = Clauses()
    _read_clause(tokens, clauses, ("EVERY", "START", "EXPIRE"), "EVERY, START or EXPIRE")
    while tokens.accept_symbol(TokenType.COMMA):
        _read_clause(tokens, clauses, ("EVERY", "START", "EXPIRE"), "EVERY, START or EXPIRE")
    _check_times(clauses)
    return clauses


def _read_clause(tokens: Tokens, clauses: Clauses, allowed: tuple[str, ...], shown: str) -> None:
    word = tokens.word()
    if word not in allowed:
        if (word, tokens.word(1)) == ("AT", "MOST") and clauses.trigger is not None:
            raise beside_every()
        strings = (tokens.type(ahead) is TokenType.STRING for ahead in range(3))
        check_words(tuple("'" if string else tokens.word(ahead) for ahead, string in enumerate(strings)))
        raise tokens.unexpected(shown, hint=CLAUSE_HINTS.get(word))
    field, read = CLAUSE_READERS[word]
    if getattr(clauses, field) is not None:
        raise InputError(
            f'"{word}" is given twice', code="syntax-error", detail="Each clause may occur once, in any order."
        )
    tokens.index += 1
    setattr(clauses, field, read(tokens))


def _check_times(clauses: Clauses) -> None:
    start, expire, trigger = clauses.start, clauses.expire, clauses.trigger
    if start is None:
        return
    if isinstance(expire, datetime) and expire <= start:
        raise InputError(
            f'EXPIRE "{format_instant(expire)}" is not after START',
            code="bad-time",
            detail=f"START is {format_instant(start)}.",
        )
    try:
        start + (trigger.every if isinstance(trigger, TimerBased) else timedelta(0))
    except OverflowError:
        raise InputError(
            f'START "{format_instant(start)}" is too late',
            code="bad-time",
            detail="The first tick comes one EVERY after START, beyond the year 9999.",
        ) from None


def _publish(tokens: Tokens) -> Publish:
    if not tokens.accept("PUBLISH"):
        raise _unknown_action(tokens)
    mode: Literal["shared", "dedicated", "virtual"] | None = None
    if tokens.word() in ("SHARED", "DEDICATED", "VIRTUAL"):
        mode = cast(Literal["shared", "dedicated", "virtual"], tokens.word().lower())
        tokens.index += 1
    digest = _digest(tokens) if tokens.accept("DIGEST") else None
    if tokens.accept("EVEN"):
        tokens.expect("IF", "EMPTY")
        plain = digest or DigestClause()
        digest = DigestClause(plain.kind, plain.columns, plain.rows, even_if_empty=True)
    return Publish(mode, digest)


def _unknown_action(tokens: Tokens) -> InputError:
    word = tokens.word()
    if not word or word in CLAUSE_READERS:
        return tokens.unexpected("PUBLISH")
    within_publish = word in ("SHARED", "DEDICATED", "VIRTUAL", "DIGEST", "EVEN")
    return unsupported(
        f'action "{clipped(word)}"',
        "PUBLISH is the only action: results are records on a Kafka topic.",
        f"Write DO PUBLISH {word}." if within_publish else "Write DO PUBLISH; let a consumer of the topic do the rest.",
    )


def _digest(tokens: Tokens) -> DigestClause:
    if tokens.accept("ALL"):
        return DigestClause()
    if tokens.accept("COUNT"):
        return DigestClause("count")
    if tokens.accept("LATEST"):
        tokens.expect("BY")
        return DigestClause("latest", tokens.names("a column of the SELECT list"))
    if tokens.accept("TOP"):
        rows = tokens.number("the number of rows", highest=_MOST_ROWS)
        tokens.expect("BY")
        return DigestClause("top", (tokens.name("a column of the SELECT list"),), rows)
    raise tokens.unexpected("ALL, LATEST BY, COUNT or TOP")


def _start(tokens: Tokens) -> datetime:
    return parse_instant(tokens.string("a time"))


def _every(tokens: Tokens) -> TimerBased | CronBased:
    if not tokens.accept("CRON"):
        trigger = read_every(tokens.string("an interval, or CRON and an expression"))
        return _over_last(tokens, trigger) if tokens.accept("OVER") else trigger
    expression = tokens.string("a cron expression")
    zone = None
    if tokens.accept("AT"):
        tokens.expect("TIME", "ZONE")
        zone = tokens.string("the name of a time zone")
    if tokens.accept("OVER"):
        raise InputError(
            "OVER LAST cannot be combined with CRON",
            code="bad-interval",
            detail="The window of OVER LAST has ticks at equal distances, unlike the times of a cron expression.",
            hint="Write EVERY and an interval.",
        )
    return parse_cron(expression) if zone is None else parse_cron(expression, zone)


def _over_last(tokens: Tokens, trigger: TimerBased) -> TimerBased:
    tokens.expect("LAST")
    written = tokens.string("an interval", "minutes")
    over = parse_interval(written)
    ticks = over / trigger.every
    if over % trigger.every or not 1 <= ticks <= _MOST_TICKS:
        raise InputError(
            f'OVER LAST "{written}" is not a multiple of EVERY',
            code="bad-interval",
            detail=f"A window has whole ticks, {_MOST_TICKS:,} at most; EVERY is {format_interval(trigger.every)}.",
            hint="Choose a multiple.",
        )
    return TimerBased(trigger.every, over)


def _expire(tokens: Tokens) -> datetime | timedelta:
    if tokens.accept("AFTER"):
        return parse_interval(tokens.string("an interval", "minutes"))
    return parse_instant(tokens.string("a time, or AFTER and an interval"))


CLAUSE_READERS: dict[str, tuple[str, Callable[[Tokens], object]]] = {
    "DO": ("publish", _publish),
    "START": ("start", _start),
    "EVERY": ("trigger", _every),
    "EXPIRE": ("expire", _expire),
}
"""First word of a clause → its field of `Clauses`, and the reader of the words after it."""
