"""Topics of destinations and of groups: a refusal by Kafka is a reply, and topics of ended destinations count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

import msgspec
import pytest
from confluent_kafka.admin import AdminClient

from gateway.kafka import Record, TransactionalWriter
from grouping.settings.settings import AuthSettings, LimitSettings, ResultSettings, Settings
from tests.ground import Ground
from tests.kafka_client import DEADLINE, wait_until
from tests.stack.counter import Counter
from tests.stack.digests.desk import HOUR, let_pass


def _limited(ground: Ground, **results: int) -> Settings:
    limited = ResultSettings(retention_hours=1, linger_seconds=60, **results)
    return ground.settings.model_copy(update={"results": limited})


def _topics(settings: Settings) -> set[str]:
    """Return which destinations and groups have topics."""
    there = AdminClient({"bootstrap.servers": settings.kafka.bootstrap}).list_topics(timeout=30).topics
    own = settings.topics.own_results("")
    return {name.removeprefix(own) for name in there if name.startswith(own)}


def _await_topics(settings: Settings, wanted: set[str]) -> None:
    """Return once these destinations and groups have topics, and no others: a thread deletes them."""
    wait_until(lambda: _topics(settings) == wanted, f"the topics of {wanted or 'nobody'} alone")


def _create(number: int, clauses: str = "") -> str:
    return f"CREATE CQ c{number} AS SELECT k FROM t WHERE k = {number} {clauses}"


def test_a_refused_topic_is_an_answer(ground: Ground) -> None:
    """Where a name collides, DEDICATED and VIRTUAL are refused, without a word it is shared, and the others go on."""
    counter = Counter(ground.settings)
    made = counter.answers(*(_create(number, "DO PUBLISH DEDICATED") for number in range(2)), _create(2), _create(3))
    virtual = counter.answers(_create(4, "DO PUBLISH VIRTUAL"))
    own = [reply.result["destination"]["topic"] for reply in [*made, *virtual]]
    counter.answers(*(f"DROP CQ c{number}" for number in range(5)))
    let_pass(counter.desk, 1_000)
    counter.desk.now_ms += HOUR
    let_pass(counter.desk, 1_000)
    _await_topics(ground.settings, set())
    for topic in (own[0], own[2], own[4]):
        ground.make_topic(topic.replace(".", "_"), 1)
    again = counter.answers(
        *(_create(number, "DO PUBLISH DEDICATED") for number in range(2)),
        *(_create(number) for number in (2, 3)),
        _create(4, "DO PUBLISH VIRTUAL"),
        _create(5),
    )
    assert ["not-allowed", "ok", "ok", "ok", "not-allowed", "ok"] == [reply.code for reply in again]
    assert "collides" in (again[0].detail or "")
    modes = [reply.result["destination"]["mode"] for reply in again if reply.result]
    assert ["dedicated", "shared", "dedicated", "dedicated"] == modes


def test_topics_of_ended_destinations_count(ground: Ground) -> None:
    """CREATE and DROP in a loop leave twice the limit of topics at most, and wordless CQs leave some to who asks."""
    settings = _limited(ground, dedicated_limit=4)
    counter = Counter(settings)
    created = counter.answers(*(text for n in range(9) for text in (_create(n), f"DROP CQ c{n}")))[::2]
    modes = [reply.result["destination"]["mode"] for reply in created]
    assert ["dedicated"] * 3 == modes[:3] and "shared" == modes[-1]
    for number in range(9):
        counter.answers(_create(number), f"DROP CQ c{number}")
    wait_until(lambda: len(_topics(settings)) == 6, "six topics")
    for number in (20, 21):
        asked = counter.answers(_create(number, "DO PUBLISH DEDICATED"), f"DROP CQ c{number}")
        assert ["ok", "ok"] == [reply.code for reply in asked]
    wait_until(lambda: len(_topics(settings)) == 8, "eight topics")
    taken_over, refused = counter.answers(_create(0), _create(10, "DO PUBLISH DEDICATED"))
    assert ("dedicated", "quota-exceeded") == (taken_over.result["destination"]["mode"], refused.code)
    counter.answers("DROP CQ c0")
    let_pass(counter.desk, 70_000)
    _await_topics(settings, set())
    assert ["ok"] == [reply.code for reply in counter.answers(_create(10, "DO PUBLISH DEDICATED"))]


def test_topics_of_groups_are_limited(ground: Ground) -> None:
    """More groups with virtual destinations than the limit are refused; another CQ of a group that has one is not."""
    counter = Counter(_limited(ground, virtual_limit=1))
    replies = counter.answers(
        "CREATE CQ a AS SELECT k FROM t WHERE k = 1 DO PUBLISH VIRTUAL",
        "CREATE CQ b AS SELECT k FROM t WHERE k < 1 DO PUBLISH VIRTUAL",
        "CREATE CQ c AS SELECT k FROM t WHERE k = 2 DO PUBLISH VIRTUAL",
    )
    assert ["ok", "quota-exceeded", "ok"] == [reply.code for reply in replies]


def test_a_topic_that_somebody_deleted_is_made_again(ground: Ground) -> None:
    """A CQ that joins a live destination whose topic is gone is answered, and the topic is there again."""
    counter = Counter(ground.settings)
    [first] = counter.answers(_create(1))
    topic = first.result["destination"]["topic"]
    ground.delete_topic(topic)
    [second] = counter.answers(_create(1), subscriber="bob")
    assert ("ok", topic) == (second.code, second.result["destination"]["topic"])
    _await_topics(ground.settings, {first.result["destination"]["id"]})


def test_topics_that_nobody_wants_go_at_the_start(ground: Ground) -> None:
    """Topics created for a CQ by a gateway that died are deleted by the next; topics of live CQs are not."""
    counter = Counter(ground.settings)
    kept = [reply.result["destination"]["id"] for reply in counter.answers(_create(1), _create(2))]
    for owner in ("d", "g"):
        ground.make_topic(ground.settings.topics.own_results(f"{owner}_{'0' * 24}"), 1)
    counter.desk.recover()
    _await_topics(ground.settings, set(kept))


def test_a_groups_topic_goes_with_its_last_virtual_cq(ground: Ground) -> None:
    """Live CQs of the group with other destinations do not keep it; a later virtual CQ has it anew."""
    counter = Counter(_limited(ground))
    _, virtual = counter.answers(_create(1, "DO PUBLISH SHARED"), _create(2, "DO PUBLISH VIRTUAL"))
    topic = virtual.result["destination"]["topic"]
    counter.answers("DROP CQ c2")
    counter.desk.recover()
    assert topic in counter.desk.topics.names(), "its readers may not be done"
    let_pass(counter.desk, 70_000)
    _await_topics(ground.settings, set())
    [again] = counter.answers(_create(3, "DO PUBLISH VIRTUAL"))
    counter.desk.recover()
    assert topic == again.result["destination"]["topic"]
    _await_topics(ground.settings, {topic.removeprefix(ground.settings.topics.own_results(""))})


def test_a_topic_that_lingers_gets_the_partitions_of_its_source(ground: Ground) -> None:
    """Partitions that came while no virtual CQ of a group lived are there for the next one, and its reader."""
    counter = Counter(_limited(ground))
    create = _create(1, "DO PUBLISH VIRTUAL")
    [first] = counter.answers(create)
    counter.answers("DROP CQ c1")
    working = counter.desk.working
    stream = working.inventory.streams["s_bench"]
    working.unit.sources.replace_stream(msgspec.structs.replace(stream, start_offsets={**stream.start_offsets, "2": 0}))
    [again] = counter.answers(create)
    assert [2, 3] == [len(reply.result["destination"]["offset"]) for reply in (first, again)]


def test_commands_that_wait_for_kafka_hold_up_nobody(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has a topic made, or asks about one, is held with its subscriber's later commands; others go on.

    Kafka makes no topic and no partition before a command of somebody else was carried out.
    """
    counter = Counter(_limited(ground))
    others_served = threading.Event()
    _hold_until(others_served, monkeypatch)
    take_turns = counter.desk.take_turns

    def turns_taken(messages: Sequence[Record]) -> int:
        done = take_turns(messages)
        if done:
            others_served.set()
        return done

    monkeypatch.setattr(counter.desk, "take_turns", turns_taken)
    with_topic = f"WITH (topic = 'x{ground.settings.prefix}{{}}', format = 'json', partitions = 2)"
    own = _create(1, "EVERY '10 seconds' DO PUBLISH DEDICATED"), "ALTER CQ c1 SET EVERY '20 seconds'"
    made = (f"CREATE STREAM s (k BIGINT) {with_topic.format('s')}", "CREATE CQ c2 AS SELECT k FROM s")
    statements = (f"CREATE TABLE u (k BIGINT PRIMARY KEY) {with_topic.format('u')}", "DESCRIBE TABLE u", "DROP TABLE u")
    commands = [
        (name, text) for name, texts in (("alice", own), ("bob", made), ("carol", statements)) for text in texts
    ]
    _, replies = counter.in_turns(*commands, ("dave", "SHOW CQS"))
    assert replies[-1].replied_at < min(reply.replied_at for reply in replies[:-1]), "others are held"
    assert ["ok"] * 8 == [reply.code for reply in replies]
    assert ["dedicated", "dedicated"] == [reply.result["destination"]["mode"] for reply in replies[:2]]
    create = _create(3, "DO PUBLISH VIRTUAL")
    counter.answers(create, "DROP CQ c3")
    stream = counter.desk.working.inventory.streams["s_bench"]
    grown = msgspec.structs.replace(stream, start_offsets={**stream.start_offsets, "2": 0})
    counter.desk.working.unit.sources.replace_stream(grown)
    others_served.clear()
    _, [wider, other] = counter.in_turns(("alice", create), ("dave", "SHOW CQS"))
    assert other.replied_at < wider.replied_at
    assert 3 == len(wider.result["destination"]["offset"])


