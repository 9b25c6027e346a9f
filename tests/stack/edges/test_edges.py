"""Edges through the real servers: CQs come, change and go, and each edge is reported once."""

from __future__ import annotations

from tests.stack.digests.ticks import digests
from tests.stack.edges.machines import Machines
from tests.stack.lab import Lab

_EVENTS = 300


def test_edges_begin_with_their_cq(lab: Lab) -> None:
    """CQs of one predicate begin at different times, are paused, replaced, dropped and created again."""
    machines = Machines(lab, 42)
    first = machines.watch("first", "ENTER", 90)
    machines.watch("leaves", "EXIT", 90)
    machines.watch("both", "ENTER OR EXIT", 88.5, ("room", "device"))
    machines.publish(_EVENTS)
    later = machines.watch("later", "ENTER", 90)
    stays = machines.watch("stays", "ENTER OR EXIT", 90, until=88.5)
    machines.watch("stays by a computed value", "ENTER OR EXIT", 90, until=88.5, value="temp + 0")
    others = [machines.watch(f"stays until {until}", "ENTER OR EXIT", 91, until=until) for until in (80.5, 91)]
    assert {stays.created["group"]} == {other.created["group"] for other in others} != {first.created["group"]}
    assert first.created["group"] == later.created["group"]
    assert first.created["destination"]["id"] != later.created["destination"]["id"]
    machines.publish(_EVENTS)
    for each in (first, stays):
        machines.pause(each, paused=True)
    machines.publish(_EVENTS)
    for each in (first, stays):
        machines.pause(each, paused=False)
    machines.replace(later, "ENTER OR EXIT", 91)
    machines.publish(_EVENTS)
    machines.drop(first)
    machines.publish(_EVENTS)
    machines.watch("first", "ENTER", 90)
    machines.publish(_EVENTS)
    machines.check()
    computations = lab.client.result("SHOW COMPUTATIONS LIKE 'j_%'", lab.subscriber())["computations"]
    texts = {each["text"].removeprefix(machines.source.name) for each in computations}
    computed = " WHERE (temp + ?) > ? EMIT BY device UNTIL (temp + ?) < ?"
    assert {" EMIT BY device", " EMIT BY device, room", computed} == texts


def test_the_trigger_of_a_cq_with_edges_changes(lab: Lab) -> None:
    """ALTER CQ keeps the beginning of the edges; a digest has the edges between two ticks."""
    machines = Machines(lab, 7)
    made = machines.watch("hot", "ENTER OR EXIT", 90, clauses="EVERY '1 second' DO PUBLISH SHARED")
    assert {"emit": "enter or exit", "by": ["device"]}.items() <= made.created["trigger"].items()
    machines.publish(_EVENTS)
    machines.source.fence()
    wanted = sorted((values.values["n"], edge) for position, edge in made.edges(machines.source.events)
                    for place, values in machines.source.events if place == position)  # fmt: skip

    def rows() -> list[tuple[int, str]]:
        return sorted((row["n"], row["_edge"]) for digest in digests(lab, made.created) for row in digest.row["rows"])

    lab.results.until(lambda: len(rows()) >= len(wanted), "all edges in digests")
    assert wanted == rows()
    altered = lab.client.result("ALTER CQ \"hot\" SET EVERY '2 seconds'", lab.subscriber())
    assert {"emit": "enter or exit", "every": "PT2S"}.items() <= altered["trigger"].items()
    lab.results.follow(altered["destination"])
    before = machines.published
    machines.publish(_EVENTS)
    machines.source.fence()
    events = machines.source.events
    later = [(place, edge) for place, edge in made.edges(events) if place in {one for one, _ in events[before:]}]

    def later_rows() -> int:
        return sum(len(digest.row["rows"]) for digest in digests(lab, altered))

    lab.results.until(lambda: later_rows() >= len(later), "the edges behind ALTER")
    assert len(later) == later_rows()
