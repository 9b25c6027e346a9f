"""The stored form of CQs and destinations in Redis: nothing is lost, and few bytes are taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.membership import Membership
from gateway.model.records import Cq, Destination, EdgeSpec, TimedNote
from gateway.model.stored_form import (
    decode_cq,
    pack_cq,
    pack_key,
    pack_membership,
    unpack_cq,
    unpack_key,
    unpack_membership,
)
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey
from grouping.statements.cq_text import CqText

_NAME = "d_" + "0f" * 12
_IDS = ("s_" + "ab" * 6, "g_" + "cd" * 12, "s" + "ef" * 12)
_TEXT = (
    """CREATE CQ "{}" AS SELECT a FROM s WHERE b = 'it''s' AND c < -1.5e3 AND d IN (1, .5, 'x') EXPIRE AFTER '1 day';"""
)

_names = st.sampled_from(["intel", "Intel", "Ünter 'x'", "a:b/1", "select", "é" * 40])
_texts = _names.map(_TEXT.format) | st.sampled_from(
    ["", "CREATE CQ a SELECT 1", "create or replace cq A as select '", "CREATE CQ select AS SELECT b", "5" * 5000]
)
_times = st.none() | st.integers(0, 2**42)


@given(_texts | st.text())
def test_a_cut_text_is_the_text(text: str) -> None:
    """Whatever the text, its pieces and literals put together are that text again."""
    cut = CqText.cut(text)
    assert text == str(cut)
    assert len(cut.template.pieces) == len(cut.literals) + 1


@given(st.text(), st.text())
def test_no_name_breaks_a_key(subscriber: str, name: str) -> None:
    """A CQ's identity comes back as it was, whatever characters its names have."""
    key = CqKey(subscriber, name)
    assert key == unpack_key(pack_key(key))


@given(
    _names,
    _texts,
    _times,
    _times,
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 9), _times), max_size=2),
    st.sampled_from([0, 1_764_000_000_001]),
)
def test_a_cq_is_kept_whole(
    name: str,
    text: str,
    start: int | None,
    expire: int | None,
    paused: bool,
    pauses: list[tuple[int, int | None]],
    joined: int,
) -> None:
    """A CQ comes back as it was, whether its name and text are usual or not."""
    cut = CqText.cut(text)
    cq = Cq(name, cut, _NAME, 1_764_000_000_000, (1, 2), start, expire, paused, tuple(pauses), joined)
    stored = decode_cq(pack_cq(name.casefold(), cq))
    assert cut.template.template_id[2:] == stored.template.hex()
    assert cq == unpack_cq(name.casefold(), stored, cut.template, stored.destination_id)


@given(
    st.sampled_from(
        [("s_" + "ab" * 6, "g_" + "cd" * 12, "s" + "ef" * 12), ("s_1", "g_bound", "s0"), ("s_AB", "g", "s")]
    ),
    st.sampled_from(["shared", "dedicated", "virtual", "pending"]),
    st.sampled_from([TriggerSpec(), TriggerSpec(60_000, 5), TriggerSpec(cron="0 8 * * *", zone="UTC")]),
    st.sampled_from(["", "shared"]),
    st.dictionaries(st.sampled_from([",", "5,", ",7", "5,7"]), st.integers(1, 3)),
    st.integers(0, 2),
    st.sampled_from([TimedNote(), TimedNote(((1, 2, [(None, 5)]),), 7, 8, 9, "p_1", 3)]),
    st.sampled_from([None, EdgeSpec("enter", "0f"), EdgeSpec("both", "0f", (5, 2**62))]),
)
def test_a_destination_is_kept_whole(
    ids: tuple[str, str, str],
    mode: str,
    trigger: TriggerSpec,
    word: str,
    windows: dict[str, int],
    paused: int,
    timed: TimedNote,
    edges: EdgeSpec | None,
) -> None:
    """A destination and the knowledge of its members come back as they were."""
    destination = Destination(_NAME, *ids, '["BIGINT",1]', mode, 7, trigger, word=word, edges=edges)
    membership = Membership(destination, 5, windows, paused, timed)
    assert membership == unpack_membership(_NAME, pack_membership(membership))


def test_a_usual_cq_is_small() -> None:
    """A CQ of a known shape takes hardly more than its literals and ids."""
    text = CqText.cut("CREATE CQ \"q123456\" AS SELECT a FROM quotes WHERE symbol = 'S00000' AND price < 123.456")
    assert len(pack_cq("q123456", Cq("q123456", text, _NAME, 1_764_000_000_000, 4711))) <= 64
    destination = Destination(_NAME, *_IDS, '["STRING","S00000","DOUBLE",123.456]', "shared", 31)
    assert len(pack_membership(Membership(destination, 1_000_000, {",": 1}))) <= 96
