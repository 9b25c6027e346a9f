"""Commands on their way: each is sent in order, answered once, sent again when there is reason to."""

from __future__ import annotations

import json

import pytest

from gateway.sdk.errors import NoReply, TransportError, Unavailable
from gateway.sdk.outbox import CommandUnderWay, Outbox


class Hand:
    """A clock that is set by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def sent(outbox: Outbox) -> list[str]:
    """What goes out now, by command id."""
    outbox.tick()
    return [pending.command_id for pending in outbox.unsent()]


def answer(outbox: Outbox, command: CommandUnderWay, code: str = "ok") -> None:
    """Let the gateway's reply come in."""
    status = "accepted" if code == "ok" else "rejected"
    reply = {"command_id": command.command_id, "subscriber": "alice", "status": status, "code": code, "message": "m"}
    outbox.answer(json.dumps(reply).encode())


@pytest.fixture
def clock() -> Hand:
    """A clock at zero."""
    return Hand()


@pytest.fixture
def outbox(clock: Hand) -> Outbox:
    """Alice's, that takes ten seconds without any reply for silence."""
    return Outbox("alice", clock=clock, silence=10)


def test_a_command_carries_what_the_contract_asks(outbox: Outbox) -> None:
    """The record is JSON with the command's id, the subscriber and the text."""
    command = outbox.submit("DROP CQ a", timeout=30, command_id="x1")
    assert {"command_id": "x1", "subscriber": "alice", "text": "DROP CQ a"} == json.loads(command.record)


def test_commands_go_out_once_in_their_order(outbox: Outbox) -> None:
    """What was sent is not sent again while replies come."""
    ids = [outbox.submit(text, timeout=30).command_id for text in ("one", "two", "three")]
    assert ids == sent(outbox)
    assert [] == sent(outbox)
    assert 3 == len(set(ids))


def test_silence_sends_all_unanswered_again_in_order(outbox: Outbox, clock: Hand) -> None:
    """After a silence the same ids go out again; answered ones do not."""
    first, second, third = (outbox.submit(text, timeout=60) for text in ("one", "two", "three"))
    sent(outbox)
    clock.now = 9
    answer(outbox, first)
    clock.now = 18
    assert [] == sent(outbox)
    clock.now = 19
    assert [second.command_id, third.command_id] == sent(outbox)


def test_a_long_silence_is_broken_seldom(outbox: Outbox, clock: Hand) -> None:
    """While nothing is answered each sending waits twice as long as the one before; an answer begins anew."""
    first, second = (outbox.submit(text, timeout=600) for text in ("one", "two"))
    times = []
    for clock.now in range(100):
        if sent(outbox):
            times.append(clock.now)
    assert [0, 10, 30, 70] == times
    answer(outbox, first)
    clock.now = 108
    assert [] == sent(outbox)
    clock.now = 109
    assert [second.command_id] == sent(outbox)


def test_no_reply_in_time_is_an_error_with_the_id(outbox: Outbox, clock: Hand) -> None:
    """The command is given up, and can be sent again under its id."""
    command = outbox.submit("one", timeout=5)
    clock.now = 5
    outbox.tick()
    with pytest.raises(NoReply, match=command.command_id):
        command.outcome()
    assert 0 == len(outbox)


def test_unavailable_is_tried_again_until_the_deadline(outbox: Outbox, clock: Hand) -> None:
    """`unavailable` changed nothing, so the same id goes out again; near the deadline it is the outcome."""
    command = outbox.submit("one", timeout=5)
    sent(outbox)
    answer(outbox, command, "unavailable")
    clock.now = 2
    assert [command.command_id] == sent(outbox)
    clock.now = 4.5
    answer(outbox, command, "unavailable")
    assert isinstance(command.outcome(), Unavailable)


def test_a_command_that_was_unavailable_tells_so_when_no_further_reply_comes(outbox: Outbox, clock: Hand) -> None:
    """The outcome is not known, since the command was sent again; why it was put off is told."""
    command = outbox.submit("one", timeout=5)
    sent(outbox)
    answer(outbox, command, "unavailable")
    clock.now = 2
    assert [command.command_id] == sent(outbox)
    clock.now = 5
    outbox.tick()
    with pytest.raises(NoReply) as caught:
        command.outcome()
    assert str(caught.value.detail).endswith("the gateway could not carry it out: m.")


def test_foreign_and_repeated_replies_change_nothing(outbox: Outbox) -> None:
    """The partition of replies is shared: what is not ours, not JSON, or comes twice, is passed over."""
    command = outbox.submit("one", timeout=5)
    outbox.answer(b"\xc3\x01not json")
    outbox.answer(b'{"command_id": null, "subscriber": "a", "status": "rejected", "code": "x", "message": "m"}')
    assert not command.done
    answer(outbox, command)
    answer(outbox, command, "unknown-cq")
    assert command.reply is not None
    assert command.reply.accepted


def test_a_record_that_is_never_written_ends_its_command(outbox: Outbox) -> None:
    """Kafka tells of it by the record's value; what waits no more is passed over."""
    first, second = (outbox.submit(text, timeout=60) for text in ("one", "two"))
    outbox.lose(first.record, TransportError("writing failed"))
    outbox.lose(first.record, TransportError("told again"))
    with pytest.raises(TransportError, match="writing failed"):
        first.outcome()
    assert not second.done


def test_an_id_that_waits_is_joined(outbox: Outbox) -> None:
    """Sending an id that is under way again is one command with one outcome."""
    assert outbox.submit("one", timeout=5, command_id="x") is outbox.submit("one", timeout=5, command_id="x")
