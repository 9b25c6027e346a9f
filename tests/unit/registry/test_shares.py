"""Shares of subscribers of the topics of dedicated and virtual destinations."""

from __future__ import annotations

from types import SimpleNamespace

from gateway.model.inventory import Inventory
from gateway.model.unit import Unit
from gateway.registry.placement import DestinationFamily, DestinationRequest, Placement
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId, Subscriber
from grouping.settings.settings import LimitSettings, Settings

_FAMILY: DestinationFamily = DestinationFamily(
    StreamId("s_1"),
    GroupId("g_1"),
    SelectId("s1"),
    None,
    ("all", (), 0, False),
    "",  # type: ignore[arg-type]
)


def _request(number: int, subscriber: str) -> DestinationRequest:
    return DestinationRequest(DestinationId(f"d_{number}"), _FAMILY, "[]", Subscriber(subscriber))


def test_a_unit_asks_for_no_more_topics_than_each_share_has() -> None:
    """A subscriber's existing topics count, deleted ones do not, and others have their own quota."""
    inventory = Inventory()
    for number in range(4):
        inventory.found_topic(f"d_{number}", "alice")
    inventory.found_topic("g_9", "alice")
    working = SimpleNamespace(unit=Unit(inventory), inventory=inventory)
    topics = {f"cq.results.{name}" for name in ("d_0", "d_1", "g_9")}
    positions = SimpleNamespace(result_topics=topics, shared_partitions=1)
    settings = Settings(limits=LimitSettings(dedicated_per_subscriber=4))
    placement = Placement(settings, working, positions)  # type: ignore[arg-type]
    requests = [_request(number, "alice" if number < 15 else "bob") for number in range(10, 20)]
    names = [each.destination_id for each in requests]
    assert ["d_10", "d_11", *(f"d_{number}" for number in range(15, 19))] == placement.within_shares(names, requests)
    assert {"d_0", "d_1", "g_9"} == inventory.topic_founders.keys()
    assert {("topic-founders", "d_2"): None, ("topic-founders", "d_3"): None} == working.unit.fields
