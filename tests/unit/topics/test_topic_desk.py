"""A command that waits for Kafka is tried again after each answer, sends no request twice, and leaves no state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

import pytest

from gateway.kafka import TopicRefusal, Topics
from gateway.model.held import NotYet
from gateway.topics.topic_desk import TopicDesk, TopicQuestions
from grouping.model.errors import OperationalError


class _SlowTopics:
    """Answers a question when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let = threading.Semaphore(0)
        self.read = threading.Event()
        self.fails = False

    def names(self) -> set[str]:
        self.asked.append("names")
        self.let.acquire()
        if self.fails:
            raise OperationalError("away")
        return {"a", "b"}

    def sampled(self, topic: str, partitions: int, read: Callable[..., str], *arguments: object) -> str:
        self.asked.append("sampled")
        self.read.wait()
        return read([topic] * partitions, *arguments)

    def create(self, wanted: dict[str, int], config: object) -> set[str]:
        self.asked.append("create")
        self.let.acquire()
        raise TopicRefusal("no", code="not-allowed", detail="")


def _command(topics: TopicQuestions) -> str:
    if "c" in topics.names():
        return "it is there"
    try:
        topics.create({"c": 1})
    except TopicRefusal as refusal:
        return f"{refusal.code}, {len(topics.names())} topics"
    return "made"


def _tries(topics: _SlowTopics, attempt: Callable[[], str]) -> tuple[int, str]:
    """Try a command until it is carried out; return how often it was held, and its outcome."""
    held = 0
    while True:
        try:
            return held, attempt()
        except NotYet as later:
            held += 1
            assert not later.is_ready()
            with pytest.raises(NotYet):
                attempt()
            topics.let.release()
            while not later.is_ready():
                pass


def test_each_question_is_asked_once() -> None:
    """However often a command is tried; the same question at a later place is another one, for the answer may be."""
    slow = _SlowTopics()
    held = TopicDesk(cast(Topics, slow))
    held.patient = False

    def attempt(place: str) -> str:
        with held.of("alice", place) as topics:
            return _command(topics)

    assert (3, "not-allowed, 2 topics") == _tries(slow, lambda: attempt("0/1"))
    assert ["names", "create", "names"] == slow.asked
    assert (3, "not-allowed, 2 topics") == _tries(slow, lambda: attempt("0/1")), "nothing is left of the first"
    with pytest.raises(NotYet):
        attempt("0/2")
    held.forget()
    slow.let.release()
    assert (3, "not-allowed, 2 topics") == _tries(slow, lambda: attempt("0/2")), "it is tried from its beginning"


def test_a_command_that_reads_records_is_held_and_holds_up_nobody() -> None:
    """The command is held in a patient unit too; questions of other commands are answered while records are read."""
    slow = _SlowTopics()
    held = TopicDesk(cast(Topics, slow))

    def columns() -> str:
        with held.of("alice", "0/1", held=True) as topics:
            return topics.sampled("a", 2, _joined, "-")

    def count() -> str:
        with held.of("bob", "0/2") as topics:
            return str(len(topics.names()))

    with pytest.raises(NotYet) as reading:
        columns()
    held.patient = False
    assert (1, "2") == _tries(slow, count)
    assert not reading.value.is_ready()
    slow.read.set()
    while not reading.value.is_ready():
        pass
    assert "a-a" == columns()
    assert ["sampled", "names"] == slow.asked


def _joined(values: list[str], between: str) -> str:
    return between.join(values)


def test_a_failure_is_the_commands() -> None:
    """Errors of Kafka are raised at the question, and a patient unit asks by itself."""
    slow = _SlowTopics()
    held = TopicDesk(cast(Topics, slow))
    slow.let.release()
    with held.of("alice", "0/1") as topics:
        assert {"a", "b"} == topics.names()
    held.patient, slow.fails = False, True

    def attempt() -> str:
        with held.of("alice", "0/2") as topics:
            return _command(topics)

    with pytest.raises(OperationalError, match="away"):
        _tries(slow, attempt)
