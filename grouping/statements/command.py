"""The parser of commands: from a text to a statement. Names are not looked up yet.

A SELECT within a statement stays text, for the compiler: this module only finds its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from sqlglot.tokenizer_core import TokenType

from grouping.model.errors import InputError, near_name
from grouping.model.query import (
    AlterCq,
    CreateCq,
    CreateView,
    Describe,
    Drop,
    ExplainCq,
    ExplainSelect,
    Listed,
    Pause,
    Publish,
    Show,
    ShowCqsOf,
    SourceKind,
    Statement,
)
from grouping.model.refusals import MAX_DEPTH, too_deep
from grouping.model.source_access import AccessKind
from grouping.model.trigger import ChangeBased
from grouping.statements.access import (
    ACCESS_CHOICES,
    HIGHEST_LIMIT,
    accept_if_exists,
    accept_if_not_exists,
    read_drop_cqs,
    read_grant,
    read_revoke,
    read_set_quota,
    read_show_quota,
)
from grouping.statements.clauses import begins_clause, read_clauses, read_settings
from grouping.statements.declaration import OptionValues, read_options
from grouping.statements.refused_forms import ksqldb_declaration
from grouping.statements.stream_declaration import read_alter_stream, read_stream
from grouping.statements.table_declaration import read_table
from grouping.statements.throttle_clause import check_throttle, read_throttle
from grouping.statements.tokens import Tokens, clipped
from grouping.statements.unknown_statement import unknown_statement

__all__ = ["STATEMENTS", "parse", "stored_select"]

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})


def parse(text: str) -> Statement:
    """Return the statement of a text.

    Raises:
        InputError: ``syntax-error`` if the text is not a single statement, ``unknown-statement``, ``bad-interval``,
            ``bad-time``, ``stream-mismatch`` or ``unsupported-query`` for a contradiction.

    Example:
        >>> parse("DROP CQ intel;")
        Drop(kind='cq', name='intel', if_exists=False)
    """
    tokens = Tokens(text)
    for count in _WORDS:
        words = tuple(tokens.word(ahead) for ahead in range(count))
        if (read := STATEMENTS.get(words)) is not None:
            tokens.index = count
            statement = read(tokens)
            tokens.end()
            return statement
    raise unknown_statement(tokens, STATEMENTS)


def stored_select(text: str) -> str:
    """Return the SELECT of a CREATE CQ that was accepted, perhaps by an earlier version of the gateway.

    The clauses after the SELECT are not parsed, since this version may refuse a clause that was allowed then.

    Example:
        >>> stored_select("CREATE OR REPLACE CQ a AS SELECT x FROM v EVERY CRON '*/90 * * * *'")
        'SELECT x FROM v'
    """
    tokens = Tokens(text)
    tokens.index = next(place for place in (1, 3) if tokens.word(place) == "CQ") + 1
    return _named_select(tokens)[1]


def _create_cq(tokens: Tokens, *, or_replace: bool = False) -> CreateCq:
    name, select = _named_select(tokens)
    throttle = read_throttle(tokens)
    clauses = read_clauses(tokens)
    publish = clauses.publish or Publish()
    trigger = clauses.trigger or ChangeBased(throttle)
    if throttle is not None:
        check_throttle(publish, trigger)
    if publish.digest and isinstance(trigger, ChangeBased):
        raise InputError(
            "DIGEST and EVEN IF EMPTY need EVERY",
            code="bad-interval",
            detail="Without EVERY each match is a result of its own.",
            hint="Add EVERY '10 minutes'.",
        )
    if publish.mode == "virtual" and not isinstance(trigger, ChangeBased):
        raise InputError(
            f'CQ "{name}" cannot be VIRTUAL and have EVERY',
            code="unsupported-query",
            detail="A virtual destination has each match at once, for all CQs of the group.",
            hint="Leave VIRTUAL or EVERY out.",
        )
    return CreateCq(name, select, or_replace, publish, trigger, clauses.start, clauses.expire)


def _named_select(tokens: Tokens) -> tuple[str, str]:
    """Read the name and the SELECT of a CREATE CQ."""
    name = tokens.name("the name of the CQ")
    tokens.accept("AS")
    return name, _select(tokens)


def _create_view(tokens: Tokens) -> CreateView:
    if_not_exists = accept_if_not_exists(tokens)
    name = tokens.stream_name()
    options: OptionValues = {}
    if tokens.accept("WITH"):
        options = read_options(tokens, ("access",), {"access": ACCESS_CHOICES})
    tokens.expect("AS")
    select = _select_alone(tokens, "A view is", "a SELECT")
    return CreateView(name, select, cast(AccessKind | None, options.get("access")), if_not_exists)


def _create_or_replace_cq(tokens: Tokens) -> CreateCq:
    return _create_cq(tokens, or_replace=True)


def _select(tokens: Tokens) -> str:
    """Step over a SELECT and return its text, which ends before the first clause that is outside parentheses.

    A clause can begin only after FROM, so ``SELECT do publish, …`` is a column with an alias.
    """
    first = tokens.index
    if tokens.word() not in ("SELECT", "WITH") and tokens.type() is not TokenType.L_PAREN:
        raise tokens.unexpected("a SELECT", hint=_select_hint(tokens))
    depth = 0
    from_seen = False
    while (kind := tokens.type()) is not None and kind is not TokenType.SEMICOLON:
        if kind in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:  # thousands of levels must not reach the recursive parser
                raise too_deep()
        elif kind in _CLOSING:
            depth -= 1
        elif depth == 0 and kind is TokenType.FROM:
            from_seen = True
        elif depth == 0 and from_seen and begins_clause(tokens):
            break
        tokens.index += 1
    return tokens.slice(first, tokens.index)


def _select_hint(tokens: Tokens) -> str | None:
    """Return a hint for a CREATE CQ without a SELECT after the name."""
    if tokens.word() == "NOT":
        return "CREATE OR REPLACE CQ changes a CQ that exists."
    if tokens.source() in ("-", ".", ":") or tokens.word(1) in ("AS", "SELECT"):
        return 'A name of several words, or with other signs, is written in double quotes: "my-cq".'
    return near_name(tokens.word(), ["SELECT"])


def _select_alone(tokens: Tokens, whose: str, wanted: str) -> str:
    """Step over a SELECT that must not have clauses of a CQ, and return the text of the SELECT."""
    if tokens.word() not in ("SELECT", "WITH"):
        raise tokens.unexpected(wanted)
    select = _select(tokens)
    if clause := tokens.word():
        raise InputError(
            f"{'AT MOST' if clause == 'AT' else clause} belongs to CREATE CQ",
            code="syntax-error",
            detail=f"{whose} a SELECT without clauses.",
            hint="Leave the clause out.",
        )
    return select


def _alter_cq(tokens: Tokens) -> AlterCq:
    name = tokens.name("the name of the CQ")
    if not tokens.accept("SET"):
        hint = f"CREATE OR REPLACE CQ {clipped(name)} AS SELECT … changes the query; ALTER CQ changes its times."
        raise tokens.unexpected("SET and EVERY, START or EXPIRE", hint=hint)
    settings = read_settings(tokens)
    return AlterCq(name, settings.trigger, settings.start, settings.expire)


def _explain(tokens: Tokens) -> ExplainCq | ExplainSelect:
    if tokens.accept("CQ"):
        name = tokens.name("the name of the CQ")
        return _explain_event(tokens, name) if tokens.accept("FOR") else ExplainCq(name)
    if tokens.accept("STAGES"):
        return ExplainSelect(_select_alone(tokens, "EXPLAIN takes", "a SELECT"), stages=True)
    if tokens.word() not in ("", "SELECT", "WITH"):
        raise tokens.unexpected("CQ and a name", hint=f"Write EXPLAIN CQ {clipped(tokens.source())}.")
    return ExplainSelect(_select_alone(tokens, "EXPLAIN takes", "CQ and a name, a SELECT, or STAGES and a SELECT"))


def _explain_event(tokens: Tokens, name: str) -> ExplainCq:
    event = tokens.string("an event as JSON")
    given: dict[str, tuple[str, str]] = {}
    if tokens.accept("WITH"):
        tokens.expect_symbol(TokenType.L_PAREN, "(")
        while True:
            if tokens.source().casefold() in given:
                raise tokens.unexpected("another name")
            of = tokens.stream_name()
            tokens.expect_symbol(TokenType.EQ, "=")
            given[of.casefold()] = of, tokens.string("its value")
            if not tokens.accept_symbol(TokenType.COMMA):
                break
        tokens.expect_symbol(TokenType.R_PAREN, ")")
    return ExplainCq(name, event, tuple(given.values()))


def _show(what: Listed) -> Callable[[Tokens], Show]:
    return lambda tokens: Show(what, *_page(tokens))


def _page(tokens: Tokens) -> tuple[str | None, str | None, int | None]:
    """Return LIKE, AFTER and LIMIT of a SHOW."""
    texts: dict[str, str] = {}
    limit: int | None = None
    while tokens.type() not in (None, TokenType.SEMICOLON):
        word = tokens.word()
        if word in ("LIKE", "AFTER") and word not in texts:
            tokens.index += 1
            texts[word] = tokens.string("a pattern" if word == "LIKE" else "a name")
        elif limit is None and tokens.accept("LIMIT"):
            limit = tokens.number("the number of items", highest=HIGHEST_LIMIT)
        else:
            raise tokens.unexpected("LIKE, AFTER or LIMIT, each at most once")
    return texts.get("LIKE"), texts.get("AFTER"), limit


def _show_cqs(tokens: Tokens) -> Show | ShowCqsOf:
    if not tokens.accept("OF"):
        return Show("cqs", *_page(tokens))
    subscriber = None if tokens.accept("ALL") else tokens.subscriber("ALL or a subscriber")
    return ShowCqsOf(subscriber, *_page(tokens))


def _describe_function(tokens: Tokens) -> Describe:
    word = tokens.source()
    if not word.isidentifier():  # words such as IF and LEFT are names only here
        return Describe("function", tokens.name("the name of a function"))
    tokens.index += 1
    return Describe("function", word)


def _name(tokens: Tokens, kind: Literal["cq", SourceKind]) -> str:
    return tokens.name("the name of the CQ") if kind == "cq" else tokens.stream_name()


def _drop(kind: Literal["cq", SourceKind]) -> Callable[[Tokens], Drop]:
    def read(tokens: Tokens) -> Drop:
        if_exists = accept_if_exists(tokens)
        return Drop(kind, _name(tokens, kind), if_exists)

    return read


def _describe(kind: Literal["cq", SourceKind]) -> Callable[[Tokens], Describe]:
    return lambda tokens: Describe(kind, _name(tokens, kind))


def _pause(kind: Literal["cq", "group"], *, paused: bool) -> Callable[[Tokens], Pause]:
    wanted = "the name of the CQ" if kind == "cq" else "the id of a group"
    return lambda tokens: Pause(kind, tokens.name(wanted), paused)


def _declared(read: Callable[[Tokens], Statement]) -> Callable[[Tokens], Statement]:
    """Return a reader that refuses a declaration in the form of ksqlDB with one error, which lists all differences."""

    def read_here(tokens: Tokens) -> Statement:
        start = tokens.index
        try:
            return read(tokens)
        except InputError as error:
            tokens.index = start
            raise ksqldb_declaration(tokens) or error from None

    return read_here


STATEMENTS: dict[tuple[str, ...], Callable[[Tokens], Statement]] = {
    ("CREATE", "CQ"): _create_cq,
    ("CREATE", "OR", "REPLACE", "CQ"): _create_or_replace_cq,
    ("CREATE", "STREAM"): _declared(read_stream),
    ("CREATE", "TABLE"): _declared(read_table),
    ("CREATE", "VIEW"): _create_view,
    ("DROP", "CQ"): _drop("cq"),
    ("DROP", "CQS"): read_drop_cqs,
    ("DELETE", "CQ"): _drop("cq"),
    ("DROP", "STREAM"): _drop("stream"),
    ("DROP", "TABLE"): _drop("table"),
    ("DROP", "VIEW"): _drop("view"),
    ("GRANT", "READ"): read_grant,
    ("REVOKE", "READ"): read_revoke,
    ("ALTER", "CQ"): _alter_cq,
    ("ALTER", "STREAM"): read_alter_stream,
    ("PAUSE", "CQ"): _pause("cq", paused=True),
    ("RESUME", "CQ"): _pause("cq", paused=False),
    ("PAUSE", "GROUP"): _pause("group", paused=True),
    ("RESUME", "GROUP"): _pause("group", paused=False),
    ("SHOW", "STREAMS"): _show("streams"),
    ("SHOW", "TABLES"): _show("tables"),
    ("SHOW", "VIEWS"): _show("views"),
    ("SHOW", "CQS"): _show_cqs,
    ("SHOW", "GROUPS"): _show("groups"),
    ("SHOW", "COMPUTATIONS"): _show("computations"),
    ("SHOW", "QUOTA"): read_show_quota,
    ("SET", "QUOTA"): read_set_quota,
    ("SHOW", "TIMERS"): _show("timers"),
    ("SHOW", "FUNCTIONS"): _show("functions"),
    ("DESCRIBE", "CQ"): _describe("cq"),
    ("DESCRIBE", "STREAM"): _describe("stream"),
    ("DESCRIBE", "TABLE"): _describe("table"),
    ("DESCRIBE", "VIEW"): _describe("view"),
    ("DESCRIBE", "FUNCTION"): _describe_function,
    ("EXPLAIN",): _explain,
}
"""The first words of each statement, and the reader of the rest."""
_WORDS = (2, 4, 1)
"""Numbers of first words that may identify a statement, in the order in which they are tried."""
