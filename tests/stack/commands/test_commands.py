"""Each record of cq.commands gets one reply or one dead letter, and the next command is served (docs/commands.md)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable

import pytest
from confluent_kafka import Producer

from gateway.kafka import CommandConsumer, ExistingTopic, LogReader, Record, Topics
from gateway.state.commit import Commits
from gateway.state.work import Work
from schemas.codec import decode_reply
from schemas.partition import partition_of
from tests.codec import encode_single_object, wire_schema
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.kafka_tail import dead_letters
from tests.stack.counter import Counter
from tests.stack.digests.desk import NOW
from tests.stack.lab import Lab, Source
from tests.stack.letters import await_letters
from tests.timer_desk import Desk

NOT_RECORDS: dict[str, bytes | None] = {
    "no value": None,
    "empty": b"",
    "no JSON": b"CREATE CQ x",
    "a JSON array": b"[]",
    "a JSON null": b"null",
    "broken UTF-8": b'{"command_id": "c", "subscriber": "S", "text": "\xff"}',
    "cut": b'{"command_id": "c", "subscriber": "S", "te',
    "no text": b'{"command_id": "c", "subscriber": "S"}',
    "text a number": b'{"command_id": "c", "subscriber": "S", "text": 7}',
    "a subscriber with a line feed": b'{"command_id": "c", "subscriber": "a\\n", "text": "SHOW CQS"}',
    "no command id": b'{"subscriber": "S", "text": "SHOW CQS"}',
    "empty command id": b'{"command_id": "", "subscriber": "S", "text": "SHOW CQS"}',
    "Avro of another schema": b"\xc3\x01" + bytes(8) + b"body",
    "Avro cut": encode_single_object("string", "x")[:5],
}


@pytest.fixture(scope="module")
def source(shared_lab: Lab) -> Source:
    """A stream to create CQs on."""
    return shared_lab.stream("symbol STRING, qty INT")


def test_a_megabyte_of_sql(shared_lab: Lab, source: Source) -> None:
    """Text over 512 KiB is refused by its size; just below it is carried out."""
    client, alice = shared_lab.client, shared_lab.subscriber()
    filler = "SELECT symbol FROM {} WHERE symbol = '{}'"
    megabyte = "CREATE CQ big AS " + filler.format(source.name, "x" * 1_000_000)
    assert "command-too-large" == client.execute(megabyte, alice).code
    fits = filler.format(source.name, "y" * (512 * 1024 - 200))
    shared_lab.create("large", fits)
    comment = "SHOW CQS -- " + "z" * (512 * 1024 - 12)
    assert "ok" == client.execute(comment, alice).code
    assert "command-too-large" == client.execute(comment + "z", alice).code


@pytest.mark.parametrize(
    "subscriber",
    [
        "o'neil",
        'say "hi"',
        "a/b:c|d",
        "日本語 \U0001f600",
        " spaced ",
        "{json}",
        "%s*?[x]",
        "A" * 300,
    ],
)
def test_odd_subscriber_names(shared_lab: Lab, source: Source, subscriber: str) -> None:
    """A subscriber is any text: its CQs are its own, and its replies carry its name."""
    client = shared_lab.client
    command_id = client.send(f"CREATE CQ mine AS SELECT symbol FROM {source.name}", subscriber)
    reply = client.reply(command_id)
    assert ("ok", subscriber, subscriber) == (reply.code, reply.fields["subscriber"], reply.key)
    assert ["mine"] == [item["cq"] for item in client.result("SHOW CQS", subscriber)["cqs"]]
    assert "ok" == client.execute("DROP CQ mine", subscriber).code


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_command_id_counts_once(shared_lab: Lab, source: Source, encoding: str) -> None:
    """The same id again changes nothing and gets the first reply again, whatever its text is now (docs/commands.md)."""
    client, alice = shared_lab.client, shared_lab.subscriber(f"idempotent-{encoding}")
    first_id = client.send(f"CREATE CQ once AS SELECT symbol FROM {source.name}", alice, encoding=encoding)
    first = client.reply(first_id)
    assert "ok" == first.code
    assert "ok" == client.execute("DROP CQ once", alice, encoding=encoding).code
    text = f"CREATE CQ once AS SELECT symbol FROM {source.name}"

    def repeated() -> bool:
        """Send the command again, as a client does whose repeated reply is not found within two seconds."""
        client.send(text, alice, command_id=first_id, encoding=encoding)
        client.execute("SHOW CQS", alice)
        return client.replies_to(first_id)[-1].code != "unavailable"

    wait_until(repeated, "repeated reply")
    found = [reply.fields for reply in client.replies_to(first_id) if reply.code != "unavailable"]
    assert [first.fields, first.fields] == found
    assert [] == client.result("SHOW CQS", alice)["cqs"]
    other = shared_lab.subscriber(f"other-{encoding}")
    client.send("DROP CQ once", other, command_id=first_id)
    assert ["unknown-cq"] == [reply.code for reply in client.await_replies(1, lambda reply: reply.key == other)]


def test_avro_is_answered_in_avro(shared_lab: Lab, source: Source) -> None:
    """A command in Avro, with its optional fields, is answered in Avro; subscriber and header identify its sender."""
    client, alice = shared_lab.client, shared_lab.subscriber()
    fields = {
        "command_id": "with-all",
        "subscriber": alice,
        "text": "SHOW STREAMS",
        "sent_at": 1_700_000_000_000,
        "properties": {"a": "b"},
    }
    client.send_record(alice, encode_single_object(wire_schema("command"), fields))
    reply = client.reply("with-all")
    assert ("avro", "with-all", "ok") == (reply.encoding, reply.header, reply.code)
    assert source.name in [item["stream"] for item in reply.result["streams"]]
    assert "unknown-cq" == client.execute("DROP CQ nope", alice, encoding="avro").code


def test_key_and_subscriber_must_agree(shared_lab: Lab) -> None:
    """A record under another key than its subscriber is `not-allowed`, told to the key, and no dead letter."""
    client, mallory = shared_lab.client, shared_lab.subscriber("mallory")
    letters = shared_lab.dead_letter_tail()
    command_id = client.send("SHOW CQS", shared_lab.subscriber(), key=mallory)
    reply = client.reply(command_id)
    assert ("not-allowed", mallory) == (reply.code, reply.key)
    assert "ok" == client.execute("SHOW CQS", mallory).code
    assert [] == [letter for letter in dead_letters(letters) if letter.key == mallory.encode()]


@pytest.mark.parametrize("case", NOT_RECORDS)
def test_malformed_commands(shared_lab: Lab, case: str) -> None:
    """A malformed command gets a `malformed-command` at its key and a dead letter; the next is served."""
    client, sender = shared_lab.client, shared_lab.subscriber("sender " + case)
    letters = shared_lab.dead_letter_tail()
    value = NOT_RECORDS[case]
    value = value.replace(b'"S"', json.dumps(sender).encode()) if value else value
    place = client.send_record(sender, value)
    replies = client.await_replies(1, lambda reply: reply.key == sender)
    assert "ok" == client.execute("SHOW CQS", sender).code
    mine = [reply for reply in client.replies if reply.key == sender and reply.code != "ok"]
    assert ["malformed-command"] == [reply.code for reply in mine], replies
    await_letters(
        client, letters, {place.offset: (sender.encode(), value)}, place.topic, place.partition, "malformed-command"
    )


def test_commands_without_a_key(shared_lab: Lab) -> None:
    """A command without a key cannot be answered: it becomes a dead letter, and the next command is served."""
    client = shared_lab.client
    letters = shared_lab.dead_letter_tail()
    value = json.dumps({"command_id": "keyless", "subscriber": shared_lab.subscriber(), "text": "SHOW CQS"}).encode()
    place = client.send_record(None, value)
    await_letters(client, letters, {place.offset: (None, value)}, place.topic, place.partition, "malformed-command")
    assert "ok" == client.execute("SHOW CQS", shared_lab.subscriber()).code
    assert not client.replies_to("keyless")


def test_one_reply_each(shared_lab: Lab, source: Source) -> None:
    """A thousand pipelined commands, good and bad, of four subscribers: each is answered once, in order."""
    client = shared_lab.client
    senders = [shared_lab.subscriber(f"piped{number}") for number in range(4)]
    texts = (
        "CREATE CQ p AS SELECT symbol FROM {s} WHERE qty = {n}",
        "CREATE CQ p AS SELECT",
        "DESCRIBE CQ p",
        "DROP CQ p",
        "nonsense",
    )
    codes = ("ok", "syntax-error", "ok", "ok", "unknown-statement")
    sent = [(client.send(texts[n % 5].format(s=source.name, n=n), sender), n) for n in range(250) for sender in senders]
    for command_id, n in sent:
        assert codes[n % 5] == client.reply(command_id).code
    for sender in senders:
        assert "ok" == client.execute("SHOW CQS", sender).code
    assert {1} == {len(client.replies_to(command_id)) for command_id, _ in sent}


def test_a_broker_that_is_behind_moves_no_reply(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a new cluster the broker that a gateway asks may not know the topic of replies: replies keep their place."""
    replies, unknown = ground.settings.topics.replies, [True]

    class Behind(Topics):
        def forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
            asked = {*topics}
            if asked != {replies} or not unknown:
                return super().forms(asked)
            unknown.clear()
            return {}

    monkeypatch.setattr("tests.timer_desk.Topics", Behind)
    Counter(ground.settings).answers("SHOW CQS")
    reader = LogReader(ground.settings)
    found = [record.partition for record in reader.since(replies, dict.fromkeys(range(4), 0))]
    reader.close()
    assert [partition_of(b"alice", 4)] == found != [0]


