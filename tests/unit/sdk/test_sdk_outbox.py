"""Commands on their way: each is sent in order, answered once, sent again when there is reason to."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Message

from gateway.sdk.errors import NoReply, NotAllowed, TransportError, Unavailable
from gateway.sdk.outbox import CommandUnderWay, Outbox
from gateway.sdk.sender import Sender


class Hand:
    """A clock that is set by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def sent(outbox: Outbox) -> list[str]:
    """Return the outgoing commands, by command id."""
    outbox.tick()
    return [pending.command_id for pending in outbox.unsent()]


def answer(outbox: Outbox, command: CommandUnderWay, code: str = "ok", place: bytes | None = None) -> None:
    """Let the gateway's reply come in, to the record at a place."""
    status = "accepted" if code == "ok" else "rejected"
    reply = {"command_id": command.command_id, "subscriber": "alice", "status": status, "code": code, "message": "m"}
    outbox.answer(json.dumps(reply).encode(), place)


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
    """A sent command is not sent again while replies come."""
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


def test_a_retry_holds_back_later_commands(outbox: Outbox, clock: Hand) -> None:
    """The gateway carries out commands in the order of its topic, so no later command is written before a retry."""
    first = outbox.submit("DROP CQ a", timeout=60)
    sent(outbox)
    answer(outbox, first, "unavailable")
    second = outbox.submit("CREATE CQ a AS SELECT 1", timeout=60)
    assert [] == sent(outbox)
    clock.now = 2
    assert [first.command_id, second.command_id] == sent(outbox)


def test_a_command_is_not_sent_again_behind_a_later_one(outbox: Outbox, clock: Hand) -> None:
    """A DROP that is sent again behind its CREATE would drop what was created."""
    first, second = (outbox.submit(text, timeout=60) for text in ("DROP CQ a", "CREATE CQ a AS SELECT 1"))
    sent(outbox)
    answer(outbox, first, "unavailable")
    assert isinstance(first.outcome(), Unavailable)
    answer(outbox, second, "unavailable")
    third = outbox.submit("DESCRIBE CQ a", timeout=60)
    clock.now = 2
    assert [second.command_id, third.command_id] == sent(outbox)


def test_a_retry_that_is_given_up_holds_back_nothing(outbox: Outbox, clock: Hand) -> None:
    """The later command goes out once its forerunner's outcome is known."""
    first = outbox.submit("one", timeout=60)
    sent(outbox)
    answer(outbox, first, "unavailable")
    outbox.refuse(first, TransportError("given up"))
    second = outbox.submit("two", timeout=60)
    clock.now = 2
    assert [second.command_id] == sent(outbox)


def test_foreign_and_repeated_replies_change_nothing(outbox: Outbox) -> None:
    """The partition of replies is shared: foreign, broken and repeated replies are passed over."""
    command = outbox.submit("one", timeout=5)
    outbox.answer(b"\xc3\x01not json")
    outbox.answer(b'{"command_id": null, "subscriber": "a", "status": "rejected", "code": "x", "message": "m"}')
    assert not command.done
    answer(outbox, command)
    answer(outbox, command, "unknown-cq")
    assert command.reply is not None
    assert command.reply.accepted


def test_a_record_that_is_never_written_ends_its_command(outbox: Outbox) -> None:
    """The delivery report has the reason of the first failure."""
    first, second = (outbox.submit(text, timeout=60) for text in ("one", "two"))
    outbox.note_delivery(first, TransportError("writing failed"))
    outbox.note_delivery(first, TransportError("told again"))
    with pytest.raises(TransportError, match="writing failed"):
        first.outcome()
    assert not second.done


def test_an_id_that_waits_is_joined(outbox: Outbox) -> None:
    """Sending the id of a command under way again is the same command with the same outcome."""
    assert outbox.submit("one", timeout=5, command_id="x") is outbox.submit("one", timeout=5, command_id="x")


