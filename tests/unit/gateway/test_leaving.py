"""Events owed to departed members: every event that counts is in the table once, whatever comes after."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.departures import without
from gateway.model.inventory import Inventory
from gateway.model.records import Cq, Destination
from gateway.model.unit import CqKey, Unit
from gateway.model.unit_outcome import segments
from grouping.digests.cursor import Window
from grouping.model.catalog import Stream
from grouping.plan.group import GroupPlan, SelectList
from grouping.statements.cq_text import CqText

_NAME = "d_" + "0f" * 12
_DESTINATION = Destination(_NAME, "s_1", "g_1", "s1", "[]", "shared", 0)
_PARTS = (GroupPlan("g_1", "s_1", "", ()), SelectList("s1", ()))
_TIMES, _OFFSETS = range(-1, 6), range(8)


@st.composite
def _windows(draw: st.DrawFn) -> Window:
    start = draw(st.none() | st.integers(0, 4))
    return (start, draw(st.none() | st.integers((0 if start is None else start) + 1, 5)))


def _in(at: int, window: Window) -> bool:
    start, expire = window
    return (start is None or at >= start) and (expire is None or at < expire)


@given(st.lists(_windows(), max_size=4), st.lists(_windows(), max_size=4))
def test_what_others_lack(windows: list[Window], others: list[Window]) -> None:
    """A time of a window is in its rest, unless the others have the time too."""
    left = without(windows, others)
    for at in _TIMES:
        expected = 0 if any(_in(at, other) for other in others) else sum(_in(at, window) for window in windows)
        assert expected == sum(_in(at, window) for window in left)


class _Play:
    """A destination's members come, pause, leave and are evaluated; the table follows the segments alone."""

    def __init__(self) -> None:
        self.unit = Unit(Inventory())
        self.unit.sources.add_stream(Stream("s_1", "s", (), "t", "json", {"0": 0}, ""))
        self.cqs: dict[CqKey, Cq] = {}
        self.ending: list[tuple[Window, int]] = []
        self._table: list[tuple[tuple[int, ...], Window]] = []
        self._begin()

    def _begin(self) -> None:
        membership = self.unit.memberships.get(_NAME)
        self.unit = Unit(self.unit.inventory)
        self.unit.memberships[_NAME] = membership
        self.unit.cqs = {CqKey("a", str(number)): self.cqs.get(CqKey("a", str(number))) for number in range(3)}

    def put(self, number: int, window: Window, *, paused: bool) -> None:
        key = CqKey("a", str(number))
        cq = self.cqs[key] = Cq(key.name, CqText.cut(""), _NAME, 0, 0, *window, paused)
        self.unit.put(key, cq, _DESTINATION, *_PARTS)

    def leave(self, number: int, end: int | None) -> None:
        key = CqKey("a", str(number))
        if (cq := self.cqs.pop(key, None)) is not None:
            self.unit.remove(key, () if end is None else (end,))
            if end is not None and not cq.paused:
                self.ending.append((cq.window, end))

    def evaluate(self, end: int) -> None:
        self.unit.retire(_DESTINATION, (end,))
        self.ending = [each for each in self.ending if each[1] > end]

    def commit(self) -> None:
        self.unit.inventory.free_numbers.setdefault("s_1", []).extend(number for _, number in self.unit.freed_numbers)
        for segment in segments(self.unit).values():
            if len(segment.removed):
                self._table.clear()
            for block, rows in segment.added.items():
                for row in rows.to_pylist():
                    self._table.append((block.until, (row["start_ms"], row["expire_ms"])))
        self._begin()

    def check(self) -> None:
        taken = self.unit.inventory.next_numbers.get("s_1", 0) - len(self.unit.inventory.free_numbers.get("s_1", []))
        assert bool(self.cqs) == taken - self.unit.inventory.vacant["s_1"], "each destination has a number"
        live = [cq.window for cq in self.cqs.values() if not cq.paused]
        for at in _TIMES:
            for offset in _OFFSETS:
                counts = any(_in(at, window) for window in live)
                counts = counts or any(_in(at, window) and offset < end for window, end in self.ending)
                found = sum(_in(at, window) and (not until or offset < until[0]) for until, window in self._table)
                assert int(counts) == found, (at, offset, self._table)


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 2), _windows(), st.booleans()),
            st.tuples(st.just("drop"), st.integers(0, 2), st.integers(0, 2)),
            st.tuples(st.just("expire"), st.integers(0, 2)),
            st.tuples(st.just("evaluate"), st.integers(0, 7)),
            st.just(("commit",)),
        ),
        max_size=20,
    )
)
def test_every_event_that_counts_is_in_the_table_once(plays: list[tuple[object, ...]]) -> None:
    """An event counts for present members, and for members dropped after its publication, until it is evaluated."""
    play, end = _Play(), 1
    for what, *rest in plays:
        match what, rest:
            case "put", [int(number), tuple(window), bool(paused)]:
                play.put(number, window, paused=paused)  # type: ignore[arg-type]
            case "drop", [int(number), int(more)]:
                end += more
                play.leave(number, end)
            case "expire", [int(number)]:
                play.leave(number, None)
            case "evaluate", [int(upto)]:
                play.evaluate(min(upto, end))
            case _:
                play.commit()
                play.check()
    play.commit()
    play.check()
    if not (play.cqs or play.ending):
        assert not play.unit.inventory.leaving
