"""Statements that the SDK writes from their parts, as the gateway reads them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from gateway.sdk.statements import create_cq, create_table, create_view
from grouping.model.query import CreateCq
from grouping.statements.command import parse

_SELECT = "SELECT price FROM quotes"


def test_cron_and_its_zone() -> None:
    """Digests at the times of a cron expression, with the clauses around it."""
    text = create_cq("a", _SELECT, cron="0 8 * * MON", zone="Europe/Madrid", expire=timedelta(days=1))
    plain = f"CREATE CQ a AS {_SELECT} EVERY CRON '0 8 * * MON' AT TIME ZONE 'Europe/Madrid' EXPIRE AFTER '1 day'"
    assert parse(plain) == parse(text)
    assert parse(f"CREATE CQ a AS {_SELECT} EVERY CRON '0 8 * * *'") == parse(create_cq("a", _SELECT, cron="0 8 * * *"))


def test_a_comment_after_the_select_ends_before_the_clauses() -> None:
    """A `--` comment runs to the end of its line, and no clause is on this line."""
    clauses = "DO PUBLISH SHARED START '2026-11-21T10:00:00Z' EVERY '10 minutes' EXPIRE AFTER '86400 seconds'"
    text = create_cq(
        "a",
        f"{_SELECT} -- the cheap ones",
        publish="SHARED",
        start="2026-11-21T10:00:00Z",
        every="10 minutes",
        expire=timedelta(days=1),
    )
    expected, found = parse(f"CREATE CQ a AS {_SELECT} {clauses}"), parse(text)
    assert isinstance(expected, CreateCq) and isinstance(found, CreateCq)
    assert msgspec.structs.replace(found, select=_SELECT) == msgspec.structs.replace(expected, select=_SELECT)
    assert create_cq("a", _SELECT) == f'CREATE CQ "a" AS {_SELECT}'


@pytest.mark.parametrize("parts", [{"cron": "0 8 * * *", "every": "1 day"}, {"zone": "UTC"}])
def test_an_interval_is_no_cron(parts: dict[str, str]) -> None:
    """Contradictory arguments are refused."""
    with pytest.raises(ValueError, match="cron"):
        create_cq("a", _SELECT, **parts)


def test_an_unknown_clause_is_a_type_error() -> None:
    """A misspelt clause is refused as a misspelt argument is."""
    with pytest.raises(TypeError, match="evry"):
        create_cq("a", _SELECT, evry="1 day")  # type: ignore[call-arg]


def test_tables_and_views() -> None:
    """Tables and views from their parts equal the ones written out."""
    columns = {"symbol": "STRING", "venue": "STRING", "beta": "DOUBLE"}
    options: dict[str, str | int] = {"topic": "p", "format": "json", "partitions": 2}
    table = """CREATE TABLE "p-1" (symbol STRING, venue STRING, beta DOUBLE, PRIMARY KEY (symbol, venue))
        WITH (topic = 'p', format = 'json', partitions = 2)"""
    assert parse(table) == parse(create_table("p-1", columns, ["symbol", "venue"], options))
    assert parse(f"CREATE VIEW hot AS {_SELECT}") == parse(create_view("hot", f" {_SELECT};"))
