"""The doctor finds every fault, finds nothing else, and repairs faults that can be repaired without a loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from gateway.doctor.doctor import Doctor
from gateway.doctor.finding import Finding
from gateway.kafka import Topics
from gateway.topics.own_topics import ensure_own_topics
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.settings import AuthSettings, Settings
from grouping.store.connection import connect
from grouping.store.constant_table import Segment
from grouping.store.keys import RedisKeys
from grouping.store.lease import Lease
from grouping.store.role_notes import RoleNotes
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.counter import Counter
from tests.stack.digests.desk import HOUR

_CQS = (
    "CREATE CQ shared AS SELECT a FROM s WHERE a = 'x'",
    "CREATE CQ same AS SELECT a FROM s WHERE a = 'x'",
    "CREATE CQ other AS SELECT a FROM s WHERE a = 'y'",
    "CREATE CQ waiting AS SELECT a FROM s WHERE a = 'z' START '2031-01-01T00:00:00Z' EXPIRE '2032-01-01T00:00:00Z'",
    "CREATE CQ paused AS SELECT a FROM s WHERE a = 'w'",
    "PAUSE CQ paused",
    "CREATE CQ timed AS SELECT a FROM s WHERE a = 'x' EVERY '1 hour'",
    "CREATE CQ daily AS SELECT a, n FROM s WHERE n > 3 EVERY CRON '0 8 * * *'",
    "CREATE CQ counted AS SELECT a, count(*) AS n FROM s WHERE n > 5 GROUP BY a EVERY '1 hour'",
    "CREATE CQ mine AS SELECT a FROM s WHERE a = 'm' DO PUBLISH DEDICATED",
    "CREATE CQ virtual AS SELECT a FROM s WHERE a = 'v' DO PUBLISH VIRTUAL",
    "CREATE CQ gone AS SELECT a FROM s WHERE a = 'g' DO PUBLISH DEDICATED",
    "DROP CQ gone",
    "CREATE TABLE limits (a STRING PRIMARY KEY, most INT) WITH (topic = 'limits-of-doctor', format = 'json',"
    " partitions = 1)",
    "CREATE VIEW high AS SELECT a, n FROM s WHERE n > 10",
    "CREATE CQ viewed AS SELECT a FROM high WHERE n > 50",
)


class _Patient:
    """A gateway with CQs of all kinds, and its doctor."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topics = Topics(settings)
        ensure_own_topics(settings, self.topics)
        self._counter = Counter(settings)
        stream = "CREATE STREAM s (a STRING, n INT) WITH (topic = 'events-of-doctor', format = 'json', partitions = 2)"
        replies = self._counter.answers(stream, *_CQS)
        replies += self._counter.answers("SET QUOTA cqs = 5 FOR bob", subscriber="root")
        assert {"ok"} == {reply.code for reply in replies}, replies
        gone = replies[1 + next(number for number, text in enumerate(_CQS) if text.startswith("CREATE CQ gone"))]
        self.topic_of_gone = str(gone.result["destination"]["topic"])
        self._counter.desk.evaluate(1)
        self.redis, self.keys = connect(settings), RedisKeys.of(settings)
        self.leases = [Lease(settings, "gateway"), Lease(settings, "evaluator")]
        for lease in self.leases:
            lease.lifetime_ms = HOUR  # nobody renews it, however slow the machine is
        self.doctor = Doctor(settings, lambda _: self._live(), self.clock)

    def clock(self) -> float:
        """Return the gateway's time."""
        return self._counter.desk.now_ms / 1000

    def _live(self) -> None:
        """Do the work of the roles while the doctor waits: a gateway whose Redis has lost its epoch recovers."""
        assert all(lease.acquire() for lease in self.leases)
        if not self.redis.exists(self.keys.epoch):
            self._counter.desk.recover()

    def codes(self) -> list[str]:
        """Return the kinds of the doctor's findings."""
        self._live()
        return sorted(finding.code for finding in self.doctor.examine())

    def topic_of(self, name: str) -> str:
        """Return the topic of a CQ."""
        (reply,) = self._counter.answers(f"DESCRIBE CQ {name}")
        return str(reply.result["destination"]["topic"])

    def stream_of(self, name: str) -> str:
        """Return the id of a stream."""
        streams = self.redis.hgetall(self.keys.streams)
        return next(each.decode() for each, body in streams.items() if json.loads(body)["name"] == name)

    def delete_topics(self, *names: str) -> None:
        """Delete topics, and return when the broker has learned of it."""
        self.topics.delete(names)
        wait_until(lambda: self.topics.names().isdisjoint(names), f"end of {names}")

    def configure_catalog(self, option: str, value: str) -> None:
        """Set an option of the catalog's topic, and return when the broker has learned of it."""
        topic = self.settings.topics.catalog
        self.topics.configure(topic, {option: value})
        wait_until(lambda: self.topics.configs([topic])[topic][option] == value, f"{option} = {value}")


