"""Every code of docs/commands.md that a statement can get, with its texts."""

from __future__ import annotations

import json

import pytest

from tests.stack.lab import Lab, Source

COLUMNS = (
    "symbol STRING, price DOUBLE, qty INT, volume BIGINT, flag BOOLEAN, amount DECIMAL(10,2), day DATE, at TIMESTAMP"
)

REJECTED: dict[str, tuple[str, str]] = {
    "no SELECT": ("CREATE CQ a AS", "syntax-error"),
    "a word too many": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE symbol = 'a' banana split", "syntax-error"),
    "open string": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE symbol = 'a", "syntax-error"),
    "open parenthesis": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE (price > 1", "syntax-error"),
    "open comment": ("CREATE CQ a AS SELECT symbol FROM {s} /* where", "syntax-error"),
    "two statements": ("DROP CQ a; DROP CQ b", "syntax-error"),
    "empty list": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE qty IN ()", "syntax-error"),
    "clause twice": ("CREATE CQ a AS SELECT symbol FROM {s} DO PUBLISH SHARED DO PUBLISH SHARED", "syntax-error"),
    "bare select": ("SELECT symbol FROM {s}", "unknown-statement"),
    "insert": ("INSERT INTO {s} VALUES (1)", "unknown-statement"),
    "no SQL": ("hello world", "unknown-statement"),
    "stream": ("CREATE CQ a AS SELECT symbol FROM nowhere", "unknown-stream"),
    "drop stream": ("DROP STREAM nowhere", "unknown-stream"),
    "describe stream": ("DESCRIBE STREAM nowhere", "unknown-stream"),
    "column in where": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE prise > 1", "unknown-column"),
    "column in select": ("CREATE CQ a AS SELECT prise FROM {s}", "unknown-column"),
    "function": ("CREATE CQ a AS SELECT frobnicate(price) AS f FROM {s}", "unknown-function"),
    "string column, number": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE symbol = 1", "type-mismatch"),
    "number column, string": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE price > 'high'", "type-mismatch"),
    "boolean column, number": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE flag = 1", "type-mismatch"),
    "date column, no date": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE day = 'tomorrow'", "type-mismatch"),
    "list of two kinds": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE symbol IN ('a', 1)", "type-mismatch"),
    "39 digits": (f"CREATE CQ a AS SELECT {'1' * 39} AS n FROM {{s}}", "type-mismatch"),
    "a text too long": (
        "CREATE CQ a AS SELECT repeat(repeat(symbol, 1000), 1000) AS t FROM {s}",
        "unsupported-query",
    ),
    "distinct": ("CREATE CQ a AS SELECT DISTINCT symbol FROM {s}", "unsupported-query"),
    "order": ("CREATE CQ a AS SELECT symbol FROM {s} ORDER BY symbol", "unsupported-query"),
    "limit": ("CREATE CQ a AS SELECT symbol FROM {s} LIMIT 1", "unsupported-query"),
    "union": ("CREATE CQ a AS SELECT symbol FROM {s} UNION ALL SELECT symbol FROM {s}", "unsupported-query"),
    "aggregate": ("CREATE CQ a AS SELECT count(*) AS n FROM {s}", "unsupported-query"),
    "join": ("CREATE CQ a AS SELECT a.symbol FROM {s} a JOIN {s} b ON a.symbol = b.symbol", "unsupported-query"),
    "subquery": ("CREATE CQ a AS SELECT symbol FROM (SELECT symbol FROM {s} LIMIT 1) x", "unsupported-query"),
    "subquery in where": (
        "CREATE CQ a AS SELECT symbol FROM {s} WHERE qty IN (SELECT qty FROM {s})",
        "unsupported-query",
    ),
    "present time": ("CREATE CQ a AS SELECT symbol FROM {s} WHERE at < current_timestamp()", "unsupported-query"),
    "no alias": ("CREATE CQ a AS SELECT price * 2 FROM {s}", "unsupported-query"),
    "one name twice": ("CREATE CQ a AS SELECT symbol, qty AS symbol FROM {s}", "unsupported-query"),
    "unknown cq": ("DROP CQ nope", "unknown-cq"),
    "describe unknown": ("DESCRIBE CQ nope", "unknown-cq"),
    "explain unknown": ("EXPLAIN CQ nope", "unknown-cq"),
    "stream exists": ("CREATE STREAM {s} (a INT) WITH (topic = 'x', format = 'json', partitions = 1)", "stream-exists"),
    "no topic": ("CREATE STREAM other (a INT) WITH (topic = 'no-such-topic', format = 'json')", "stream-mismatch"),
    "a topic that Kafka will not have": (
        "CREATE STREAM other (a INT) WITH (topic = 'cq_commands', format = 'json', partitions = 1)",
        "stream-mismatch",
    ),
    "our own topic": ("CREATE STREAM other (a INT) WITH (topic = 'cq.commands', format = 'json')", "not-allowed"),
    "schema lacks a column": (
        "CREATE STREAM other (a INT) WITH (topic = 'cq-t', format = 'avro', partitions = 1, "
        'schema = \'{{"type": "record", "name": "R", "fields": []}}\')',
        "stream-mismatch",
    ),
    "no tick after START": (
        "CREATE CQ a AS SELECT symbol FROM {s} START '9999-12-31T23:30:00Z' EVERY CRON '0 8 * * MON'",
        "bad-time",
    ),
    "digest without every": ("CREATE CQ a AS SELECT symbol FROM {s} DO PUBLISH DIGEST ALL", "bad-interval"),
}


@pytest.fixture(scope="module")
def source(shared_lab: Lab) -> Source:
    """A stream with a column of every type."""
    return shared_lab.stream(COLUMNS)


@pytest.mark.parametrize("case", REJECTED)
def test_rejections_have_stable_codes(shared_lab: Lab, source: Source, case: str) -> None:
    """A statement that cannot be carried out is answered once, with its code and a message in lower case."""
    text, code = REJECTED[case]
    reply = shared_lab.client.execute(text.format(s=source.name), shared_lab.subscriber())
    assert ("rejected", code) == (reply.fields["status"], reply.code), reply.fields
    assert reply.fields["message"] and "Traceback" not in json.dumps(reply.fields)
    assert code != "unsupported-query" or reply.fields["detail"], reply.fields
    assert reply.fields["result"] is None


def test_near_names_are_hinted(shared_lab: Lab, source: Source) -> None:
    """The message names the thing in quotes, and the hint a near name (docs/commands.md)."""
    client, alice = shared_lab.client, shared_lab.subscriber()
    shared_lab.create("intel_watch", f"SELECT symbol FROM {source.name}")
    for text, wrong, near in (
        (f"CREATE CQ a AS SELECT symbl FROM {source.name}", "symbl", "symbol"),
        (f"CREATE CQ a AS SELECT symbol FROM {source.name[:-1]}", source.name[:-1], source.name),
        ("DROP CQ intel_wach", "intel_wach", "intel_watch"),
    ):
        fields = client.execute(text, alice).fields
        assert f'"{wrong}"' in fields["message"], fields
        assert near in (fields["hint"] or ""), fields


def test_a_query_that_never_matches_has_warnings(shared_lab: Lab, source: Source) -> None:
    """A comparison with NULL is accepted with a warning in the reply, and in DESCRIBE; other queries have no field."""
    never = shared_lab.create("never", f"SELECT symbol FROM {source.name} WHERE price = NULL")
    plain = shared_lab.create("plain", f"SELECT symbol FROM {source.name} WHERE price IS NULL")
    described = shared_lab.client.result("DESCRIBE CQ never", shared_lab.subscriber())
    assert ['"price = NULL" is never TRUE. Write price IS NULL.'] == described["warnings"] == never["warnings"]
    assert "warnings" not in plain


def test_cq_exists(shared_lab: Lab, source: Source) -> None:
    """A second CREATE of a name, in any case, is refused, and the first CQ stays as it was."""
    alice = shared_lab.subscriber()
    shared_lab.create("twice", f"SELECT symbol FROM {source.name}")
    before = shared_lab.client.result("DESCRIBE CQ twice", alice)
    assert "cq-exists" == shared_lab.client.execute(f"CREATE CQ TWICE AS SELECT qty FROM {source.name}", alice).code
    assert before == shared_lab.client.result("DESCRIBE CQ Twice", alice)


def test_stream_in_use(shared_lab: Lab, source: Source) -> None:
    """A stream on which a CQ stands cannot be dropped."""
    shared_lab.create("holds", f"SELECT symbol FROM {source.name}")
    assert (
        "stream-in-use" == shared_lab.client.execute(f"DROP STREAM {source.name}", shared_lab.subscriber("owner")).code
    )