def _hold_until(event: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Kafka's admin client make topics and partitions only once the event is set."""
    for method in ("create_topics", "create_partitions"):
        make = getattr(AdminClient, method)

        def held(
            client: AdminClient, *arguments: object, _make: Callable[..., object] = make, **named: object
        ) -> object:
            assert event.wait(DEADLINE), "nobody else was served"
            return _make(client, *arguments, **named)

        monkeypatch.setattr(AdminClient, method, held)


def test_the_writer_is_told_of_topics_that_are_made(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer may have written to a deleted topic of the same name."""
    topics_noted: list[str] = []
    note_made = TransactionalWriter.note_made

    def noted(writer: TransactionalWriter, topics: Collection[str]) -> None:
        topics_noted.extend(topics)
        note_made(writer, topics)

    monkeypatch.setattr(TransactionalWriter, "note_made", noted)
    counter = Counter(ground.settings)
    for _ in range(2):
        [created, _] = counter.answers(_create(1, "DO PUBLISH DEDICATED"), "DROP CQ c1")
        let_pass(counter.desk, 1_000)
        counter.desk.now_ms += HOUR
        let_pass(counter.desk, 1_000)
        _await_topics(ground.settings, set())
    assert [created.result["destination"]["topic"]] * 2 == topics_noted


def test_each_subscriber_has_a_share_of_the_topics(ground: Ground) -> None:
    """Who has had as many topics made as its share gets shared destinations, or is refused; others have theirs."""
    limits = LimitSettings(dedicated_per_subscriber=2, virtual_per_subscriber=1)
    auth = AuthSettings(roles={"operator": "root"}, operators_by_key=True)
    settings = ground.settings.model_copy(update={"limits": limits, "auth": auth})
    counter = Counter(settings)

    def modes(who: str, *texts: str) -> list[str]:
        replies = counter.answers(*texts, subscriber=who)
        return [reply.code if reply.result is None else reply.result["destination"]["mode"] for reply in replies]

    plain = [_create(number) for number in range(1, 5)]
    assert ["dedicated", "dedicated", "shared", "shared"] == modes("mallory", *plain)
    assert ["quota-exceeded"] == modes("mallory", _create(5, "DO PUBLISH DEDICATED"))
    own = settings.topics.own_results("d_")
    assert 2 == sum(name.startswith(own) for name in counter.desk.topics.names())
    assert ["virtual"] == modes("mallory", _create(6, "DO PUBLISH VIRTUAL"))
    other_group = "CREATE CQ c7 AS SELECT k FROM t WHERE k > 7 DO PUBLISH VIRTUAL"
    assert ["quota-exceeded"] == modes("mallory", other_group)
    assert ["virtual", "dedicated"] == modes("bob", other_group, _create(8, "DO PUBLISH DEDICATED"))
    counter.desk.working.wipe()
    counter.desk.recover()
    assert ["quota-exceeded"] == modes("mallory", _create(5, "DO PUBLISH DEDICATED"))
    counter.answers("DROP CQ c1", subscriber="mallory")
    assert ["dedicated"] == modes("mallory", _create(1)), "the topic that lingers is taken over"
    counter.answers("SET QUOTA dedicated = 3, virtual = 2 FOR mallory", subscriber="root")
    fifth, sixth = _create(5, "DO PUBLISH DEDICATED"), _create(6, "DO PUBLISH DEDICATED").replace("c6", "c9")
    assert ["dedicated", "quota-exceeded", "virtual"] == modes("mallory", fifth, sixth, other_group)