@pytest.mark.parametrize("code", ["not-allowed", "malformed-command"])
def test_a_refusal_of_a_forged_command_is_nobodys(outbox: Outbox, code: str) -> None:
    """Whoever sends a record with somebody else's name and command id is refused: by the place of that record."""
    first, second = (outbox.submit(text, timeout=60) for text in ("one", "two"))
    first.sendings = second.sendings = 1
    outbox.note_delivery(first, "0/17")
    answer(outbox, first, code, b"0/18")
    answer(outbox, second, code, b"0/19")
    assert not first.done
    assert not second.done, "its own place is not known yet"
    outbox.note_delivery(second, "0/20")
    answer(outbox, first, "ok", b"0/17")
    answer(outbox, second, code, b"0/20")
    assert [True, False] == [each.reply is not None and each.reply.accepted for each in (first, second)]


def test_a_refusal_may_come_before_the_delivery_report(outbox: Outbox) -> None:
    """The reply counts once the record is known to be the command's own, sent again or not."""
    command = outbox.submit("one", timeout=60)
    command.sendings = 2
    outbox.note_delivery(command, "0/17")
    answer(outbox, command, "not-allowed", b"0/21")
    assert not command.done
    outbox.note_delivery(command, "0/21")
    assert command.done


@pytest.mark.parametrize("early", [False, True])
def test_a_refusal_counts_if_the_place_of_the_command_is_unknown(outbox: Outbox, early: bool) -> None:
    """A broker that died after it took the record tells no offset, so the reply is known by its id alone."""
    command = outbox.submit("one", timeout=60)
    command.sendings = 1
    if early:
        answer(outbox, command, "not-allowed", b"0/21")
        assert not command.done
        outbox.note_delivery(command, None)
    else:
        outbox.note_delivery(command, None)
        answer(outbox, command, "not-allowed", b"0/21")
    assert isinstance(command.outcome(), NotAllowed)


class _BrokerWithoutOffsets:
    """A producer whose broker died after it took the records, so that their offsets are unknown."""

    def __init__(self, options: dict[str, object]) -> None:
        assert options["enable.idempotence"]

    def produce(self, topic: str, *_: object, on_delivery: Callable[..., None], **__: object) -> None:
        on_delivery(None, Message(topic=topic, partition=0, offset=-1001))


def test_an_unknown_offset_is_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reports such a record without an error, and without an offset."""
    monkeypatch.setattr("gateway.sdk.sender.Producer", _BrokerWithoutOffsets)
    places: list[object] = []
    assert Sender("127.0.0.1:1", {}).send("cq.commands", b"x", places.append, key=b"alice")
    assert [None] == places


def test_ids_are_not_to_be_guessed(outbox: Outbox) -> None:
    """No two have a beginning or an end in common."""
    ids = [outbox.submit("one", timeout=60).command_id for _ in range(200)]
    assert 200 == len({each[:16] for each in ids}) == len({each[16:] for each in ids})


def test_commands_of_different_cqs_outlast_a_gateway_that_is_unavailable(outbox: Outbox, clock: Hand) -> None:
    """All of them are sent again in their order, and no further command is sent into the outage."""
    commands = [outbox.submit(f'CREATE CQ "q{number}" AS SELECT 1', timeout=60) for number in range(5)]
    assert len(sent(outbox)) == 5
    more = outbox.submit("SHOW CQS", timeout=60)
    for round_ in (1, 2, 3):
        for command in commands:
            answer(outbox, command, "unavailable")
        assert [] == sent(outbox)
        clock.now = 2.0 * round_
        expected = [command.command_id for command in commands]
        assert sent(outbox) == (expected + [more.command_id] if round_ == 1 else expected)
    for command in commands:
        answer(outbox, command)
        assert command.outcome().code == "ok"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first", "second", "is_final"),
    [
        ("DROP CQ a", "create or replace cq A AS SELECT 1", True),
        ('DROP CQ IF EXISTS "a b"', 'CREATE CQ IF NOT EXISTS "A b" AS SELECT 1', True),
        ("DROP CQ a", "CREATE CQ b AS SELECT 1", False),
        ("DESCRIBE CQ a", "DROP CQ a", False),
    ],
)
def test_a_later_command_of_the_same_cq_makes_unavailable_final(
    outbox: Outbox, first: str, second: str, is_final: bool
) -> None:
    """A question, or a command of another CQ, changes nothing about the order."""
    commands = [outbox.submit(text, timeout=60) for text in (first, second)]
    sent(outbox)
    answer(outbox, commands[0], "unavailable")
    assert commands[0].done == is_final
