"""AT MOST through the real servers: results, replies, ends, snapshots, and the SDK."""

from __future__ import annotations

import json

from gateway.sdk import connect
from gateway.sdk.results import Match, Throttle
from tests.queries import Event
from tests.stack.edges.throttled import Alarms
from tests.stack.lab import Lab
from tests.stack.lab_table import LabTable
from tests.stack.server import Stack

_BEGIN_MS = 1_767_225_600_000


def test_results_beyond_the_limit_are_left_out(lab: Lab) -> None:
    """Matches and edges, shared and dedicated: each result has the number of those left out; then comes the end."""
    alarms = Alarms(lab)
    made = alarms.watch("one", 90, 1, 10)
    assert {"kind": "change", "at_most": {"results": 1, "every": "PT10M", "by": ["device"]}} == made["trigger"]
    assert "shared" == made["destination"]["mode"]
    others = [
        alarms.watch("two", 90, 2, 10, publish="DEDICATED"),
        alarms.watch("longer", 90, 1, 30),
        alarms.watch("edges", 90, 1, 30, emit="EMIT ON ENTER BY device"),
    ]
    assert made["group"] == others[0]["group"] == others[1]["group"]
    assert 4 == len({each["destination"]["id"] for each in (made, *others)})
    alarms.publish(400)
    alarms.check()
    alarms.watch("later", 90, 1, 10, emit="EMIT ON ENTER BY device")
    alarms.publish(200)
    alarms.end()


def test_equal_queries_share_their_results(lab: Lab) -> None:
    """The second CQ joins the destination, and its interval: it gets what the destination gets from then on."""
    source = lab.stream("device STRING, temp INT")
    text = f"SELECT temp FROM {source.name} WHERE device = 'a'"
    first = lab.create("first", text, clauses="AT MOST 1 EVERY '1 day'")
    source.publish_values(b'{"device": "a", "temp": 1}', b'{"device": "a", "temp": 2}')
    lab.results.until(lambda: len(lab.results.of(first["destination"])) == 1, "the first result")
    second = lab.create("second", text, lab.subscriber("bob"), clauses="AT MOST 1 EVERY 'PT24H'", follow=False)
    assert first["destination"]["id"] == second["destination"]["id"]
    other = lab.create("other", text, clauses="AT MOST 2 EVERY '1 day'")
    assert other["destination"]["id"] != first["destination"]["id"]
    source.publish_values(*(b'{"device": "a", "temp": %d}' % temp for temp in (3, 4, 5)))
    lab.results.until(lambda: len(lab.results.of(other["destination"])) == 2, "two results")
    source.fence()
    lab.results.drain()
    assert [1] == [one.row["temp"] for one in lab.results.of(first["destination"])]
    explained = lab.client.result("""EXPLAIN CQ "first" FOR '{"device": "a"}'""", lab.subscriber())
    assert (True, None) == (explained["event"]["matches"], explained["event"]["delivered"])
    lab.drop("first")
    lab.results.until(lambda: lab.results.of(first["destination"])[-1].kind == "cq.leave", "the leave")


def test_a_snapshot_and_changes(lab: Lab) -> None:
    """Rows of a snapshot count as results; the record after them is no result."""
    table = LabTable(lab, "symbol STRING PRIMARY KEY, industry STRING")
    table.put({"symbol": "A", "industry": "x"}, {"symbol": "B", "industry": "x"}, {"symbol": "C", "industry": "y"})
    made = lab.create(
        "watched",
        f"SELECT symbol, industry FROM {table.name} WHERE industry <> 'z' EMIT CHANGES WITH SNAPSHOT",
        clauses="AT MOST 1 EVERY '1 day' BY industry",
    )
    found = lab.results.of(made["destination"])
    lab.results.until(lambda: any(one.kind == "cq.snapshot" for one in found), "the end of the snapshot")
    assert ["x", "y"] == sorted(one.row["industry"] for one in found if one.kind == "cq.match")
    assert {"rows": 3} == found[-1].row
    table.put({"symbol": "D", "industry": "x"}, {"symbol": "E", "industry": "z"}, {"symbol": "C", "industry": "z"})
    table.put({"symbol": "F", "industry": "w"})
    lab.results.until(lambda: len(found) > 3, "a result of another value")
    assert ("insert", "w") == (found[3].headers["op"], found[3].row["industry"])


def test_the_sdk_tells_how_many_were_left_out(stack: Stack, lab: Lab) -> None:
    """A result has the number of results that were left out before it."""
    source = lab.stream("device STRING, temp INT")
    hour_ms = 3_600_000
    with connect(stack.bootstrap, lab.subscriber()) as client:
        created = client.create("told", f"SELECT temp FROM {source.name} AT MOST 1 EVERY '1 hour'")
        lab.cqs[lab.subscriber(), "told"] = created
        assert created.trigger.at_most == Throttle(1, "PT1H")
        made = [Event({"temp": n}, time_ms=_BEGIN_MS + hours * hour_ms) for n, hours in enumerate((0, 0, 0, 1, 2))]
        source.publish(made, lambda event: json.dumps(event.values).encode())
        with client.subscribe(created) as results:
            found = [results.next(timeout=180) for _ in range(3)]
    assert [(0, 0), (3, 2), (4, 0)] == [(one.row["temp"], one.suppressed) for one in found if isinstance(one, Match)]


def test_odd_names_of_columns(lab: Lab) -> None:
    """A column of BY may have any name that the SELECT list can have."""
    source = lab.stream("device STRING, temp INT")
    names = ('`a"b`', '"f0"', '"a\\b"')
    made = [
        lab.create(
            f"odd{n}", f"SELECT device AS {name} FROM {source.name}", clauses=f"AT MOST 1 EVERY '1 day' BY {name}"
        )
        for n, name in enumerate(names)
    ]
    source.publish_values(*(b'{"device": "%b"}' % device for device in (b"a", b"b", b"a")))
    for each in made:
        lab.results.until(lambda each=each: len(lab.results.of(each["destination"])) == 2, "results of both devices")
    source.fence()


def test_a_deleted_topic_holds_up_nobody_else(lab: Lab) -> None:
    """If somebody deletes the topic of a destination, only its results are lost."""
    source = lab.stream("device STRING, temp INT")
    lost = lab.create("lost", f"SELECT temp FROM {source.name}", clauses="AT MOST 9 EVERY '1 day' DO PUBLISH DEDICATED")
    kept = lab.create("kept", f"SELECT temp FROM {source.name}", clauses="AT MOST 9 EVERY '1 day' DO PUBLISH SHARED")
    source.publish_values(b'{"temp": 1}')
    for each in (lost, kept):
        lab.results.until(lambda each=each: len(lab.results.of(each["destination"])) == 1, "the first result")
    topic = lost["destination"]["topic"]
    lab.client.admin.delete_topics([topic])[topic].result()
    source.publish_values(b'{"temp": 2}')
    lab.results.until(lambda: len(lab.results.of(kept["destination"])) == 2, "the result of the other")
    source.publish_values(b'{"temp": 3}')
    lab.results.until(lambda: len(lab.results.of(kept["destination"])) == 3, "the next result", timeout=20)
