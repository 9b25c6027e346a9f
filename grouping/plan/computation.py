"""Computations: rows made from a stream's events, once for all groups that read these rows."""

from __future__ import annotations

import hashlib

import msgspec

from grouping.model.expression import Expression
from grouping.model.ids import StreamId
from grouping.plan.frames import Frames
from grouping.plan.lasting import LastingMatches
from grouping.plan.lookup_join import LookupJoin
from grouping.plan.row_before import RowBefore
from grouping.plan.silence import SilentKeys
from grouping.plan.switch import Switch

__all__ = ["Computation", "Node"]

Node = LookupJoin
"""A node between the stream and the nodes that `Computation` has as fields. If there is a further kind of node, this
type becomes a union, and mypy then names the functions that must handle the new kind."""


class Computation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The nodes between a stream and its groups."""

    computation_id: str
    nodes: tuple[Node, ...] = msgspec.field(name="joins")
    """The joining nodes from the stream upward; each node reads the rows of the node below.

    At most one of the fields that follow is set: a further node above all joins. As an exception, each of the other
    nodes may stand above `frames`, for EMIT of a query with window functions.
    """
    before: RowBefore | None = None
    """The node that pairs each row with the previous row of its key; None for computations without edges."""

    frames: Frames | None = None
    """The node that adds columns of frames; None without frames."""

    silence: SilentKeys | None = None
    """The node of EMIT ON SILENCE; None for other queries."""

    lasting: LastingMatches | None = None
    """The node of EMIT with FOR; None for other queries."""

    @classmethod
    def of(
        cls,
        stream_id: StreamId,
        nodes: tuple[Node, ...],
        before: RowBefore | None = None,
        frames: Frames | None = None,
        silence: SilentKeys | None = None,
        lasting: LastingMatches | None = None,
    ) -> Computation:
        """Return the computation of nodes over a stream; its id is a hash of the nodes and the stream's id."""
        content: list[object] = [stream_id, [node.identity for node in nodes]]
        if before is not None:
            content.append(before.identity)
        if frames is not None:
            content.append(frames.identity)
        if silence is not None:
            content.append(silence.identity)
        if lasting is not None:
            content.append(lasting.identity)
        name = "j_" + hashlib.blake2b(_encode(content), digest_size=12).hexdigest()
        return cls(name, nodes, before, frames, silence, lasting)

    @property
    def timed(self) -> SilentKeys | LastingMatches | None:
        """The node whose rows wait for the watermark of their source partition; None without such a node."""
        return self.silence or self.lasting

    @property
    def switch(self) -> Switch | None:
        """The conditions of WHERE and UNTIL that the computation decides; None if its groups decide them."""
        node = self.before or self.lasting
        return None if node is None else node.switch

    @property
    def of_from(self) -> tuple[Expression, ...]:
        """The conditions of FROM that decide which events exist for edges."""
        node = self.before or self.lasting
        return () if node is None else node.of_from

    @property
    def single(self) -> bool:
        """Whether each event becomes at most one row, with the event's id."""
        return all(node.single for node in self.nodes)

    @property
    def has_state(self) -> bool:
        """Whether the rows depend on earlier events of the partition."""
        return any(node is not None for node in self._highest)

    @property
    def table_ids(self) -> tuple[str, ...]:
        """The joined tables, in order; a table that is joined twice is listed twice."""
        return tuple(node.table_id for node in self.nodes)

    @property
    def batch_micros(self) -> float:
        """Expected fixed time in each micro-batch, in microseconds."""
        return sum(node.batch_micros for node in (*self.nodes, *self._highest) if node is not None)

    @property
    def _highest(self) -> tuple[RowBefore | None, Frames | None, SilentKeys | LastingMatches | None]:
        return self.before, self.frames, self.timed


_encode = msgspec.json.Encoder().encode
