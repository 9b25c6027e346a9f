"""A damaged segment of the constant tables is an error of ours, whatever its bytes are."""

from __future__ import annotations

import contextlib
import random

import pytest

from gateway.doctor.table_check import SegmentDamaged, check_segments
from grouping.model.group import ConstantRow
from grouping.store.constant_table import Block, Entry, Segment

_BLOCK = Block("g_1", ("STRING",), "s1", "shared")
_ENTRIES = [
    Entry(_BLOCK, f"d_{number:024x}", ConstantRow(("STRING",), (f"x{number}",)), number, 0) for number in range(9)
]
_BODY = Segment.of(["d_" + "f" * 24], _ENTRIES).encode()


def _check(body: bytes) -> None:
    check_segments("s_1", (Segment.decode(each)[0] for each in [body]))


def test_a_whole_segment_is_fine() -> None:
    """A segment as the gateway writes it passes."""
    _check(_BODY)


@pytest.mark.parametrize("seed", range(60))
def test_other_bytes_are_told_as_damage(seed: int) -> None:
    """A truncated segment and random bytes are errors; changed bytes too, unless they make a valid segment."""
    chosen = random.Random(seed)
    for body in (_BODY[: chosen.randrange(len(_BODY) - 1)], chosen.randbytes(50)):
        with pytest.raises(SegmentDamaged):
            _check(body)
    changed = bytearray(_BODY)
    for _ in range(8):
        changed[chosen.randrange(len(_BODY))] ^= 1 << chosen.randrange(8)
    with contextlib.suppress(SegmentDamaged):  # any other error would end the doctor
        _check(bytes(changed))
