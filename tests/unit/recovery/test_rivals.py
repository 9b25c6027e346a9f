"""Signs of life of gateways with different Redis servers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gateway.state.recovery.rivals import Rival, Sign
from grouping.settings.settings import Settings
from grouping.store.lease import Lease

_HOLDER = "elsewhere/7/0a1b2c3d"


def _rival(*beats: tuple[float, int]) -> Rival:
    """Return a gateway of another machine, with signs seen at given seconds."""
    (first, beat), *others = beats
    rival = Rival(Sign("r", _HOLDER, 3, beat), first)
    for seconds, number in others:
        rival.note(Sign("r", _HOLDER, 3, number), seconds)
    return rival


def test_a_sign_that_goes_on_is_of_a_living_gateway() -> None:
    """Three changes tell of life; fewer may be the last signs of a gateway without its lease."""
    assert _rival((0, 5), (0.2, 5), (1, 6), (2, 7), (3, 8)).alive
    assert not _rival((0, 5), (1, 6), (2, 7)).alive


def test_a_sign_that_stands_still_is_of_a_gateway_that_is_gone() -> None:
    """Four seconds count from the last change, not from the first look."""
    rival = _rival((0, 5), (3, 6), (6, 6))
    assert (False, True) == (rival.gone(6.9), rival.gone(7.0))


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for() -> None:
    """The gateway died a moment ago: its sign tells its process number."""
    holder = Lease(Settings(), "gateway").token
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert not Rival(Sign("r", holder), 0.0).gone(0.1)
    assert Rival(Sign("r", holder.replace(f"/{os.getpid()}/", f"/{dead.pid}/")), 0.0).gone(0.1)


def test_a_gateway_with_a_higher_term_has_succeeded() -> None:
    """Exactly one of two gateways with different Redis servers goes on; a lease decides between two with one Redis."""
    signs = [Sign(redis, f"host/{pid}/x", term) for redis in "rs" for pid in (1, 2) for term in (4, 5)]
    for one in signs:
        for other in signs:
            ends = one.is_succeeded_by(other) + other.is_succeeded_by(one)
            same = (one.term, one.holder) == (other.term, other.holder)
            assert ends == (one.redis != other.redis and not same), (one, other)
    assert Sign("r", "host/2/x", 4).is_succeeded_by(Sign("s", "host/1/x", 5))


@pytest.mark.parametrize("text", ["", "x", "[]", '{"redis": 5}', "{}"])
def test_a_text_of_another_form_is_of_nobody(text: str) -> None:
    """Somebody else may commit offsets of the group with metadata of any kind."""
    assert Sign.decode(text).holder == ""
