"""Statements that the SDK writes from their parts, as the gateway reads them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.sdk.statements import create_cq, create_table, create_view
from grouping.statements.command import parse

_SELECT = "SELECT price FROM quotes"


def test_cron_and_its_zone() -> None:
    """Digests at the times of a cron expression, with the clauses around it."""
    text = create_cq("a", _SELECT, cron="0 8 * * MON", zone="Europe/Madrid", expire=timedelta(days=1))
    plain = f"CREATE CQ a AS {_SELECT} EVERY CRON '0 8 * * MON' AT TIME ZONE 'Europe/Madrid' EXPIRE AFTER '1 day'"
    assert parse(plain) == parse(text)
    assert parse(f"CREATE CQ a AS {_SELECT} EVERY CRON '0 8 * * *'") == parse(create_cq("a", _SELECT, cron="0 8 * * *"))


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
