"""Segments of the constant tables: however they are merged and cut into pieces, the rows equal a dictionary's."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from grouping.store.constant_table import Segment, cut, net, unpacked_since
from grouping.store.segment_log import VersionSpan, segment_fields
from tests.unit.matching.matching import destination, entry

_CHANGES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), max_size=4, unique=True),
        st.lists(st.tuples(st.integers(0, 9), st.text(max_size=40)), max_size=6, unique_by=lambda row: row[0]),
    ),
    max_size=8,
)
"""For each version: names of removed destinations, and names and constants of added ones."""
_SINCE = st.lists(st.integers(0, 2**63 - 1), max_size=3).map(tuple)
"""Offsets by source partition."""


def _segment(gone: list[int], come: list[tuple[int, str]]) -> Segment:
    entries = [entry(name, ("STRING",), (text,), group=f"g_{name % 3}") for name, text in come]
    return Segment.of([destination(name) for name in [*gone, *(name for name, _ in come)]], entries)


def _rows(pieces: Iterable[Segment]) -> dict[str, str]:
    rows = [row for piece in pieces for table in piece.added.values() for row in table.to_pylist()]
    found = {"d_" + row["destination"].hex(): row["c0"] for row in rows}
    assert len(found) == len(rows)
    return found


@given(_CHANGES, st.integers(0, 8), st.integers(1, 3_000))
def test_merged_and_cut_segments_have_the_rows_of_a_dictionary(changes: list, middle: int, nbytes: int) -> None:
    """Old segments and new ones merged each for itself, in pieces of any size, give the same as all of them."""
    expected: dict[str, str] = {}
    segments = []
    for gone, come in changes:
        segments.append(_segment(gone, come))
        for name in gone:
            expected.pop(destination(name), None)
        expected |= {destination(name): text for name, text in come}
    assert expected == _rows(net(([one] for one in reversed(segments)), oldest=True))
    old, new = segments[:middle], segments[middle:]
    halves = [list(cut(net(([one] for one in reversed(half)), oldest=half is old), nbytes)) for half in (new, old)]
    assert expected == _rows(net(halves, oldest=True))


@given(_CHANGES.filter(bool), st.integers(1, 3_000))
def test_a_stored_segment_is_read_as_it_was(changes: list, nbytes: int) -> None:
    """From its bytes a piece comes back as it was; the last field is the segment's own and tells of the others."""
    segment = _segment(*changes[0])
    pieces = list(cut([segment], nbytes))
    stored = list(segment_fields(VersionSpan(3, 4), pieces))
    assert "3-4" == stored[-1][0]
    decoded = [Segment.decode(body) for _, body in stored]
    assert len(stored) - 1 == decoded[-1][1]
    assert _rows([segment]) == _rows(piece for piece, _ in decoded)
    assert set(segment.removed.to_pylist()) == {name for piece, _ in decoded for name in piece.removed.to_pylist()}


def test_what_was_stored_before_there_were_pieces_is_read() -> None:
    """A segment of two elements, as earlier versions wrote it, is one without further pieces."""
    segment = _segment([1], [(2, "x")])
    removed, blocks, _ = msgspec.msgpack.decode(segment.encode())
    old, more = Segment.decode(msgspec.msgpack.encode((removed, blocks)))
    assert 0 == more
    assert _rows([segment]) == _rows([old])


def test_no_piece_is_larger_than_asked_unless_one_row_is() -> None:
    """Rows are divided by their bytes, not by their number."""
    long = [(name, "x" * (20_000 if name == 5 else 10)) for name in range(10)]
    pieces = list(cut([_segment([], long)], 4_000))
    assert all(piece.nbytes <= 6_000 or piece.rows == 1 for piece in pieces)
    assert dict((destination(name), text) for name, text in long) == _rows(pieces)


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), _SINCE), max_size=4, unique_by=lambda row: row[0]), max_size=5))
def test_an_edge_block_keeps_where_each_entry_begins(changes: list) -> None:
    """Offsets of `since` survive merging, cutting and storing, whatever their numbers of partitions."""
    expected: dict[str, tuple[int, ...]] = {}
    segments = []
    for come in changes:
        entries = [entry(name, ("STRING",), ("x",), edge="enter", since=since) for name, since in come]
        segments.append(Segment.of([destination(name) for name, _ in come], entries))
        expected |= {destination(name): since for name, since in come}
    pieces = cut(net(([one] for one in reversed(segments)), oldest=True), 200)
    stored = (Segment.decode(body)[0] for _, body in segment_fields(VersionSpan(0, 1), pieces))
    found = {
        "d_" + row["destination"].hex(): unpacked_since(row["since"])
        for piece in stored
        for block, table in piece.added.items()
        if block.edge == "enter"
        for row in table.to_pylist()
    }
    assert expected == found
