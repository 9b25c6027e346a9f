"""Ids, each of a type of its own, so that the type checker tells a group's id from a stream's id.

At run time all ids are plain texts. `grouping.model.group` makes the ids that are hashes.
"""

from __future__ import annotations

from typing import NewType

__all__ = ["CqName", "DestinationId", "GroupId", "PendingId", "SelectId", "StreamId", "Subscriber"]

Subscriber = NewType("Subscriber", str)
"""The name of a subscriber, as its commands say."""
CqName = NewType("CqName", str)
"""The name of a CQ among its subscriber's CQs, folded: names are not case-sensitive."""
StreamId = NewType("StreamId", str)
"""The id of a stream; a stream that is dropped and created again has another id."""
GroupId = NewType("GroupId", str)
"""``g_…``: id of an expression signature on a stream."""
SelectId = NewType("SelectId", str)
"""``s…``: id of a SELECT list."""
DestinationId = NewType("DestinationId", str)
"""``d_…``: id of a destination, shared by equal CQs unless tokens make it private."""
PendingId = NewType("PendingId", str)
"""``p_…``: id of a store: the matches of one constant row and one SELECT list that wait for ticks."""
