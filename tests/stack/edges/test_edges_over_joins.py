"""Edges over joins with a table, and keys in two partitions, through the real servers."""

from __future__ import annotations

import json
from typing import Any

from tests.kafka_client import wait_until
from tests.queries import Event
from tests.stack.lab import Lab, Source
from tests.stack.lab_table import LabTable


def _publish(source: Source, *rows: tuple[str, int, int], partition: int | None = None) -> None:
    """Publish events of device, temp and n; each device has a partition of its own unless another is given."""
    made = [
        Event({"device": device, "temp": temp, "n": n}, int(device[1:]) % 2 if partition is None else partition)
        for device, temp, n in rows
    ]
    source.publish(made, lambda event: json.dumps(event.values).encode())


def _edges(lab: Lab, made: dict[str, Any]) -> list[tuple[int, str | None, str]]:
    return sorted((one.row["n"], one.row["room"], one.headers["edge"]) for one in lab.results.of(made["destination"]))


def test_edges_over_a_join_with_a_table(lab: Lab) -> None:
    """Joined rows are the events, an event without a row is none; a key in a second partition is counted as such."""
    source = lab.stream("device STRING, temp DOUBLE, n INT, PARTITION KEY (device)", partitions=2)
    table = LabTable(lab, "machine STRING PRIMARY KEY, room STRING")
    table.put({"machine": "m0", "room": "hall"}, {"machine": "m1", "room": "cellar"})
    select = f"SELECT n, room FROM {source.name} {{}}JOIN {table.name} ON device = machine"
    emit = "EMIT ON ENTER OR EXIT BY device"
    inner = lab.create("inner", f"{select.format('')} WHERE room = 'hall' AND temp > 90 {emit}")
    left = lab.create("left", f"{select.format('LEFT ')} WHERE room IS NULL AND temp > 90 {emit}")
    _publish(source, ("m0", 80, 0), ("m0", 95, 1), ("m1", 10, 2), ("m2", 99, 3), ("m0", 97, 4), ("m0", 20, 5))
    _publish(source, ("m0", 91, 6), ("m2", 10, 7))
    wanted = [(1, "hall", "enter"), (5, "hall", "exit"), (6, "hall", "enter")]
    missing = [(3, None, "enter"), (7, None, "exit")]
    lab.results.until(lambda: _edges(lab, inner) == wanted and _edges(lab, left) == missing, "edges over joins")
    table.put({"machine": "m1", "room": "hall"})
    _publish(source, ("m1", 99, 8))
    wanted.append((8, "hall", "enter"))
    lab.results.until(lambda: _edges(lab, inner) == wanted, "the edge of a changed row")

    def described() -> dict[str, Any]:
        found: dict[str, Any] = lab.client.result(f"DESCRIBE STREAM {source.name}", lab.subscriber("owner"))
        return found

    def keys() -> list[int]:
        _publish(source, ("m2", 12, 12))
        return sorted(each["keys"] or 0 for each in lab.client.result("SHOW COMPUTATIONS", me)["computations"])

    me = lab.subscriber()
    wait_until(lambda: keys() == [2, 3], "the keys that workers tell")
    assert 0 == described()["split_keys"]
    assert "warnings" not in described()
    _publish(source, ("m1", 99, 13), partition=0)
    wait_until(lambda: keys() == [3, 4], "the key in its second partition")
    wait_until(lambda: described()["split_keys"] == 1, "the split key")
    assert "partitioner" in str(described()["warnings"])
    wanted.append((13, "hall", "enter"))
    lab.results.until(lambda: _edges(lab, inner) == wanted, "the key's edge in its second partition")
    assert missing == _edges(lab, left)
    source.fence()  # a task that begins while its stream is dropped loses its lease, which is a stack trace


def test_each_row_of_a_join_has_its_own_edges(lab: Lab) -> None:
    """BY has the table's key: a row enters and exits whatever the other rows of its event do."""
    source = lab.stream("device STRING, temp DOUBLE, n INT, PARTITION KEY (device)", partitions=2)
    table = LabTable(lab, "machine STRING, watcher STRING, least DOUBLE, PRIMARY KEY (machine, watcher)")
    table.put(*({"machine": "m0", "watcher": name, "least": least} for name, least in (("ann", 90), ("bob", 96))))
    made = lab.create(
        "watched",
        f"SELECT n, watcher FROM {source.name} JOIN {table.name} ON device = machine WHERE temp > least "
        "EMIT ON ENTER OR EXIT BY device, watcher",
    )
    edges = [(1, 0, "enter"), (2, 1, "enter"), (3, 1, "exit"), (4, 0, "exit"), (6, 2, "enter")]
    wanted = [(n, ("ann", "bob", "cid")[row], row, edge) for n, row, edge in edges]

    def found() -> list[tuple[int, str, int, str]]:
        return [
            (one.row["n"], one.row["watcher"], int(one.headers["ce_id"].rpartition("/")[2]), one.headers["edge"])
            for one in lab.results.of(made["destination"])
        ]

    _publish(source, *(("m0", temp, n) for n, temp in enumerate((80, 95, 97, 92, 20))), ("m1", 99, 5))
    lab.results.until(lambda: wanted[:4] == found(), "edges of each joined row")
    table.put({"machine": "m0", "watcher": "cid", "least": 10})
    _publish(source, ("m0", 30, 6))
    lab.results.until(lambda: wanted == found(), "the edge of a new row")
    source.fence()
    assert wanted == found()
