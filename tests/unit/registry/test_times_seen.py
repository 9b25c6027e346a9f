"""The limit of separate windows of record times in a destination."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from gateway.model.inventory import Inventory
from gateway.model.loaded import Loaded
from gateway.model.membership import Membership
from gateway.model.records import Destination
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import Unit
from gateway.registry.times_seen import MOST_TIMES, TimesSeen
from grouping.digests.cursor import Window
from grouping.model.errors import InputError
from grouping.model.ids import DestinationId

_NAME = DestinationId("d_" + "0" * 24)
_DESTINATION = Destination(_NAME, "s", "g", "s", "[]", "shared", 0, TriggerSpec())  # type: ignore[arg-type]


class _Play:
    """A destination that CQs join, in one unit of work."""

    def __init__(self) -> None:
        self.membership = Membership(_DESTINATION, 0)
        unit = Unit(Inventory())
        unit.memberships[_NAME] = self.membership
        self._loaded = Loaded(unit)
        self.times = TimesSeen(SimpleNamespace(unit=unit))  # type: ignore[arg-type]

    def join(self, window: Window) -> None:
        """Let a CQ see a time."""
        self.times.check(self._loaded, window, _DESTINATION)
        start, expire = ("" if at_ms is None else at_ms for at_ms in window)
        self.membership.windows[f"{start},{expire}"] = 1


def test_times_apart_from_each_other_are_bounded() -> None:
    """Each separate window is a row of the table; a window that others cover, or that closes a gap, is accepted."""
    play = _Play()
    for number in range(MOST_TIMES):
        play.join((10 * number, 10 * number + 5))
    with pytest.raises(InputError, match="too many separate START/EXPIRE windows") as refused:
        play.join((-10, -5))
    assert refused.value.code == "quota-exceeded"
    play.join((2, 4))
    play.join((5, 10))
    play.join((-10, -5))
    play.join((None, 7))
    assert len(play.membership.seen) == MOST_TIMES - 1


def test_times_that_overlap_are_one_however_many() -> None:
    """Ten thousand CQs of a month each, created one after the other, cost no time to speak of."""
    play = _Play()
    began = time.process_time()
    for number in range(10_000):
        play.join((number, number + 1_000_000))
        play.join((None, number))
    assert time.process_time() - began < 5
    assert play.membership.seen == [(None, 1_009_999)]
