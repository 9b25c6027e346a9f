"""The process that evaluates events for the gateway: whatever the question, the gateway goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.evaluation.outcome import EventOutcome, EventQuestion
from gateway.evaluation.process import MOST_WAITING, EvaluationProcess, Evaluations, TooCostly
from gateway.model.held import NotYet
from gateway.model.trigger_spec import TriggerSpec
from gateway.testing import ACCEPTED_AT, Stream
from gateway.testing.query import checked
from tests.kafka_client import wait_until

_NOW_MS = 1_767_225_600_000
_STREAM = Stream("quotes (symbol STRING, sizes ARRAY<INT>)")
_ENDLESS = "exists(sizes, x -> exists(sizes, y -> exists(sizes, z -> x + y + z < 0)))"
_LARGE = b'{"symbol": "INTC", "sizes": [%s]}' % b",".join([b"1"] * 5000)


@pytest.fixture
def process() -> Iterator[EvaluationProcess]:
    """A process that is gone afterwards."""
    process = EvaluationProcess()
    yield process
    process.close()


@pytest.fixture
def evaluations() -> Iterator[Evaluations]:
    """Questions of several subscribers."""
    evaluations = Evaluations()
    yield evaluations
    evaluations.close()


def _question(where: str, value: bytes) -> EventQuestion:
    asked = checked(f"SELECT symbol FROM quotes WHERE {where}", _STREAM, ACCEPTED_AT, [])
    window = (None, None)
    return EventQuestion(_STREAM.declared, asked.query, TriggerSpec(), window, {}, {}, value, None, (), _NOW_MS)


def test_who_asks_for_too_much_is_told_and_nobody_else_notices(process: EvaluationProcess) -> None:
    """The answer is late or never comes: the process is ended, and others are answered by the next one."""
    plain = _question("symbol = 'INTC'", b'{"symbol": "INTC"}')
    found = process.outcome(plain, "alice")
    assert (True, [{"symbol": "INTC"}]) == (found.matches, found.results)
    with pytest.raises(TooCostly):
        process.outcome(_question(_ENDLESS, _LARGE), "mallory")
    with pytest.raises(TooCostly, match="within the last"):
        process.outcome(plain, "mallory")
    assert found == process.outcome(plain, "alice")


def test_a_process_that_dies_is_replaced(process: EvaluationProcess) -> None:
    """The process may end amid a question or before, for example when memory runs out."""
    plain = _question("symbol = 'INTC'", b'{"symbol": "AMD"}')
    assert process.outcome(plain, "alice").matches is False
    process.close()
    assert process.outcome(plain, "alice").why == "symbol = 'INTC' is FALSE"


def _answer(evaluations: Evaluations, asker: str, name: str, question: EventQuestion) -> EventOutcome:
    """Ask as the gateway does: again once the answer is there."""
    try:
        return evaluations.outcome(question, asker, name)
    except NotYet as later:
        wait_until(later.is_ready, "an answer")
    return evaluations.outcome(question, asker, name)


def test_nobody_waits_for_an_answer(evaluations: Evaluations) -> None:
    """Each question is answered once, to its asker; a subscriber's next question is a new question."""
    events = {name: b'{"symbol": "%s"}' % name.encode() for name in ("INTC", "AMD")}
    questions = {name: _question("symbol = 'INTC'", event) for name, event in events.items()}
    for asker, name in (("alice", "INTC"), ("bob", "AMD")):
        with pytest.raises(NotYet):
            evaluations.outcome(questions[name], asker, f"0/{name}")
    assert _answer(evaluations, "bob", "0/AMD", questions["AMD"]).matches is False
    assert _answer(evaluations, "alice", "0/INTC", questions["INTC"]).matches is True
    with pytest.raises(NotYet):
        evaluations.outcome(questions["INTC"], "alice", "0/7")
    assert _answer(evaluations, "alice", "0/8", questions["AMD"]).matches is False, "0/7 was never asked again"


def test_there_is_an_end_to_the_questions_that_wait(evaluations: Evaluations) -> None:
    """Who invents subscribers has no more than twenty questions wait, and then others are told."""
    plain, endless = _question("symbol = 'INTC'", b"{}"), _question(_ENDLESS, _LARGE)
    for number in range(MOST_WAITING):
        with pytest.raises(NotYet):
            evaluations.outcome(endless if number == 0 else plain, f"mallory {number}", "0/0")
    with pytest.raises(TooCostly, match="20 other events wait"):
        evaluations.outcome(plain, "alice", "0/0")
