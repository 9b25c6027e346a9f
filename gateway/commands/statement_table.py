"""All kinds of statements: who carries each out, the word of its reply, its audit, and who may send it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from gateway.commands.cq_statements import CqStatements
from gateway.commands.listing import Listing
from gateway.commands.operator_statements import OperatorStatements
from gateway.commands.prepared import Answer, PreparedCommand
from gateway.commands.source_statements import SourceStatements
from gateway.sources.declarations import Origin
from grouping.model.query import ChangeAccess, Describe, Drop, ExplainCq, ExplainSelect, Pause, Statement

__all__ = ["STATEMENTS", "Desks", "StatementRow", "title_of"]


class Desks(NamedTuple):
    """The objects that carry out statements."""

    cqs: CqStatements
    sources: SourceStatements
    listing: Listing
    operators: OperatorStatements


class StatementRow(NamedTuple):
    """The properties of one kind of statements."""

    handler: Callable[[Desks], Callable[[PreparedCommand[Any], Origin], Answer]]
    """Selects the method that carries the statement out."""
    reply: str = "done"
    """The message of an accepted reply."""
    audit: Literal["", "answered", "always"] = ""
    """Whether the statement is audited: once it was parsed and answered, or also where it was refused unread."""
    operators_only: bool = False
    own_form: str | None = None
    """For those who are no operators: the statement that does the same for CQs of their own."""
    is_about_cq: bool = False
    """Whether the statement's `name` is a CQ of the sender's that the statement needs."""
    changes_sources: bool = False
    """Whether later commands compile differently once the statement is carried out."""


STATEMENTS: dict[str, StatementRow] = {
    "CREATE CQ": StatementRow(lambda desks: desks.cqs.create, "created", is_about_cq=True),
    "DROP CQ": StatementRow(lambda desks: desks.cqs.drop, "dropped", is_about_cq=True),
    "ALTER CQ": StatementRow(lambda desks: desks.cqs.alter, "altered", is_about_cq=True),
    "PAUSE CQ": StatementRow(lambda desks: desks.cqs.pause, "paused", is_about_cq=True),
    "RESUME CQ": StatementRow(lambda desks: desks.cqs.pause, "resumed", is_about_cq=True),
    "DESCRIBE CQ": StatementRow(lambda desks: desks.cqs.describe, is_about_cq=True),
    "EXPLAIN CQ": StatementRow(lambda desks: desks.cqs.explain, is_about_cq=True),
    "EXPLAIN CQ FOR": StatementRow(lambda desks: desks.cqs.explain_event, is_about_cq=True),
    "EXPLAIN SELECT": StatementRow(lambda desks: desks.cqs.explain_select),
    "EXPLAIN STAGES": StatementRow(lambda desks: desks.cqs.explain_stages),
    **dict.fromkeys(
        ("CREATE STREAM", "CREATE TABLE"),
        StatementRow(lambda desks: desks.sources.create, "created", "answered", changes_sources=True),
    ),
    "CREATE VIEW": StatementRow(lambda desks: desks.sources.create_view, "created", "answered", changes_sources=True),
    **dict.fromkeys(
        ("DROP STREAM", "DROP TABLE", "DROP VIEW"),
        StatementRow(lambda desks: desks.sources.drop, "dropped", "answered", changes_sources=True),
    ),
    "GRANT": StatementRow(lambda desks: desks.sources.change_access, "granted", "always", changes_sources=True),
    "REVOKE": StatementRow(lambda desks: desks.sources.change_access, "revoked", "always", changes_sources=True),
    **dict.fromkeys(
        ("DESCRIBE STREAM", "DESCRIBE TABLE", "DESCRIBE VIEW"), StatementRow(lambda desks: desks.sources.describe)
    ),
    "DESCRIBE FUNCTION": StatementRow(lambda desks: desks.listing.describe_function),
    "SHOW": StatementRow(lambda desks: desks.listing.show),
    "SHOW CQS OF": StatementRow(
        lambda desks: desks.operators.show_cqs,
        audit="always",
        operators_only=True,
        own_form="SHOW CQS without OF lists your own CQs.",
    ),
    "DROP CQS": StatementRow(
        lambda desks: desks.operators.drop_cqs,
        "dropped",
        "always",
        operators_only=True,
        own_form="DROP CQ name drops one CQ of your own.",
    ),
    **dict.fromkeys(
        ("PAUSE GROUP", "RESUME GROUP"),
        StatementRow(
            lambda desks: desks.operators.pause_group,
            audit="always",
            operators_only=True,
            own_form="PAUSE CQ name pauses one CQ of your own.",
        ),
    ),
    "SET QUOTA": StatementRow(lambda desks: desks.operators.set_quota, "set", "always", operators_only=True),
    "SHOW QUOTA": StatementRow(lambda desks: desks.operators.show_quota, audit="always", operators_only=True),
}
"""By title."""


def title_of(statement: Statement) -> str:
    """Return the title of a statement's row: its first words.

    Example:
        >>> title_of(Drop("cq", "intel"))
        'DROP CQ'
    """
    match statement:
        case Drop(kind):
            return f"DROP {kind.upper()}"
        case Describe(kind):
            return f"DESCRIBE {kind.upper()}"
        case Pause(kind, _, paused):
            return f"{'PAUSE' if paused else 'RESUME'} {kind.upper()}"
        case ChangeAccess(granted):
            return "GRANT" if granted else "REVOKE"
        case ExplainCq(_, event):
            return "EXPLAIN CQ" if event is None else "EXPLAIN CQ FOR"
        case ExplainSelect(_, stages):
            return "EXPLAIN STAGES" if stages else "EXPLAIN SELECT"
        case _:
            return _words(type(statement).__name__)


@lru_cache(maxsize=100)
def _words(class_name: str) -> str:
    """Return the words of a class name: ``SHOW CQS OF`` for `ShowCqsOf`."""
    return " ".join(re.findall("[A-Z][a-z]*", class_name)).upper()
