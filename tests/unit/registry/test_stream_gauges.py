"""Metrics of streams: misfits in lenient streams, and warnings about their first records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gateway.metrics import MISFITS
from gateway.model.inventory import Inventory
from gateway.model.unit import Unit
from gateway.registry.stream_gauges import StreamGauges
from grouping.access.stream_statistics import StreamStatistics
from grouping.model.catalog import Stream, StreamColumn
from grouping.store.first_records import FirstRecords
from grouping.store.notes import Output


def _look(misfits: dict[str, int], first: FirstRecords) -> tuple[StreamGauges, Any]:
    inventory = Inventory()
    stream = Stream("s_g", "gauged", (StreamColumn("n", "INT"),), "gauged", "json", {"0": 0}, "", lenient=True)
    Unit(inventory).sources.add_stream(stream)
    evaluator = SimpleNamespace(
        outputs=lambda ids: dict.fromkeys(ids, Output()),
        evaluated=lambda streams: [{} for _ in streams],
        first_records=lambda ids: dict.fromkeys(ids, first),
        misfits=lambda ids: dict.fromkeys(ids, misfits),
        states=lambda ids: {each: [] for each in ids},
        key_samples=lambda ids: {each: [] for each in ids},
    )
    admission = SimpleNamespace(
        forget=lambda: None,
        refresh=lambda *_: None,
        statistics=lambda *_: StreamStatistics(),
        memory=SimpleNamespace(fullest=(0, 0)),
    )
    gauges = StreamGauges(SimpleNamespace(inventory=inventory, evaluator=evaluator), admission)  # type: ignore[arg-type]
    for _ in range(5):
        gauges.look(1_000)
    return gauges, evaluator


def _series() -> dict[str, float]:
    [metric] = MISFITS.collect()
    return {each.labels["column"]: each.value for each in metric.samples if each.labels["stream"] == "gauged"}


def test_misfits_have_a_bounded_number_of_series() -> None:
    """The ten columns with most misfits have a series each, the rest share a series; an old series is removed."""
    gauges, evaluator = _look({f"c{n}": n for n in range(1, 15)}, FirstRecords())
    assert {f"c{n}": n for n in range(5, 15)} | {"*": 1 + 2 + 3 + 4} == _series()
    evaluator.misfits = lambda ids: dict.fromkeys(ids, {"c1": 100})
    for _ in range(5):
        gauges.look(2_000)
    assert {"c1": 100} == _series()


def test_a_warning_is_kept_until_the_next_look() -> None:
    """A stream with dead letters among its first records has a warning."""
    gauges, _ = _look({}, FirstRecords(4, 3, "A."))
    assert "3 of the first 4 records are dead letters, mostly for this reason: A." == gauges.warning("s_g")
    assert gauges.warning("s_other") is None
