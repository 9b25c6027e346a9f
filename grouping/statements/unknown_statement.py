"""The refusal of a text with an unknown beginning, with the nearest statement as a hint."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from grouping.model.errors import InputError, near_name
from grouping.model.wording import alternatives
from grouping.statements.tokens import Tokens, clipped

__all__ = ["unknown_statement"]

_NEAR = 0.7
"""The least similarity of two words for a hint, from 0 to 1."""
_OBJECTS = {"QUERY": "CQ", "CONTINUOUS": "CQ", "QUERIES": "CQS", "MATERIALIZED": "VIEW"} | {
    "SOURCE": "STREAM",
    "TOPIC": "STREAM",
    "TOPICS": "STREAMS",
}
"""Kind of object in other systems → its name here."""
_END = "DROP CQ name ends a CQ; PAUSE CQ name stops its results until RESUME CQ name."
_PRODUCE = "Produce records to the Kafka topic of the stream or table; CREATE CQ name AS SELECT … filters them."
_VERBS = {
    **dict.fromkeys(("SELECT", "WITH"), "CREATE CQ name AS SELECT … keeps a query running."),
    **dict.fromkeys(("SUBSCRIBE", "TAIL", "WATCH"), "CREATE CQ name AS SELECT … keeps a query running."),
    **dict.fromkeys(("TERMINATE", "KILL", "STOP", "CANCEL", "DISABLE"), _END),
    **dict.fromkeys(("START", "ENABLE"), "RESUME CQ name goes on with a CQ that is paused."),
    **dict.fromkeys(("INSERT", "UPDATE", "MERGE", "UPSERT", "COPY"), _PRODUCE),
    **dict.fromkeys(("BEGIN", "COMMIT", "ROLLBACK"), "Each statement takes effect by itself."),
    "USE": "There are no databases. Write a prefix as a part of the name: eu.quotes.",
}
"""Hints by the first word of statements of other systems."""
_RENAMED = {"LIST": "SHOW", "DESC": "DESCRIBE"}
"""First word of a statement of other systems → the word here."""


def unknown_statement(tokens: Tokens, statements: Collection[tuple[str, ...]]) -> InputError:
    """Return the refusal of a text whose first words begin no statement.

    Args:
        tokens: The text, at its first token.
        statements: The first words of each statement.

    Returns:
        ``unknown-statement``; ``syntax-error`` if the text ends within the first words, or begins with a token that is
        not a word.
    """
    verb = tokens.word()
    if not verb:
        return tokens.unexpected("a statement")
    renamed = _RENAMED.get(verb, verb)
    objects = [" ".join(words[1:]) for words in statements if words[0] == renamed]
    if objects and renamed == verb and not tokens.source(1):
        tokens.index += 1
        return tokens.unexpected(alternatives(objects))
    shown = f"{tokens.source()} {tokens.source(1)}" if objects else tokens.source()
    return InputError(
        f'"{clipped(shown)}" is not a statement of the gateway',
        code="unknown-statement",
        detail=f"{renamed} takes {alternatives(objects)}." if objects else "No statement begins with this word.",
        hint=_object_hint(tokens, renamed, objects) if objects else _verb_hint(verb, statements),
    )


def _object_hint(tokens: Tokens, verb: str, objects: list[str]) -> str | None:
    """Return the hint for a known verb with an unknown object."""
    second = _OBJECTS.get(tokens.word(1), tokens.word(1))
    single = [name for name in objects if " " not in name]
    if near := difflib.get_close_matches(second, single, n=1, cutoff=_NEAR):
        if verb == "DROP" and near[0] == "CQS":
            return "Write DROP CQ and one name."  # DROP CQS is an operator's statement
        return f'Did you mean "{verb} {near[0]}"?'
    if second == "OR":
        return "OR REPLACE is for CQs: CREATE OR REPLACE CQ name AS SELECT …. Drop another object first."
    if verb == "DELETE" and second == "FROM":
        return "A record without a value, produced to the Kafka topic of a table, deletes the row of its key."
    if verb == "ALTER" and second in ("TABLE", "VIEW"):
        return f"Drop the {second} and create it again."
    if verb == "SHOW" or not second or tokens.source(2) not in ("", ";"):
        return None
    kind = "STREAM" if verb == "DESCRIBE" else single[0]
    return f"Write the kind before the name: {verb} {kind} {clipped(tokens.source(1))}."


def _verb_hint(verb: str, statements: Collection[tuple[str, ...]]) -> str:
    """Return the hint for an unknown verb."""
    if (hint := _VERBS.get(verb)) is not None:
        return hint
    verbs = list(dict.fromkeys(words[0] for words in statements))
    longer = [each for each in verbs if each != "SET"]  # too short: RESET would count as similar
    return near_name(clipped(verb), longer) or f"A statement begins with {alternatives(verbs)}."
