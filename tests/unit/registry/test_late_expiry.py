"""EXPIRE of queries with results that wait for the watermark."""

from __future__ import annotations

import pytest

from gateway.ends.lifetimes import settled_ms
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.column import EventTime
from grouping.settings.evaluator_settings import EvaluatorSettings

_COLUMNS = (StreamColumn("d", "STRING"), StreamColumn("t", "DOUBLE"))
_LIMITS = EvaluatorSettings(watermark_delay_seconds=3, idle_seconds=40)


@pytest.mark.parametrize(
    ("emit", "waits"),
    [
        ("", False),
        ("EMIT ON ENTER BY d", False),
        ("EMIT ON ENTER BY d FOR '5 minutes'", True),
        ("EMIT ON SILENCE '5 minutes' BY d", True),
    ],
)
def test_a_query_stays_until_the_clock_has_told_its_results(emit: str, *, waits: bool) -> None:
    """The stream declares the delay and the idle time, or has them of the settings; a mark has ten seconds besides."""
    for time, waited in ((EventTime(), 3 + 40), (EventTime("t", 7_000, 2_000), 7 + 2)):
        stream = Stream("s", "m", _COLUMNS, "m", "json", {"0": 0}, "", partition_key=("d",), declared_time=time)
        plan = compile_select(f"SELECT d FROM m WHERE t > 90 {emit}", Catalog([stream])).plan
        assert 100_000 - settled_ms(100_000, stream, plan, _LIMITS) == (waits and (waited + 10) * 1000)
