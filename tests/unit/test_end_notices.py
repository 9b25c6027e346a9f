"""Notices of ends in sheaves: what the catalog was told is what is under way, whatever came and went."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import end_notices
from gateway.end_notices import EndNotices
from gateway.records import Destination, EndNotice, TimedNote, TriggerSpec
from gateway.unit import Unit

_decode = msgspec.json.Decoder(list[EndNotice]).decode


def _notice(number: int, born_ms: int = 0) -> EndNotice:
    trigger = TriggerSpec(1000) if born_ms else TriggerSpec()
    destination = Destination(f"d_{number}", "s", "g_1", "s1", "[]", "shared", 0, trigger)
    return EndNotice(destination, 5, "expired", 7, "quotes", timed=TimedNote(born_ms=born_ms))


@given(
    plays=st.lists(
        st.one_of(
            st.tuples(st.just("end"), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=8)),
            st.tuples(st.sampled_from(["done", "written"]), st.integers(1, 6)),
        )
    )
)
def test_the_catalog_holds_what_is_under_way(plays: list[tuple[str, object]]) -> None:
    """Sheaves are written anew as their notices change, and are gone with the last; a new end replaces an older one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(end_notices, "_SHEAF", 3)
        notices = EndNotices(Unit())  # type: ignore[arg-type]  # without servers: nothing is read
        catalog: dict[bytes, list[EndNotice]] = {}
        for what, some in plays:
            match what:
                case "end":
                    changes = notices.add([_notice(*each) for each in some])  # type: ignore[attr-defined]
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
        told = sorted(map(repr, (notice for sheaf in catalog.values() for notice in sheaf)))
        assert told == sorted(map(repr, (*notices.open.values(), *notices.lingering.values())))


def test_those_that_wait_hold_up_no_others() -> None:
    """Notices are looked at in turn."""
    notices = EndNotices(Unit())  # type: ignore[arg-type]  # without servers: nothing is read
    notices.add([_notice(number) for number in range(5)])
    looks = [[int(one.destination.destination_id[2:]) for one in notices.next(2)] for _ in range(3)]
    assert looks == [[0, 1], [2, 3], [4, 0]]
