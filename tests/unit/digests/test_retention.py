"""Positions of a store that very many destinations read are forgotten when all have passed them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace

from gateway.model.membership import Membership
from gateway.model.records import Destination, TimedNote
from gateway.model.trigger_spec import TriggerSpec
from gateway.timers.pending_index import PendingIndex
from gateway.timers.retention import Retention
from grouping.digests.cursor import Cursor
from grouping.digests.match_places import MatchPlaces
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings

_STORE = bytes(12)


class _Readers:
    """The readers of the store, by their cursors."""

    def __init__(self, count: int) -> None:
        self.cursors = {DestinationId(f"d_{number}"): Cursor(next=8) for number in range(count)}
        self.looks: list[int] = []

    def readers(self, stores: Sequence[bytes]) -> list[list[DestinationId]]:
        """Return them."""
        return [list(self.cursors) for _ in stores]

    def readers_cursors(self, names: Sequence[DestinationId]) -> dict[DestinationId, Cursor]:
        """Return the cursors of some."""
        self.looks.append(len(names))
        return {name: self.cursors[name] for name in names}


def test_a_store_of_very_many_readers_is_looked_at_in_parts() -> None:
    """Some thousands at a time; positions stay that any of them needs, or whoever has begun to read meanwhile."""
    state, index = _Readers(6_000), PendingIndex()
    state.cursors[DestinationId("d_10")] = Cursor(next=8, held=(1,))
    state.cursors[DestinationId("d_20")] = Cursor(next=6)
    index.restore(_STORE, MatchPlaces(0, array("q", range(10))))
    stored = index.get(_STORE)
    assert stored is not None
    stored.readers = 6_000
    intake = SimpleNamespace(index=index, held=Counter(), reached={0: 7})
    retention = Retention(Settings(), None, state, intake)  # type: ignore[arg-type]
    destination = Destination(DestinationId("d_1"), "s", "g", "s", "[]", "shared", 0, TriggerSpec(1000, 0))  # type: ignore[arg-type]
    membership = Membership(destination, 0, timed=TimedNote(store=f"p_{_STORE.hex()}"))
    for _ in range(6_000):
        retention.release([(destination.destination_id, membership)], {})
    assert retention.step()
    state.cursors[DestinationId("d_new")] = Cursor(next=7)
    state.cursors[DestinationId("d_20")] = Cursor(next=9, held=(6,))
    while retention.step():
        assert len(stored.positions) == 10
    assert max(state.looks) <= 2_500
    assert [1, 6, 7, 8, 9] == list(stored.positions)
