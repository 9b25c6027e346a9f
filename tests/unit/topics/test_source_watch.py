"""The gateway's reaction to deleted topics."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

from gateway.kafka import ExistingTopic
from gateway.model.inventory import Inventory
from gateway.model.unit import Unit
from gateway.topics.source_watch import SourceWatch
from grouping.model.catalog import Stream
from grouping.model.ids import GroupId, StreamId
from grouping.model.table import Table
from grouping.settings.settings import Settings

_MINUTE = 60_000


class _Topics:
    """The topic of the stream, and perhaps the table's."""

    def __init__(self) -> None:
        self.of_table: ExistingTopic | None = ExistingTopic("b", 1, 1)

    def forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return the forms of the existing topics."""
        known = {"t": ExistingTopic("a", 1, 1), "p": self.of_table}
        return {topic: form for topic in topics if (form := known.get(topic)) is not None}


def test_a_dropped_table_is_lost_with_its_topic() -> None:
    """Batches stop waiting for a topic that is away for a minute, or is replaced; not for a topic that comes back."""
    inventory, topics = Inventory(), _Topics()
    unit = Unit(inventory)
    unit.sources.add_stream(Stream(StreamId("s_1"), "s", (), "t", "json", {"0": 0}, "", topic_id="a"))
    unit.sources.put_table(Table("t_1", "p", (), ("k",), "p", "json", "", topic_id="b"))
    unit.sources.remove_table("t_1", [(StreamId("s_1"), GroupId("g_1"))])
    working = SimpleNamespace(inventory=inventory, unit=unit)
    watch = SourceWatch(Settings(), working, topics)  # type: ignore[arg-type]

    def lost(now_ms: int, form: ExistingTopic | None) -> bool:
        topics.of_table = form
        changed = bool(watch.step(now_ms).catalog)
        assert changed == inventory.dropped_tables["t_1"].lost
        return changed

    here, another = ExistingTopic("b", 1, 1), ExistingTopic("c", 1, 1)
    assert [False, False] == [lost(_MINUTE, here), lost(2 * _MINUTE, None)]
    assert [False, False] == [lost(3 * _MINUTE - 1000, None), lost(3 * _MINUTE, here)]
    assert [False, False, True] == [lost(at * _MINUTE, form) for at, form in ((4, None), (4.5, another), (5, another))]


def test_the_catalog_keeps_the_first_schema_id() -> None:
    """The id that a task noted becomes part of the stream, once."""
    asked: list[list[str]] = []

    def schema_ids(streams: list[str]) -> dict[str, int]:
        asked.append(streams)
        return {"s_2": 7} if len(asked) > 1 else {}

    inventory = Inventory()
    unit = Unit(inventory)
    for name, framing in (("s_1", "raw"), ("s_2", "confluent")):
        unit.sources.add_stream(Stream(StreamId(name), name, (), "t", "avro", {"0": 0}, "", "{}", framing, "a"))
    working = SimpleNamespace(inventory=inventory, unit=unit, evaluator=SimpleNamespace(schema_ids=schema_ids))
    watch = SourceWatch(Settings(), working, _Topics())  # type: ignore[arg-type]
    assert [0, 1, 0] == [len(watch.step(at * _MINUTE).catalog) for at in (1, 2, 3)]
    assert ([["s_2"], ["s_2"]], 7) == (asked, inventory.streams[StreamId("s_2")].schema_id)
