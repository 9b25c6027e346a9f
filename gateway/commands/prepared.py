"""A command after parsing and compiling, and its answer."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from gateway.commands.answers import CqResult
from gateway.model.unit import CqKey
from gateway.registry.placement import DestinationRequest
from gateway.state.work import Change
from grouping.plan.group import CompiledQuery
from grouping.statements.cq_text import CqText

__all__ = ["Answer", "Create", "PreparedCommand", "Result"]

Result = dict[str, object]
_Statement_co = TypeVar("_Statement_co", covariant=True)
_NONE = Change()


class Create(msgspec.Struct, frozen=True):
    """A CREATE CQ, compiled."""

    text: CqText
    query: CompiledQuery
    request: DestinationRequest


class PreparedCommand(msgspec.Struct, Generic[_Statement_co], frozen=True):
    """A command after parsing and compiling, before its CQs and destinations are read from Redis."""

    statement: _Statement_co
    title: str
    """The title of the statement's row in `STATEMENTS` (statement_table.py)."""
    key: CqKey
    """The CQ that the command is about; the name is empty if the command is about no CQ."""
    text: str = ""
    """The text of the command, for errors that name a place in it; empty for CREATE CQ, which is compiled already."""
    create: Create | None = None
    """The compiled CREATE CQ; None for other statements."""
    asked_ms: int = 0
    """When the command was first tried, epoch milliseconds. Without START, this time gives the phase of the ticks, even
    if the command was held."""


class Answer(msgspec.Struct, frozen=True):
    """The outcome of a statement."""

    result: Result | CqResult
    change: Change = _NONE
    """The change that the statement makes; it is written with the unit of work."""
    not_before_ms: int = 0
    """The earliest time that the reply may have, epoch milliseconds, if the statement takes effect later than now."""