def _lose_row(patient: _Patient) -> None:
    stream = patient.stream_of("s")
    version = int(patient.redis.hget(patient.keys.version, stream))
    destination = patient.topic_of("mine").rpartition(".")[2]
    patient.redis.hset(
        patient.keys.segments(stream), f"{version}-{version + 1}", Segment.of([destination], ()).encode()
    )
    patient.redis.hset(patient.keys.version, stream, version + 1)


def _damage(patient: _Patient, body: bytes | None) -> None:
    """Put something else for the largest segment, or the first half of it."""
    segments = patient.keys.segments(patient.stream_of("s"))
    field, whole = max(patient.redis.hgetall(segments).items(), key=lambda each: len(each[1]))
    patient.redis.hset(segments, field, whole[: len(whole) // 2] if body is None else body)


def _double_rows(patient: _Patient) -> None:
    segments = patient.keys.segments(patient.stream_of("s"))
    version = int(patient.redis.hget(patient.keys.version, patient.stream_of("s")))
    body = next(body for body in patient.redis.hvals(segments) if body)
    patient.redis.hset(segments, f"{version}-{version + 1}", body)
    patient.redis.hset(patient.keys.version, patient.stream_of("s"), version + 1)


def _change(patient: _Patient, key: str, **fields: str) -> None:
    """Change fields of each JSON value of a hash."""
    for name, body in patient.redis.hgetall(key).items():
        patient.redis.hset(key, name, json.dumps(json.loads(body) | fields))


_BREAKS: dict[str, tuple[Callable[[_Patient], object], list[str]]] = {
    "a CQ": (lambda it: it.redis.hdel(it.keys.cqs("alice"), "other"), ["cq-missing"]),
    "all CQs of a subscriber": (lambda it: it.redis.delete(it.keys.cqs("alice")), ["cq-missing"]),
    "a CQ too many": (
        lambda it: it.redis.hset(it.keys.cqs("alice"), "more", it.redis.hget(it.keys.cqs("alice"), "same")),
        ["cq-unknown"],
    ),
    "another CQ": (
        lambda it: it.redis.hset(it.keys.cqs("alice"), "other", it.redis.hget(it.keys.cqs("alice"), "mine")),
        ["cq-differs"],
    ),
    "a table": (lambda it: it.redis.delete(it.keys.tables), ["table-missing"]),
    "another table": (lambda it: _change(it, it.keys.tables, topic="others"), ["table-differs"]),
    "another stream": (lambda it: _change(it, it.keys.streams, framing="raw"), ["stream-differs"]),
    "a quota": (lambda it: it.redis.delete(it.keys.quotas), ["quota-missing"]),
    "a view": (lambda it: it.redis.delete(it.keys.views), ["view-missing"]),
    "a value that is none": (
        lambda it: it.redis.hset(it.keys.cqs("alice"), "other", b"\xc1"),
        ["redis-unreadable"],
    ),
    "a row": (_lose_row, ["row-missing"]),
    "rows twice": (_double_rows, ["row-unknown"]),
    "a damaged segment": (lambda it: _damage(it, b"\xc1"), ["tables-damaged"]),
    "a cut segment": (lambda it: _damage(it, None), ["tables-damaged"]),
    "the ends": (lambda it: it.redis.delete(it.keys.ends), ["end-missing"]),
    "the secrets": (lambda it: it.redis.delete(it.keys.secrets), ["secret-missing"]),
    "another secret": (lambda it: it.redis.hset(it.keys.secrets, "members", b"x" * 32), ["secret-differs"]),
    "the list of timers": (lambda it: it.redis.delete(it.keys.timed("alice")), ["timed-missing"]),
    "the command ids": (
        lambda it: it.redis.delete(*it.redis.scan_iter(match=f"{it.keys.start}:ids:*")),
        ["id-missing"],
    ),
    "all rows": (lambda it: it.redis.delete(it.keys.segments(it.stream_of("s"))), ["tables-incomplete"]),
    "a dedicated topic": (lambda it: it.delete_topics(it.topic_of("mine")), ["result-topic-missing"]),
    "a virtual topic": (lambda it: it.delete_topics(it.topic_of("virtual")), ["result-topic-missing"]),
    "a topic too many": (
        lambda it: it.topics.create({it.settings.topics.own_results("d_" + "0" * 24): 1}),
        ["result-topic-unknown"],
    ),
    "a form": (lambda it: it.configure_catalog("cleanup.policy", "delete"), ["own-topic"]),
}
"""By name of a lost or broken object: the damage, and the doctor's findings."""


@pytest.fixture(scope="module")
def patient(servers: Ground) -> Iterator[_Patient]:
    """A patient for all tests, left sound by each."""
    auth = AuthSettings(roles={"operator": "root"}, operators_by_key=True)
    settings = servers.settings.model_copy(update={"prefix": "doctor.", "auth": auth})
    ground = Ground(settings.model_copy(update={"results": settings.results.model_copy(update={"partitions": 4})}))
    yield _Patient(ground.settings)
    ground.delete_own_topics()


def test_nothing_is_found_where_nothing_is_wrong(patient: _Patient) -> None:
    """CQs of all kinds, a departed member included, are as in the catalog."""
    assert [] == patient.codes()


@pytest.mark.parametrize("name", _BREAKS)
def test_a_break_is_found_and_repaired(patient: _Patient, name: str) -> None:
    """Each is found by itself; the repair leaves nothing to be found."""
    break_it, codes = _BREAKS[name]
    break_it(patient)
    assert codes == patient.codes()
    findings = patient.doctor.examine()
    assert [findings[0].repair] == patient.doctor.repair(findings)
    wait_until(lambda: patient.codes() == [], "nothing to be found")  # brokers learn of topics a moment later


def test_a_topic_that_the_catalog_knows_is_never_deleted(patient: _Patient) -> None:
    """The topic of a CQ that has ended lately has results to read, also where Redis has lost the notice of its end."""
    assert [] == patient.codes()
    topic = patient.topic_of_gone
    assert topic in patient.topics.names()
    patient.redis.delete(patient.keys.ends)
    findings = patient.doctor.examine()
    assert ["end-missing"] == [finding.code for finding in findings]
    unknown = Finding("result-topic-unknown", topic, "", "", "delete the topic")
    patient.doctor.repair([unknown, *findings])
    assert [] == patient.codes()
    assert topic in patient.topics.names()


def test_lost_match_totals_are_found(patient: _Patient) -> None:
    """Workers have counted matches of which Redis has no total; nothing else depends on them."""
    patient.redis.hset(patient.keys.output(patient.stream_of("s")), "matches", 5)
    assert ["match-totals-missing"] == patient.codes()
    patient.redis.hset(patient.keys.match_totals(patient.stream_of("s")), "0", b"")
    assert [] == patient.codes()
    patient.redis.delete(patient.keys.match_totals(patient.stream_of("s")), patient.keys.output(patient.stream_of("s")))


def test_a_redis_that_is_not_ready_is_told(patient: _Patient) -> None:
    """A Redis with eviction, and a Redis without a confirmed epoch, which the gateway confirms itself."""
    assert [] == patient.codes()
    limit, policy = (patient.redis.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy"))
    patient.redis.config_set("maxmemory-policy", "allkeys-lru")
    patient.redis.config_set("maxmemory", 1 << 30)
    patient.redis.delete(patient.keys.epoch)
    findings = {one.code: one.repair for one in Doctor(patient.settings, lambda _: None, patient.clock).examine()}
    patient.redis.config_set("maxmemory", limit)
    patient.redis.config_set("maxmemory-policy", policy)
    assert {"redis-evicts": "", "tables-unconfirmed": ""}.items() <= findings.items()
    assert [] == patient.codes()


def test_what_cannot_be_repaired_is_told(patient: _Patient) -> None:
    """Roles without a holder, streams that stand still and a source without its topic are left to the operator."""
    fine = {"reason": None, "behind": 5, "quiet_seconds": 1.0}
    streams = {"a": fine, "b": fine | {"reason": "its topic is gone"}, "c": fine | {"quiet_seconds": 130.0}}
    streams["d"] = {"reason": None, "behind": 0, "quiet_seconds": 1e6}
    RoleNotes(patient.settings).tell("evaluator", "ready", {"streams": streams})
    alone = {
        "e": {"reason": "its evaluator/fast does not run"},
        "f": {},
        "b": {"reason": "…", "evaluator": "evaluator"},
    }
    RoleNotes(patient.settings).tell("gateway", "ready", {"streams": alone})
    for role in ("evaluator", "gateway"):
        patient.redis.persist(patient.keys.role_note(role))  # nobody tells again, however slow the machine is
    for lease in patient.leases:
        lease.release()
    patient.delete_topics("events-of-doctor", "limits-of-doctor")
    findings = list(Doctor(patient.settings, lambda _: None, patient.clock).examine())
    stopped = [("stream-stopped", "stream b"), ("stream-stopped", "stream e"), ("stream-stuck", "stream c")]
    down = [("evaluator-down", "evaluator"), ("gateway-down", "gateway")]
    shared = EvaluatorSettings(streams={"fast": "s*"})
    given = patient.settings.model_copy(update={"evaluator": shared})
    roles = {
        one.subject for one in Doctor(given, lambda _: None, patient.clock).examine() if one.code == "evaluator-down"
    }
    assert {"evaluator", "evaluator/fast"} == roles
    missing = [("source-missing", "stream s"), ("source-missing", "table limits")]
    assert [*down, *missing, *stopped] == sorted((one.code, one.subject) for one in findings)
    assert [] == patient.doctor.repair(findings)
