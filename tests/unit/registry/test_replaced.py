"""The state that a CQ keeps when it is replaced."""

from __future__ import annotations

from types import SimpleNamespace

from gateway.model.inventory import Inventory
from gateway.model.loaded import Loaded
from gateway.model.records import Cq, Destination
from gateway.model.trigger_spec import TriggerSpec
from gateway.model.unit import CqKey, Unit
from gateway.registry.registry import Registry
from grouping.model.catalog import Stream
from grouping.model.group import ConstantRow
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import CreateCq
from grouping.plan.group import CompiledQuery, GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText

_STREAM, _GROUP, _SELECT = StreamId("s_1"), GroupId("g_1"), SelectId("s1")
_NAME = DestinationId("d_" + "0" * 24)
_DESTINATION = Destination(_NAME, _STREAM, _GROUP, _SELECT, "[]", "virtual", None, TriggerSpec())
_KEY = CqKey.of("alice", "q")


def test_a_virtual_cq_keeps_its_pauses() -> None:
    """Its reader may lag behind the pauses: events during a pause are not for it, even under a new text."""
    unit = Unit(Inventory())
    unit.sources.add_stream(Stream(_STREAM, "s", (), "t", "json", {"0": 0}, ""))
    unit.cqs[_KEY], unit.memberships[_NAME] = None, None
    old = Cq("q", CqText.cut("CREATE CQ q AS SELECT 1"), _NAME, 1_000, (0,), pauses=((2_000, 3_000), (4_000, None)))
    parts = GroupPlan(_GROUP, _STREAM, "", ()), SelectList(_SELECT, ())
    unit.put(_KEY, old, _DESTINATION, *parts)
    working = SimpleNamespace(unit=unit, inventory=unit.inventory)
    positions = SimpleNamespace(result_topics=None, shared_partitions=1, virtual_ends=lambda _: (7,))
    registry = Registry(Settings(), working, positions)  # type: ignore[arg-type]
    query = CompiledQuery(parts[0], ConstantRow((), ()), parts[1])
    statement, text = CreateCq("q", "", or_replace=True), CqText.cut("CREATE OR REPLACE CQ q AS SELECT 1")
    changed = registry.create(Loaded(unit), _KEY, text, statement, query, _NAME, 5_000).cq
    assert changed is not None
    assert ((2_000, 3_000), (4_000, 5_000)) == changed.pauses
    assert not changed.paused
