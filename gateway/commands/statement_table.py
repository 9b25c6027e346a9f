"""The table of all kinds of statements: for each kind, its method, the text of its reply, its audit and its senders."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

from gateway.commands.cq_statements import CqStatements
from gateway.commands.listing import Listing
from gateway.commands.operator_statements import OperatorStatements
from gateway.commands.prepared import Answer, PreparedCommand
from gateway.commands.source_statements import SourceStatements
from gateway.model.loaded import Loaded
from gateway.sources.declarations import Origin
from grouping.model.query import ChangeAccess, Describe, Drop, ExplainCq, ExplainSelect, Pause, Statement

__all__ = ["STATEMENTS", "Desks", "StatementRow", "title_of"]


class Desks(NamedTuple):
    """The objects that carry out statements, by area."""

    cqs: CqStatements
    sources: SourceStatements
    listing: Listing
    operators: OperatorStatements


class StatementRow(NamedTuple):
    """The properties of one kind of statement."""

    handler: Callable[[Desks, Loaded], Callable[[PreparedCommand[Any], Origin], Answer]]
    """Selects the method that carries the statement out; methods about CQs also need the loaded state."""
    reply: str = "done"
    """The message of an accepted reply."""
    audit: Literal["", "answered", "always"] = ""
    """When the statement is audited: ``answered`` if it was parsed and answered; ``always`` also if it was refused
    before parsing; never if the value is empty."""
    operators_only: bool = False
    own_form: str | None = None
    """For statements of operators: a hint for other subscribers, with the statement that is about their own CQs."""
    is_about_cq: bool = False
    """Whether the statement's `name` is one of the sender's CQs. This CQ is loaded before the method is called."""
    changes_sources: bool = False
    """Whether the statement changes streams, tables or views, against which later commands are compiled."""


def _about_cq(
    method: Callable[[CqStatements, Loaded, PreparedCommand[Any], Origin], Answer], reply: str = "done"
) -> StatementRow:
    return StatementRow(lambda desks, loaded: partial(method, desks.cqs, loaded), reply, is_about_cq=True)


STATEMENTS: dict[str, StatementRow] = {
    "CREATE CQ": _about_cq(CqStatements.create, "created"),
    "DROP CQ": _about_cq(CqStatements.drop, "dropped"),
    "ALTER CQ": _about_cq(CqStatements.alter, "altered"),
    "PAUSE CQ": _about_cq(CqStatements.pause, "paused"),
    "RESUME CQ": _about_cq(CqStatements.pause, "resumed"),
    "DESCRIBE CQ": _about_cq(CqStatements.describe),
    "EXPLAIN CQ": _about_cq(CqStatements.explain),
    "EXPLAIN CQ FOR": _about_cq(CqStatements.explain_event),
    "EXPLAIN SELECT": StatementRow(lambda desks, _: desks.cqs.explain_select),
    "EXPLAIN STAGES": StatementRow(lambda desks, _: desks.cqs.explain_stages),
    **dict.fromkeys(
        ("CREATE STREAM", "CREATE TABLE"),
        StatementRow(lambda desks, _: desks.sources.create, "created", "answered", changes_sources=True),
    ),
    "CREATE VIEW": StatementRow(
        lambda desks, _: desks.sources.create_view, "created", "answered", changes_sources=True
    ),
    **dict.fromkeys(
        ("DROP STREAM", "DROP TABLE", "DROP VIEW"),
        StatementRow(lambda desks, _: desks.sources.drop, "dropped", "answered", changes_sources=True),
    ),
    "ALTER STREAM": StatementRow(
        lambda desks, _: desks.sources.alter_stream, "altered", "answered", changes_sources=True
    ),
    "GRANT": StatementRow(lambda desks, _: desks.sources.change_access, "granted", "always", changes_sources=True),
    "REVOKE": StatementRow(lambda desks, _: desks.sources.change_access, "revoked", "always", changes_sources=True),
    **dict.fromkeys(
        ("DESCRIBE STREAM", "DESCRIBE TABLE", "DESCRIBE VIEW"), StatementRow(lambda desks, _: desks.sources.describe)
    ),
    "DESCRIBE FUNCTION": StatementRow(lambda desks, _: desks.listing.describe_function),
    "SHOW": StatementRow(lambda desks, _: desks.listing.show),
    "SHOW CQS OF": StatementRow(
        lambda desks, _: desks.operators.show_cqs,
        audit="always",
        operators_only=True,
        own_form="SHOW CQS without OF lists your own CQs.",
    ),
    "DROP CQS": StatementRow(
        lambda desks, _: desks.operators.drop_cqs,
        "dropped",
        "always",
        operators_only=True,
        own_form="DROP CQ name drops one CQ of your own.",
    ),
    **dict.fromkeys(
        ("PAUSE GROUP", "RESUME GROUP"),
        StatementRow(
            lambda desks, _: desks.operators.pause_group,
            audit="always",
            operators_only=True,
            own_form="PAUSE CQ name pauses one CQ of your own.",
        ),
    ),
    "SET QUOTA": StatementRow(lambda desks, _: desks.operators.set_quota, "set", "always", operators_only=True),
    "SHOW QUOTA": StatementRow(lambda desks, _: desks.operators.show_quota, audit="always", operators_only=True),
}
"""Title of a kind of statements → its row."""


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
