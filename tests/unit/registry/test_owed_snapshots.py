"""Snapshots that destinations are owed: stored with the edges, and noted for the evaluator."""

from __future__ import annotations

import msgspec

from gateway.model.inventory import Inventory
from gateway.model.membership import Membership
from gateway.model.records import Destination, DueSnapshot, EdgeSpec
from gateway.model.stored_form import pack_membership, unpack_membership
from gateway.model.table_entries import snapshot_note
from gateway.model.unit import Unit
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.store.constant_table import Segment, unpacked_since
from grouping.store.snapshot_notes import SnapshotNote

_SINCE = (7, 0, 2**40)
_DUE = EdgeSpec("changes", DueSnapshot("0f", "alice", "Mine", 5), _SINCE)


def _membership(edges: EdgeSpec) -> Membership:
    name = DestinationId("d_" + "0f" * 12)
    ids = StreamId("c_t_1"), GroupId("g_1"), SelectId("s1")
    return Membership(Destination(name, *ids, '["BIGINT",1]', "shared", 4, edges=edges), 3, {",": 1})


def test_a_note_has_the_entry_of_its_destination_alone() -> None:
    """The evaluator learns constants, SELECT list and beginning of the CQ from the note."""
    membership = _membership(_DUE)
    note = snapshot_note(membership)
    assert note is not None
    assert (note.stream_id, note.subscriber, note.name, note.at_ms) == ("c_t_1", "alice", "Mine", 5)
    assert (note.since, note.mode, note.partition) == (_SINCE, "shared", 4)
    assert SnapshotNote.unpack(note.pack()) == note
    segment, more = Segment.decode(note.segment)
    [(block, table)] = segment.added.items()
    assert (more, block.edge, unpacked_since(table["since"][0].as_py())) == (0, "changes", _SINCE)
    assert table["destination"].to_pylist() == [bytes.fromhex("0f" * 12)]
    assert snapshot_note(_membership(EdgeSpec("changes", "0f", _SINCE))) is None


def test_a_settled_snapshot_leaves_the_edges() -> None:
    """The destination has the same id and the same beginning without the debt; a second call changes nothing."""
    membership, unit = _membership(_DUE), Unit(Inventory())
    name = membership.destination.destination_id
    unit.memberships[name] = membership
    moved = unit.move_edges(name, settled=True)
    assert moved is not None
    assert moved.edges == EdgeSpec("changes", "0f", _SINCE)
    assert moved.edges.id_text == _DUE.id_text
    assert unit.move_edges(name, settled=True) is None


def test_edges_without_snapshot_are_stored_as_before() -> None:
    """The stored edges of other CQs have the same bytes as without snapshots."""
    assert msgspec.json.encode(EdgeSpec("enter", "0f", (5,))) == b'["enter","0f",[5]]'
    for edges in (_DUE, EdgeSpec("changes", "0f", _SINCE)):
        membership = _membership(edges)
        stored = unpack_membership(membership.destination.destination_id, pack_membership(membership))
        assert stored.destination == membership.destination
