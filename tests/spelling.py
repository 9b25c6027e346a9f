"""The many SQL texts that mean one query (docs/statements.md)."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal

from tests.queries import EXACT, Column, Conjunct, Item, Query, quoted

__all__ = ["literal", "select"]

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def select(query: Query, rng: random.Random) -> str:
    """Return the SELECT in one of its many spellings."""
    alias = rng.choice(("", "", "q"))
    items = "*" if query.star else ", ".join(_item_sql(item, alias, rng) for item in query.items)
    source = quoted(query.stream.name) + (rng.choice((" AS ", " ")) + alias if alias else "")
    text = f"{_word('SELECT', rng)} {items} {_word('FROM', rng)} {source}"
    if query.where:
        conjuncts = [_conjunct_sql(conjunct, alias, rng) for conjunct in query.where]
        rng.shuffle(conjuncts)
        text += f" {_word('WHERE', rng)} " + f" {_word('AND', rng)} ".join(conjuncts)
    return text


def literal(value: object, kind: str, rng: random.Random) -> str:
    """Return a constant in some spelling valid beside a column of the type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return rng.choice(("TRUE", "true") if value else ("FALSE", "false"))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return "'" + _timestamp_text(value, rng) + "'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, float):
        return rng.choice((str(int(value)), repr(value))) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, int) and kind in ("DOUBLE", *EXACT) and abs(value) < 2**31:
        return rng.choice((str(value), str(value), f"{value}.0"))
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _item_sql(item: Item, alias: str, rng: random.Random) -> str:
    if not item.column:
        return f"{item.sql} AS {item.name}"
    reference = _reference(item.column, alias, rng)
    return reference if item.name == item.column else f"{reference} AS {quoted(item.name)}"


def _reference(name: str, alias: str, rng: random.Random) -> str:
    spelled = quoted(name)
    if Column(name, "").plain:
        spelled = rng.choice((name, name, name.upper(), name.lower(), quoted(name), f"`{name}`"))
    return f"{alias}.{spelled}" if alias and rng.random() < 0.7 else spelled


def _conjunct_sql(term: Conjunct, alias: str, rng: random.Random) -> str:
    column = _reference(term.column.name, alias, rng)
    constants = [literal(value, term.column.type, rng) for value in term.values]
    if term.op == "true":
        text = rng.choice((column, f"{column} = TRUE", f"true = {column}"))
    elif term.op in ("is null", "is not null"):
        text = f"{column} {_word(term.op.upper(), rng)}"
    elif term.op == "in":
        rng.shuffle(constants)
        text = f"{column} {_word('IN', rng)} ({', '.join(constants)})"
    elif term.op == "between" and rng.random() < 0.6:
        text = f"{column} {_word('BETWEEN', rng)} {constants[0]} {_word('AND', rng)} {constants[1]}"
    elif term.op == "between":
        text = f"{column} >= {constants[0]} AND {constants[1]} >= {column}"
    else:
        op = "!=" if term.op == "<>" and rng.random() < 0.5 else term.op
        mirrored = "!=" if op == "!=" else MIRRORED[term.op]
        text = f"{column} {op} {constants[0]}" if rng.random() < 0.7 else f"{constants[0]} {mirrored} {column}"
    return f"({text})" if rng.random() < 0.2 else text


def _word(word: str, rng: random.Random) -> str:
    return rng.choice((word, word, word.lower(), word.title()))


def _timestamp_text(instant: datetime, rng: random.Random) -> str:
    return rng.choice((instant.isoformat(), instant.isoformat().replace("+00:00", "Z")))
