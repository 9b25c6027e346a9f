"""The process that evaluates events for the gateway: whatever it is asked, the gateway goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.evaluation.outcome import EventQuestion
from gateway.evaluation.process import EvaluationProcess, TooCostly
from gateway.model.records import TriggerSpec
from gateway.testing import ACCEPTED_AT, Stream
from gateway.testing.query import checked

_NOW_MS = 1_767_225_600_000
_STREAM = Stream("quotes (symbol STRING, sizes ARRAY<INT>)")


@pytest.fixture
def process() -> Iterator[EvaluationProcess]:
    """A process that is gone afterwards."""
    process = EvaluationProcess()
    yield process
    process.close()


def _question(where: str, value: bytes) -> EventQuestion:
    asked = checked(f"SELECT symbol FROM quotes WHERE {where}", _STREAM, ACCEPTED_AT, [])
    window = (None, None)
    return EventQuestion(_STREAM.declared, asked.query, TriggerSpec(), window, {}, {}, value, None, _NOW_MS)


def test_who_asks_for_too_much_is_told_and_nobody_else_notices(process: EvaluationProcess) -> None:
    """The answer is late or never comes: the process is ended, and others are answered by the next one."""
    plain = _question("symbol = 'INTC'", b'{"symbol": "INTC"}')
    found = process.outcome(plain, "alice")
    assert (True, [{"symbol": "INTC"}]) == (found.matches, found.results)
    endless = _question(
        "exists(sizes, x -> exists(sizes, y -> exists(sizes, z -> x + y + z < 0)))",
        b'{"symbol": "INTC", "sizes": [%s]}' % b",".join([b"1"] * 5000),
    )
    with pytest.raises(TooCostly):
        process.outcome(endless, "mallory")
    with pytest.raises(TooCostly, match="within the last"):
        process.outcome(plain, "mallory")
    assert found == process.outcome(plain, "alice")


def test_a_process_that_dies_is_replaced(process: EvaluationProcess) -> None:
    """Memory that ran out, for one, ends it amid a question or before it."""
    plain = _question("symbol = 'INTC'", b'{"symbol": "AMD"}')
    assert process.outcome(plain, "alice").matches is False
    process.close()
    assert process.outcome(plain, "alice").why == "symbol = 'INTC' is FALSE"
