"""Notices of ends in batches: the catalog's records equal the notices under way, whatever came and went."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.end_notice import EndNotice
from gateway.model.inventory import Inventory
from gateway.model.records import Destination
from gateway.model.unit import Unit
from gateway.state import end_notices
from gateway.state.end_notices import EndNotices

_decode = msgspec.json.Decoder(list[EndNotice]).decode


class _WorkingCopyPart:
    """The parts of a working copy that notices need, in memory."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.unit = Unit(self.inventory)


def _notice(number: int, ended_ms: int = 5, *members: str) -> EndNotice:
    destination = Destination(f"d_{number}", "s", "g_1", "s1", "[]", "shared", 0)
    return EndNotice(destination, ended_ms, "expired", 7, "quotes", members=members)


def _notices() -> EndNotices:
    return EndNotices(_WorkingCopyPart())  # type: ignore[arg-type]  # without servers: nothing is read


@given(
    plays=st.lists(
        st.one_of(
            st.tuples(st.just("end"), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8)),
            st.tuples(st.sampled_from(["done", "written"]), st.integers(1, 6)),
        )
    )
)
def test_the_catalog_holds_what_is_under_way(plays: list[tuple[str, object]]) -> None:
    """Batches are written anew as their notices change, and are gone with the last; each incarnation has its notice."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(end_notices, "BATCH", 3)
        notices, now_ms = _notices(), 0
        catalog: dict[bytes, list[EndNotice]] = {}
        for what, some in plays:
            match what:
                case "end":
                    ended = []
                    for number, left in some:  # type: ignore[attr-defined]
                        now_ms += 1
                        ended.append(_notice(number, now_ms, *([f"m_{now_ms}"] if left else [])))
                    changes = notices.add(ended)
                case "done":
                    for notice in notices.next(some):  # type: ignore[arg-type]
                        notices.remove(notice)
                    changes = notices.changes()
                case _:
                    for notice in notices.next(some):  # type: ignore[arg-type]
                        notices.replace(msgspec.structs.replace(notice, written=True))
                    changes = notices.changes()
            for key, body in changes:
                if body is None:
                    catalog.pop(key, None)
                else:
                    catalog[key] = _decode(body)
            assert max(map(len, catalog.values()), default=1) in range(1, 4)
        recorded = sorted(map(repr, (notice for batch in catalog.values() for notice in batch)))
        assert recorded == sorted(map(repr, (*notices.open.values(), *notices.lingering.values())))


def test_those_that_wait_hold_up_no_others() -> None:
    """Notices are looked at in turn."""
    notices = _notices()
    notices.add([_notice(number) for number in range(5)])
    looks = [[int(one.destination.destination_id[2:]) for one in notices.next(2)] for _ in range(3)]
    assert looks == [[0, 1], [2, 3], [4, 0]]


def test_lives_of_a_destination_end_in_their_order() -> None:
    """The end of an incarnation waits for the end of the incarnation before; then a new one may begin at any time."""
    working = _WorkingCopyPart()
    notices = EndNotices(working)  # type: ignore[arg-type]  # without servers: nothing is read
    notices.add([_notice(1, 5), _notice(1, 7, "m_1"), _notice(1, 9)])
    first, leave, second = notices.next(3)
    assert [False, False, True] == [notices.held_up(one) for one in (first, leave, second)]
    assert {"d_1": 9} == working.inventory.ending
    notices.remove(first)
    assert not notices.held_up(second)
    assert {"d_1": 9} == working.inventory.ending
    notices.replace(msgspec.structs.replace(second, written=True))
    assert {} == working.inventory.ending
