"""Questions to the gateway about CQs: a reader never waits longer for an answer than its caller allows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from gateway.sdk.outbox import CommandUnderWay, Outbox
from gateway.sdk.pipeline import Inquiry
from gateway.sdk.results import ContinuousQuery
from tests.unit.sdk import sdk_records as records


class _Gateway:
    """An exchange without Kafka: a step lasts as long as it may, and then the replies come that the test has given."""

    now = 0.0

    def __init__(self) -> None:
        self._outbox = Outbox("alice", clock=self.clock)
        self.sent: list[CommandUnderWay] = []
        self.replies: list[bytes] = []

    def clock(self) -> float:
        return self.now

    def submit(self, texts: Sequence[str], *, timeout: float) -> list[CommandUnderWay]:
        return [self._outbox.submit(text, timeout=timeout) for text in texts]

    def step(self, seconds: float) -> None:
        self._outbox.tick()
        self.sent += self._outbox.unsent()
        self.now += seconds
        for reply in self.replies:
            self._outbox.answer(reply)
        self.replies.clear()

    def answer(self, command: CommandUnderWay, code: str = "ok", query: ContinuousQuery | None = None) -> None:
        """Let a reply come with the next step."""
        reply = {"command_id": command.command_id, "subscriber": "alice", "code": code, "message": "m"}
        status = "accepted" if code == "ok" else "rejected"
        self.replies.append(json.dumps({**reply, "status": status, "result": msgspec.to_builtins(query)}).encode())

    def inquiry(self, *names: str) -> Inquiry:
        """A question that this gateway answers."""
        return Inquiry(self, names, timeout=30, clock=self.clock, sleep=self.sleep)  # type: ignore[arg-type]

    def sleep(self, seconds: float) -> None:
        """Let time pass without a step."""
        self.now += seconds


def test_an_answer_is_awaited_only_for_the_given_time() -> None:
    """The question stays open; its answer is there at a later call, and the question was sent once."""
    gateway = _Gateway()
    inquiry = gateway.inquiry("a", "b")
    assert inquiry.answers(0.25) is None
    assert round(gateway.now, 6) == 0.25
    assert inquiry.answers(0.0) is None
    for command in gateway.sent:
        gateway.answer(command, query=records.query(command.text[-2]))
    assert inquiry.answers(0.0) == {"a": records.query("a"), "b": records.query("b")}
    assert round(gateway.now, 6) == 0.25
    assert len(gateway.sent) == 2


def test_only_a_cq_that_the_gateway_does_not_know_is_none() -> None:
    """A DESCRIBE that is refused for another reason tells nothing about the CQ."""
    gateway = _Gateway()
    inquiry = gateway.inquiry("a", "b", "c")
    assert inquiry.answers(0.0) is None
    for command, code in zip(gateway.sent, ("unknown-cq", "not-allowed", "ok"), strict=True):
        gateway.answer(command, code, records.query("c"))
    assert inquiry.answers(0.0) == {"a": None, "c": records.query("c")}


def test_the_gateway_is_asked_again_after_an_answer_that_tells_nothing() -> None:
    """`unavailable`, and a reply that never comes, leave the question open."""
    gateway = _Gateway()
    inquiry = gateway.inquiry("a", "b")
    assert inquiry.answers(0.0) is None
    gateway.answer(gateway.sent[0], "unavailable")
    gateway.answer(gateway.sent[1], query=records.query("b"))
    assert inquiry.answers(0.0) is None
    assert inquiry.answers(31.0) is None, "no reply came at all"
    gateway.sent.clear()
    for _ in range(5):
        assert inquiry.answers(0.1) is None
    assert not gateway.sent, "a failed question is not sent again at once"
    assert inquiry.answers(1.0) is None
    for command in gateway.sent:
        gateway.answer(command, "unknown-cq")
    assert inquiry.answers(0.0) == {"a": None, "b": None}
