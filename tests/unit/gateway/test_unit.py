"""The memory of a unit of work is freed with its last reference."""

from __future__ import annotations

import gc
import weakref

from gateway.model.inventory import Inventory
from gateway.model.unit import Unit


def test_a_unit_is_in_no_cycle() -> None:
    """A unit holds thousands of CQs, and the cycle collector runs seldom, as it stops the gateway for half a second."""
    gc.disable()
    try:
        unit = Unit(Inventory())
        gone = weakref.ref(unit)
        del unit
        assert gone() is None
    finally:
        gc.enable()
