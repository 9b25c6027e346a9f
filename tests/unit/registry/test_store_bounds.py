"""The bounds of a store of groups: packed once for a unit of work, and only where a bound came or went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model import membership
from gateway.model.inventory import Inventory
from gateway.model.records import Cq, Destination, feed_of
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey, Unit
from gateway.model.unit_outcome import segments
from grouping.digests.cursor import Window
from grouping.model.catalog import Stream
from grouping.model.panes import pack_bounds, unpack_bounds
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import CqText

_PARTS = (GroupPlan("g_1", "s_1", "", ()), SelectList("s1", ()))
_NONE: Window = (None, None)


def _destination(trigger: TriggerSpec) -> Destination:
    name = f"d_{trigger.every_ms:012x}{trigger.phase_ms:012x}"
    return Destination(name, "s_1", "g_1", "s1", "[]", "shared", 0, trigger, slots=0)


class _Registry:
    """A store with readers that come and go in units of work; the table follows the segments alone."""

    def __init__(self) -> None:
        self._unit = Unit(Inventory())
        self._unit.sources.add_stream(Stream("s_1", "s", (), "t", "json", {"0": 0}, ""))
        self._store = feed_of(_destination(TriggerSpec(1000))).destination_id
        self.readers: dict[CqKey, tuple[Cq, TriggerSpec]] = {}
        self.table: bytes | None = None
        self.begin()

    def begin(self) -> None:
        """Begin the next unit with all that the last one left."""
        last, self._unit = self._unit, Unit(self._unit.inventory)
        self._unit.cqs = dict.fromkeys((CqKey("a", str(number)) for number in range(4)), None)
        self._unit.cqs |= {key: cq for key, (cq, _) in self.readers.items()}
        self._unit.memberships = {self._store: None} | last.memberships

    def put(self, number: int, trigger: TriggerSpec, window: Window = _NONE, *, paused: bool = False) -> None:
        """Create or replace a reader."""
        key, home = CqKey("a", str(number)), _destination(trigger)
        self._unit.memberships.setdefault(home.destination_id, None)
        cq = Cq(key.name, CqText.cut(""), home.destination_id, 0, 0, *window, paused)
        self._unit.put(key, cq, home, *_PARTS)
        self.readers[key] = (cq, trigger)

    def drop(self, number: int) -> None:
        """Drop a reader, if it is there."""
        if self.readers.pop(key := CqKey("a", str(number)), None) is not None:
            self._unit.remove(key)

    def commit(self) -> int:
        """Carry the unit's segments out; return how many rows they have."""
        changes = segments(self._unit)
        for segment in changes.values():
            self.table = None if len(segment.removed) else self.table
            for rows in segment.added.values():
                (self.table,) = rows["bounds"].to_pylist()
        self.begin()
        return sum(segment.rows for segment in changes.values())

    @property
    def expected(self) -> list[tuple[int, int]]:
        """The bounds of all readers that are not paused."""
        live = [(cq, trigger) for cq, trigger in self.readers.values() if not cq.paused]
        instants = [(0, at_ms) for cq, _ in live for at_ms in cq.window if at_ms is not None]
        return unpack_bounds(pack_bounds([*instants, *(trigger.bound for _, trigger in live)]))


def test_bounds_are_packed_once_and_only_where_one_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store may have a hundred thousand readers; a CREATE whose tick and times others have packs nothing."""
    packed: list[int] = []

    def counted(bounds: object) -> bytes:
        packed.append(1)
        return pack_bounds(bounds)  # type: ignore[arg-type]

    monkeypatch.setattr(membership, "pack_bounds", counted)
    registry = _Registry()
    registry.put(0, TriggerSpec(1000, 10))
    registry.put(1, TriggerSpec(1000, 20), (None, 70_005))
    assert 1 == registry.commit() == len(packed)
    registry.put(2, TriggerSpec(1000, 10))
    assert 0 == registry.commit()
    registry.drop(2)
    assert 0 == registry.commit()
    assert 1 == len(packed)
    registry.put(2, TriggerSpec(1000, 30))
    registry.put(3, TriggerSpec(1000, 40))
    assert 2 == registry.commit()
    assert 2 == len(packed)
    assert registry.expected == unpack_bounds(registry.table or b"")


_READER = st.integers(0, 3)
_TRIGGER = st.sampled_from([TriggerSpec(1000, 10), TriggerSpec(1000, 20), TriggerSpec(4000)])
_WINDOW = st.sampled_from([_NONE, (None, 9), (5, None), (5, 9)])


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), _READER, _TRIGGER, _WINDOW, st.booleans()),
            st.tuples(st.just("drop"), _READER),
            st.just(("commit",)),
        ),
        max_size=20,
    )
)
def test_the_table_has_the_bounds_of_all_live_readers(steps: list[tuple]) -> None:
    """Whoever comes, is replaced, pauses and goes in units of work, the store's row has the bounds of who is there."""
    registry = _Registry()
    for step in [*steps, ("commit",)]:
        match step:
            case ("put", number, trigger, window, paused):
                registry.put(number, trigger, window, paused=paused)
            case ("drop", number):
                registry.drop(number)
            case _:
                registry.commit()
                assert registry.expected == unpack_bounds(registry.table or b"")
