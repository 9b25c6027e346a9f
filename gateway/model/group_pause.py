"""The pause of a group: an operator has ordered not to evaluate it until RESUME GROUP."""

from __future__ import annotations

import msgspec

__all__ = ["GroupPause"]


class GroupPause(msgspec.Struct, frozen=True):
    """A pause, key `pause/<stream>/<group>` on `cq.catalog`; outlives the group's CQs, and ends with the stream."""

    by: str
    """The operator who paused the group."""
    since_ms: int
    """When the statement was accepted, epoch milliseconds."""
