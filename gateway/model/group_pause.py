"""The pause of a group: by order of an operator, it is not evaluated until RESUME GROUP."""

from __future__ import annotations

import msgspec

__all__ = ["GroupPause"]


class GroupPause(msgspec.Struct, frozen=True):
    """Key `pause/<stream>/<group>` on `cq.catalog`; it outlives the group's last CQ, and ends with the stream."""

    by: str
    """The operator."""
    since_ms: int
    """When the statement was accepted; epoch milliseconds."""
