"""Statements that the SDK writes from their parts, as the gateway reads them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.sdk.statements import create_cq
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
    """What contradicts itself is no statement."""
    with pytest.raises(ValueError, match="cron"):
        create_cq("a", _SELECT, **parts)