def test_many_large_commands_delay_nobody(shared_lab: Lab, source: Source) -> None:
    """A neighbour has all his answers while 135 MB of commands of another subscriber wait."""
    client, large, neighbour = shared_lab.client, shared_lab.subscriber("large"), shared_lab.subscriber("neighbour")
    for name in (large, neighbour):
        client.result("SHOW CQS", name)
    text = f"DESCRIBE STREAM {source.name} -- {'x' * 450_000}"
    ids = [uuid.uuid4().hex for _ in range(300)]
    values = ({"command_id": each, "subscriber": large, "text": text} for each in ids)
    client.publish_all(f"{client.prefix}commands", ((json.dumps(value), large, None, 0) for value in values))
    took, sent_at = [], time.monotonic()
    for _ in range(20):
        began = time.monotonic()
        client.result("SHOW CQS", neighbour)
        took.append(time.monotonic() - began)
    assert not client.replies_to(ids[-1]), "others were still waiting"
    assert {"ok"} == {client.reply(each).code for each in ids}
    whole = time.monotonic() - sent_at
    assert max(1.0, whole / 10) > sorted(took)[-2], (took, whole)


def test_large_replies_come_in_several_units(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a batch of commands asks for, a unit of work stays small, and each command is answered once."""
    monkeypatch.setattr("gateway.commands.commands.UNIT_BYTES", 5000)
    sizes: list[int] = []
    write_unit = Commits.write_unit

    def noted(commits: Commits, work: Work, now_ms: int) -> None:
        sizes.append(sum(len(record.value or b"") for record in work.records if record.topic.endswith("replies")))
        write_unit(commits, work, now_ms)

    monkeypatch.setattr(Commits, "write_unit", noted)
    desk = Desk(ground.settings, NOW)
    texts = [
        "CREATE CQ large AS SELECT k FROM t WHERE k = 1 -- " + "x" * 1000,
        *["DESCRIBE CQ large"] * 50,
        "DROP CQ large",
    ]
    topic = ground.settings.topics.commands
    producer = Producer({"bootstrap.servers": ground.settings.kafka.bootstrap, "partitioner": "murmur2_random"})
    for number, text in enumerate(texts):
        fields = {"command_id": str(number), "subscriber": "alice", "text": text}
        producer.produce(topic, json.dumps(fields), b"alice")
    producer.flush()
    consumer = CommandConsumer(ground.settings, topic, 4)
    consumer.rewind()
    records: list[Record] = []
    while len(records) < len(texts):  # all of them make one batch
        records += consumer.read(1000, 10, 1)
    desk.carry_out(records)
    consumer.close()
    replies = LogReader(ground.settings).since(ground.settings.topics.replies, dict.fromkeys(range(4), 0))
    answered = [decode_reply(message.value) for message in replies]
    assert [(str(number), "ok") for number in range(len(texts))] == [(one.command_id, one.code) for one in answered]
    assert max(sizes) < 5000 + 3000 < sum(sizes)
