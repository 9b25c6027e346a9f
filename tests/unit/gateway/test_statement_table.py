"""The table of statements is complete."""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

from gateway.commands.statement_table import STATEMENTS, title_of
from grouping.model.errors import InputError
from grouping.model.query import Statement
from grouping.statements.command import parse
from tests.cases import load


def _statements() -> list[Statement]:
    """Return the statements of all golden cases that are accepted."""
    found = []
    for case in load("command"):
        with suppress(InputError):
            found.append(parse(case.input))
    return found


def test_every_statement_has_a_row() -> None:
    """Each class of statements has golden cases, each of their titles has a row, and each row is such a title."""
    statements = _statements()
    assert set(get_args(Statement)) == {type(statement) for statement in statements}
    assert STATEMENTS.keys() == {title_of(statement) for statement in statements}


def test_statements_of_operators_are_audited_always() -> None:
    """A statement that only operators may send leaves an audit record, also where it is refused unread."""
    assert all(row.audit == "always" for row in STATEMENTS.values() if row.operators_only)
    assert all(row.audit for row in STATEMENTS.values() if row.changes_sources)
