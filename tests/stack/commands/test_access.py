"""Access: signed commands, a subscriber's own destinations, topics by subscriber."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from gateway.registry.own_prefixes import OwnPrefixes
from gateway.sdk import SigningKey
from grouping.model.errors import InputError
from grouping.model.group import owner_prefix
from grouping.model.ids import Subscriber
from grouping.settings.settings import AuthSettings, Settings
from tests.ground import Ground
from tests.stack.counter import Counter

_TWINS = ("user-278437", "user-1593089")
"""Names whose prefixes are equal."""


def _signed(settings: Settings, folder: Path, *subscribers: str) -> Counter:
    """Return a gateway that requires tokens, and signs commands with the keys of these subscribers."""
    keys = {name: Ed25519PrivateKey.generate() for name in subscribers}
    for name, key in keys.items():
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pem").write_bytes(public)
    signers = {
        name: SigningKey(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
        for name, key in keys.items()
    }

    def token(subscriber: str, command_id: str, text: str) -> bytes:
        signer = signers.get(subscriber, next(iter(signers.values())))
        return signer.token(settings.topics.commands, subscriber, command_id, text)

    auth = AuthSettings(mode="token", keys=folder)
    return Counter(settings.model_copy(update={"auth": auth}), token)


def _stream(name: str, topic: str) -> str:
    return f"CREATE STREAM {name} (a STRING) WITH (topic = '{topic}', format = 'json', partitions = 1)"


def test_tokens(ground: Ground, tmp_path: Path) -> None:
    """A command that nobody signed for its subscriber is refused, and its id stays free for the subscriber."""
    counter = _signed(ground.settings, tmp_path, "alice", "bob")
    unsigned = json.dumps({"command_id": "a0", "subscriber": "alice", "text": "SHOW CQS"}).encode()
    counter.serve_records([(b"alice", unsigned)])
    assert ["not-allowed"] == [reply.code for reply in counter.replies()["a0"]]
    counter.answers("SHOW CQS")
    assert ["not-allowed", "ok"] == [reply.code for reply in counter.replies()["a0"]]
    (reply,) = counter.answers("SHOW CQS", subscriber="carol")
    assert "not-allowed" == reply.code, "another one's key signed it"


def test_forged_commands_count_against_nobody_that_they_name(ground: Ground, tmp_path: Path) -> None:
    """Alice's own command, behind 600 without her token, is answered before most of these."""
    counter = _signed(ground.settings, tmp_path, "alice")
    counter.answers("SHOW CQS")
    forged = [
        (b"alice", json.dumps({"command_id": f"f{number}", "subscriber": "alice", "text": "SHOW CQS"}).encode(), {})
        for number in range(600)
    ]
    counter.serve_behind(forged, [("own", "alice", "SHOW CQS")])
    replies = counter.replies()
    assert {("not-allowed",)} == {tuple(reply.code for reply in replies[f"f{number}"]) for number in range(600)}
    assert ["ok"] == [reply.code for reply in replies["own"]]
    assert 300 > list(replies).index("own"), "on a slow processor, more of the forged commands have turns before"


def test_destinations_of_a_subscribers_own(ground: Ground, tmp_path: Path) -> None:
    """Equal CQs of two subscribers have two destinations, each with its subscriber's prefix, also after ALTER."""
    counter = _signed(ground.settings, tmp_path, "alice", "bob")
    create = "CREATE CQ c AS SELECT a FROM s WHERE a = 'x'"
    counter.answers(_stream("s", f"x{ground.settings.prefix}"))
    for name in ("alice", "bob"):
        (created,) = counter.answers(create, subscriber=name)
        (altered,) = counter.answers("ALTER CQ c SET EVERY '1 hour'", subscriber=name)
        ids = [reply.result["destination"]["id"] for reply in (created, altered)]
        assert [True, True] == [each.startswith(owner_prefix(name)) for each in ids], ids
        assert 26 == len(ids[0])
        assert created.result["destination"]["topic"] == ground.settings.topics.own_results(ids[0])
    (twin,) = counter.answers(create.replace("CQ c", "CQ d"), subscriber="bob")
    (again,) = counter.answers(create.replace("CQ c", "CQ e"), subscriber="bob")
    assert twin.result["destination"]["id"] == again.result["destination"]["id"]


def test_a_name_with_the_prefix_of_another_is_refused(ground: Ground, tmp_path: Path) -> None:
    """An ACL on the prefix would open the topics of both: the second one gets no destination, also after a restart."""
    counter = _signed(ground.settings, tmp_path, *_TWINS)
    first, second = _TWINS
    create = "CREATE CQ c AS SELECT a FROM s WHERE a = 'x'"
    counter.answers(_stream("s", f"x{ground.settings.prefix}"), subscriber=second)
    replies = [counter.answers(create, subscriber=name)[0] for name in _TWINS]
    assert ["ok", "not-allowed"] == [reply.code for reply in replies]
    topics = f"{ground.settings.topics.results}.{owner_prefix(first)}"
    assert f'The topics of another subscriber begin with the same prefix "{topics}".' == replies[1].detail
    restarted = OwnPrefixes(ground.settings, counter.desk.working)
    restarted.check(Subscriber(first))
    with pytest.raises(InputError) as refused:
        restarted.check(Subscriber(second))
    assert "not-allowed" == refused.value.code


def test_topics_of_all_closed(ground: Ground) -> None:
    """Where results may not be shared, SHARED and VIRTUAL are refused, and CQs beyond the limit too."""
    results = ground.settings.results.model_copy(update={"shared": False, "dedicated_limit": 1})
    counter = Counter(ground.settings.model_copy(update={"results": results}))
    create = "CREATE CQ {} AS SELECT a FROM s WHERE a = '{}'"
    replies = counter.answers(
        _stream("s", f"x{ground.settings.prefix}"),
        create.format("a", "1") + " DO PUBLISH SHARED",
        create.format("a", "1") + " DO PUBLISH VIRTUAL",
        create.format("a", "1"),
        create.format("b", "1"),
        create.format("c", "2"),
    )
    codes = ["ok", "not-allowed", "not-allowed", "ok", "ok", "quota-exceeded"]
    assert codes == [reply.code for reply in replies]
    assert "dedicated" == replies[3].result["destination"]["mode"]


def test_topics_by_subscriber(ground: Ground) -> None:
    """CREATE STREAM and CREATE TABLE read the topics that a subscriber or its role is granted; CQs read any stream."""
    topic = f"x{ground.settings.prefix}"
    grants = {"alice": f"{topic}a*", "@desk": f"{topic}b"}
    streams = ground.settings.streams.model_copy(update={"grants": grants})
    auth = AuthSettings(roles={"desk": "bob, carol-*"})
    counter = Counter(ground.settings.model_copy(update={"streams": streams, "auth": auth}))
    table = f"CREATE TABLE u (a STRING PRIMARY KEY) WITH (topic = '{topic}t', format = 'json', partitions = 1)"
    refused = counter.answers(_stream("b", topic + "b"), _stream("a", topic + "a1"), table)
    assert ["not-allowed", "ok", "not-allowed"] == [reply.code for reply in refused]
    assert f"You may read topics like {topic}a*." == refused[0].detail
    for name, code in {"carol-1": "ok", "carol": "not-allowed"}.items():
        (reply,) = counter.answers(_stream(name, topic + "b"), subscriber=name)
        assert code == reply.code
    assert "You may read none." == reply.detail
    (reply,) = counter.answers("CREATE CQ c AS SELECT a FROM a", subscriber="dave")
    assert "ok" == reply.code
