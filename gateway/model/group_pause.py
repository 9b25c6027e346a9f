"""The pause of a group: by order of an operator, the group is not evaluated until RESUME GROUP."""

from __future__ import annotations

import msgspec

__all__ = ["GroupPause"]


class GroupPause(msgspec.Struct, frozen=True):
    """A pause of a group. The pause stays when the group's last CQ is dropped, and ends when the stream is dropped.

    The record on `cq.catalog` has the key `pause/<stream>/<group>`.
    """

    by: str
    """The operator who paused the group."""
    since_ms: int
    """When the statement was accepted, epoch milliseconds."""
