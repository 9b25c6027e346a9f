"""Clauses of other systems that are refused by name, with the form to write instead.

Without this check, sqlglot would take most of these clauses for aliases or column names, or report a confusing error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from grouping.model.errors import InputError
from grouping.model.refusals import unsupported
from grouping.model.type_names import OTHER_SPELLINGS
from grouping.statements.tokens import Tokens

__all__ = ["BEFORE_NAMES", "CLAUSE_HINTS", "check_forms", "check_words", "ksqldb_declaration"]


class _Refusal(NamedTuple):
    what: str
    detail: str
    hint: str | None


_DETAIL = "Events are not put into windows of time."
_TUMBLE = "GROUP BY symbol EVERY '5 minutes' makes one result for each symbol and 5 minutes."
_HOP = "GROUP BY symbol EVERY '1 minute' OVER LAST '5 minutes' makes each minute one result for each symbol."
_TABLE_FUNCTION = "Write the stream's name after FROM."
_EVENTS = "Each event is evaluated as it is."
_SETS = "A query is one SELECT."
_EMIT = "Matches are results at once, and aggregates at the ticks of EVERY."
_LEAVE_OUT = "Leave it out; an aggregate needs EVERY '5 minutes' in its place."
_EMIT_PLACE = "EMIT comes directly after the SELECT of a CQ, before clauses such as EVERY; a view cannot have it."
_EMIT_FORM = "CREATE CQ name AS SELECT … WHERE … EMIT ON ENTER BY symbol."
_COUNTED = "EVERY '10 minutes' DO PUBLISH DIGEST COUNT EVEN IF EMPTY tells the number of matches each 10 minutes."
_STAYS = "WHERE … EMIT ON ENTER BY symbol FOR '5 minutes' reports a symbol that is a match for 5 minutes."
_HELD = "HAVING count(*) >= 10 EVERY '5 minutes' asks how often a condition held in 5 minutes."
_QUIET = "AT MOST 1 EVERY '10 minutes' BY symbol publishes one result of each symbol in 10 minutes at most."
_ONLY_PUBLISH = "PUBLISH is the only action: results are records on a Kafka topic."
_CONSUME = "Let a consumer of that topic send them on."

_FORMS: dict[tuple[str, ...], _Refusal] = {
    ("TUMBLE", "("): _Refusal("TUMBLE(…)", _DETAIL, f"{_TUMBLE} {_TABLE_FUNCTION}"),
    ("HOP", "("): _Refusal("HOP(…)", _DETAIL, f"{_HOP} {_TABLE_FUNCTION}"),
    ("SESSION", "("): _Refusal("SESSION(…)", _DETAIL, f"{_TUMBLE} {_TABLE_FUNCTION}"),
    ("WINDOW", "TUMBLING", "("): _Refusal("WINDOW TUMBLING", _DETAIL, _TUMBLE),
    ("WINDOW", "HOPPING", "("): _Refusal("WINDOW HOPPING", _DETAIL, _HOP),
    ("WINDOW", "SESSION", "("): _Refusal("WINDOW SESSION", _DETAIL, _TUMBLE),
    ("WINDOW", "("): _Refusal("window(…)", _DETAIL, _TUMBLE),
    ("SESSION_WINDOW", "("): _Refusal("session_window(…)", _DETAIL, _TUMBLE),
    ("EMIT", "CHANGES"): _Refusal("EMIT CHANGES", _EMIT, _LEAVE_OUT),
    ("EMIT", "FINAL"): _Refusal("EMIT FINAL", _EMIT, _LEAVE_OUT),
    ("EMIT", "ON", "ENTER"): _Refusal("EMIT ON ENTER here", _EMIT_PLACE, _EMIT_FORM),
    ("EMIT", "ON", "EXIT"): _Refusal("EMIT ON EXIT here", _EMIT_PLACE, _EMIT_FORM),
    ("EMIT", "ON", "SILENCE"): _Refusal("EMIT ON SILENCE here", _EMIT_PLACE, _EMIT_FORM),
    ("FOR", "'"): _Refusal("FOR '…' here", "FOR comes after EMIT ON ENTER or EXIT and its BY.", _STAYS),
    **{
        (word, "'"): _Refusal(f"{word} '…'", "Each match is a result.", _QUIET)
        for word in ("COOLDOWN", "THROTTLE", "SUPPRESS", "DEDUPLICATE")
    },
    **{
        (word, "'"): _Refusal(f'action "{word}"', _ONLY_PUBLISH, _CONSUME)
        for word in ("WEBHOOK", "MAIL", "EMAIL", "NOTIFY", "POST", "SLACK")
    },
    ("TABLESAMPLE", "("): _Refusal("TABLESAMPLE", _EVENTS, "Choose events in WHERE."),
    ("PIVOT", "("): _Refusal("PIVOT", _EVENTS, f"Aggregates may have FILTER. {_TUMBLE}"),
    ("UNPIVOT", "("): _Refusal("UNPIVOT", _EVENTS, "Name the columns."),
    ("MATCH_RECOGNIZE", "("): _Refusal("MATCH_RECOGNIZE", "Patterns over several events are not searched.", _HELD),
    **{
        ("MINUS", word): _Refusal("MINUS", _SETS, "Write the second condition as AND NOT in WHERE.")
        for word in ("SELECT", "ALL", "DISTINCT", "(")
    },
    ("FOR", "SYSTEM_TIME"): _Refusal(
        "FOR SYSTEM_TIME AS OF",
        "An event is joined with the rows that the table has when the event comes.",
        "Leave it out.",
    ),
}
"""Successive words → refusal. "(" stands for a parenthesis, "'" for a string."""
CLAUSE_HINTS = {
    **dict.fromkeys(("DIGEST", "EVEN"), "DIGEST comes after DO PUBLISH: EVERY '10 minutes' DO PUBLISH DIGEST ALL."),
    **dict.fromkeys(("FOR", "WITHIN", "HOLD"), _STAYS),
    **dict.fromkeys(("COOLDOWN", "THROTTLE", "SUPPRESS", "DEDUPE", "DEDUPLICATE"), _QUIET),
    "AT": "AT MOST 1 EVERY '10 minutes' stands after the query, before DO PUBLISH, START and EXPIRE.",
    "ONCE": "EXPIRE AFTER '1 day' ends a CQ; DROP CQ name ends it after the first result.",
    **dict.fromkeys(("WEBHOOK", "MAIL", "EMAIL", "NOTIFY", "POST", "SLACK"), f"{_ONLY_PUBLISH} {_CONSUME}"),
}
"""Misplaced word, or word of a clause of another system → hint with the form to write."""
_FIRST = frozenset(words[0] for words in _FORMS)
_LONGEST = max(map(len, _FORMS))
_QUOTED = frozenset((TokenType.IDENTIFIER, TokenType.STRING))
BEFORE_NAMES = frozenset(
    (TokenType.DOT, TokenType.ALIAS, TokenType.FROM, TokenType.JOIN, TokenType.COMMA, TokenType.SELECT)
)
"""Tokens before a name. After these tokens a word begins no clause: ``FROM emit changes`` is a stream and its alias."""

_BEHIND_FROM = frozenset(
    (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SELECT, TokenType.WINDOW)
    + (TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.QUALIFY, TokenType.LIMIT)
    + (TokenType.LATERAL, TokenType.VALUES)
)
_AROUND_COMMAS = frozenset((TokenType.L_PAREN, TokenType.R_PAREN, TokenType.FROM, TokenType.COMMA)) | _BEHIND_FROM


def check_forms(tokens: Sequence[Token]) -> None:
    """Refuse clauses of other systems.

    Raises:
        InputError: ``unsupported-query``.
    """
    _check_commas(tokens)
    for place, token in enumerate(tokens):
        if token.text.upper() not in _FIRST or token.token_type in _QUOTED:
            continue
        words = tuple(_word(near) for near in tokens[place : place + _LONGEST])
        if words[1:2] != ("(",) and place and tokens[place - 1].token_type in BEFORE_NAMES:
            continue
        check_words(words)


def check_words(words: tuple[str, ...]) -> None:
    """Refuse a clause of other systems that begins with these words, in capitals; raises as `check_forms` does."""
    for length in range(2, len(words) + 1):
        if (refusal := _FORMS.get(words[:length])) is not None:
            raise unsupported(*refusal)


_KSQLDB = {"KAFKA_TOPIC": "topic", "VALUE_FORMAT": "format"}
_KSQLDB_ONLY = frozenset(
    ("KEY", "HEADERS", "KEY_FORMAT", "REPLICAS", "TIMESTAMP", "TIMESTAMP_FORMAT", "WRAP_SINGLE_VALUE")
)


def ksqldb_declaration(tokens: Tokens) -> InputError | None:
    """Return the refusal of a declaration in the form of ksqlDB, with all differences; None for any other declaration.

    Args:
        tokens: The statement, after CREATE STREAM or CREATE TABLE.
    """
    words = []
    while tokens.type() is not None:
        words.append(tokens.word())
        tokens.index += 1
    if words[1:3] == ["AS", "SELECT"]:
        return unsupported(
            "a declaration AS SELECT",
            "CREATE STREAM and CREATE TABLE declare a topic that exists.",
            "CREATE CQ name AS SELECT … publishes results; CREATE VIEW name AS SELECT … names a query.",
        )
    if not _KSQLDB.keys() & set(words):
        return None
    keyed = [word for place, word in enumerate(words) if word != "KEY" or words[place - 1] != "PRIMARY"]
    renamed = [f"{_KSQLDB.get(word) or OTHER_SPELLINGS[word]} for {word}" for word in keyed if word in _NAMES]
    left_out = [word for place, word in enumerate(keyed) if _is_left_out(keyed, place)]
    detail = f"Write {', '.join(dict.fromkeys(renamed))}"
    return InputError(
        "the declaration has the form of ksqlDB",
        code="syntax-error",
        detail=f"{detail}; leave out {', '.join(dict.fromkeys(left_out))}." if left_out else f"{detail}.",
        hint="CREATE STREAM quotes (symbol STRING, price DOUBLE) WITH (topic = 'quotes', format = 'json').",
    )


def _is_left_out(words: Sequence[str], place: int) -> bool:
    """Return whether a word has a meaning only in ksqlDB; TIMESTAMP after WITH is an option of ksqlDB, else a type."""
    return words[place] in _KSQLDB_ONLY and (words[place] != "TIMESTAMP" or "WITH" in words[:place])


_NAMES = _KSQLDB.keys() | OTHER_SPELLINGS.keys()


def _check_commas(tokens: Sequence[Token]) -> None:
    """Refuse joins by comma, which sqlglot takes for joins without ON."""
    within = [False]
    """For each open parenthesis: whether its last clause is FROM."""
    for place, token in enumerate(tokens):
        if token.token_type not in _AROUND_COMMAS:
            continue
        if token.token_type is TokenType.L_PAREN:
            within.append(False)
        elif token.token_type is TokenType.R_PAREN and len(within) > 1:
            within.pop()
        elif token.token_type is TokenType.FROM:
            within[-1] = place == 0 or tokens[place - 1].token_type is not TokenType.DISTINCT
        elif token.token_type in _BEHIND_FROM:
            within[-1] = False
        elif token.token_type is TokenType.COMMA and within[-1]:
            raise unsupported("a join by comma", "A join needs ON and an equality.", "Write JOIN … ON.")


def _word(token: Token) -> str:
    if token.token_type is TokenType.STRING:
        return "'"
    return "" if token.token_type in _QUOTED else token.text.upper()
