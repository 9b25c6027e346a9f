"""Definitions, read from Redis: plans, SELECT lists and templates of texts, which many CQs share.

A definition is stored once for its stream, as long as a CQ uses it. Definitions never change, so a definition
that was read stays in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from gateway.state.connection import Connection
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import TextTemplate
from grouping.store.connection import StoreLost, mapped

__all__ = ["Definitions"]

_Definition = TypeVar("_Definition", GroupPlan, SelectList, TextTemplate)

_Id = TypeVar("_Id", bound=str)

_KNOWN = 10_000
"""The largest number of definitions in memory."""


class Definitions:
    """Reads definitions, and keeps them in memory."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[StreamId, str], GroupPlan | SelectList | TextTemplate] = {}

    def plans(self, stream_id: StreamId, group_ids: Iterable[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return the plans of groups with CQs."""
        return self._read(stream_id, self._connection.keys.groups(stream_id), group_ids, GroupPlan)

    def select(self, stream_id: StreamId, select_id: SelectId) -> SelectList:
        """Return a SELECT list that is in use."""
        (select,) = self._read(stream_id, self._connection.keys.selects(stream_id), [select_id], SelectList).values()
        return select

    def templates(self, stream_id: StreamId, names: Iterable[str]) -> dict[str, TextTemplate]:
        """Return templates that are in use, by their ids."""
        return self._read(stream_id, self._connection.keys.texts(stream_id), names, TextTemplate)

    def kept_plans(self, stream_id: StreamId, group_ids: Sequence[GroupId]) -> set[GroupId]:
        """Return the groups whose plans Redis has; a plan stays for a while after the group's last CQ."""
        if not group_ids:
            return set()
        with mapped():
            plans = self._connection.redis.hmget(self._connection.keys.groups(stream_id), group_ids)
        return {group_id for group_id, plan in zip(group_ids, plans, strict=True) if plan is not None}

    def _read(
        self, stream_id: StreamId, shelf: str, names: Iterable[_Id], form: type[_Definition]
    ) -> dict[_Id, _Definition]:
        found: dict[_Id, _Definition] = {}
        new = []
        for name in names:
            known = self._known.get((stream_id, name))
            if isinstance(known, form):
                found[name] = known
            else:
                new.append(name)
        if new:
            with mapped():
                bodies = self._connection.redis.hmget(shelf, new)
            for name, body in zip(new, bodies, strict=True):
                found[name] = self._keep(stream_id, name, body, form)
        return found

    def _keep(self, stream_id: StreamId, name: str, body: bytes | None, form: type[_Definition]) -> _Definition:
        if body is None:
            detail = f'The definition "{name}" of stream "{stream_id}" is missing.'
            raise StoreLost("redis has lost a definition that CQs share", detail=detail)
        definition: _Definition = msgspec.json.decode(body, type=form)
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known[stream_id, name] = definition
        return definition
