"""`cq export --all`: all sources and CQs as statements, which create them again."""

from __future__ import annotations

import re

from gateway.cli.scripts.script import statements_of
from gateway.cli.scripts.subscriber_change import by_subscriber
from gateway.cli.scripts.whole_script import whole_script
from gateway.doctor.catalog import read_catalog
from grouping.settings.settings import Settings
from tests.ground import Ground
from tests.stack.counter import Counter

_OF_ALICE = (
    "CREATE STREAM seen (a STRING, at TIMESTAMP) WITH (topic = 'whole-t', format = 'json', partitions = 2)",
    "CREATE TABLE limits (a STRING PRIMARY KEY, most INT)"
    " WITH (topic = 'whole-limits', format = 'json', partitions = 1)",
    "CREATE VIEW high AS SELECT s.a, most FROM seen s JOIN limits l ON s.a = l.a WHERE most > 10",
    "CREATE VIEW closed WITH (access = 'granted') AS SELECT a FROM seen",
    "GRANT READ ON VIEW closed TO 'bob'",
    "CREATE CQ \"B;b\" AS SELECT a FROM high WHERE a = 'it''s;' DO PUBLISH SHARED EVERY '1 hour'",
    "CREATE CQ later AS SELECT a FROM seen -- all\r; SET SUBSCRIBER bob; DROP CQ later",
    "PAUSE CQ later",
    "CREATE CQ gone AS SELECT a FROM seen",
    "DROP CQ gone",
)
_OF_BOB = (
    "CREATE VIEW a_first AS SELECT a FROM high",
    "CREATE CQ later AS SELECT a FROM a_first WHERE a = 'x'",
)
_ODD = 'o"neil'
_OF_ODD = ("CREATE CQ own AS SELECT a FROM seen",)


def _statements(settings: Settings) -> list[str]:
    """Return all statements but the first, which creates the stream shared by all gateways of these tests."""
    first, *others = whole_script(read_catalog(settings))
    assert first.startswith('CREATE STREAM "t" ')
    return others


def test_all_of_it_is_made_again(ground: Ground) -> None:
    """Another gateway with these statements exports the same statements: of each subscriber, paused CQs included."""
    first = Counter(ground.settings)
    for subscriber, texts in (("alice", _OF_ALICE), ("bob", _OF_BOB), (_ODD, _OF_ODD)):
        assert [] == [reply for reply in first.answers(*texts, subscriber=subscriber) if reply.code != "ok"]
    statements = _statements(ground.settings)
    assert [
        'SET SUBSCRIBER "alice"', "CREATE STREAM", "CREATE TABLE", "CREATE VIEW", "CREATE VIEW",
        "GRANT READ ON VIEW \"closed\" TO 'bob'", 'SET SUBSCRIBER "bob"', "CREATE VIEW",
        'SET SUBSCRIBER "alice"', "CREATE CQ", "CREATE CQ", 'PAUSE CQ "later"', 'SET SUBSCRIBER "bob"', "CREATE CQ",
        'SET SUBSCRIBER "o""neil"', "CREATE CQ",
    ] == [re.sub("(CREATE [A-Z]+) .*| FOR '.*", r"\1", each, flags=re.DOTALL) for each in statements]  # fmt: skip
    other = ground.settings.model_copy(update={"prefix": f"x{ground.settings.prefix}"})
    second = Counter(other)
    try:
        for subscriber, texts in by_subscriber(statements_of("\n;".join(statements)), None):
            replies = second.answers(*texts, subscriber=str(subscriber))
            assert [] == [reply for reply in replies if reply.code != "ok"]
        assert statements == _statements(other)
    finally:
        Ground(other).delete_own_topics()
