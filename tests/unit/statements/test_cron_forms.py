"""Cron expressions as people write them for cron, Quartz, AWS and Jenkins: each is right, or has the nearest form."""

from __future__ import annotations

import pytest

from gateway.model.records import TriggerSpec
from gateway.registry.grid import next_tick, previous_tick
from grouping.model.errors import InputError
from grouping.statements.clauses import read_clauses
from grouping.statements.tokens import Tokens
from grouping.values.cron import parse_cron

_RIGHT = {
    "0 8 * * MON": "0 8 * * MON",
    "0 8 * * mon-fri": "0 8 * * mon-fri",
    "0 8 * * MON,WED,FRI": "0 8 * * MON,WED,FRI",
    "0 8 * * MONDAY": "0 8 * * MON",
    "0 8 * * Monday-Friday": "0 8 * * Mon-Fri",
    "0 8 * * 1-5": "0 8 * * 1-5",
    "0 8 * * 0": "0 8 * * 0",
    "0 8 * * 7": "0 8 * * 7",
    "0 8 * * ?": "0 8 * * *",
    "0 8 ? * MON": "0 8 * * MON",
    "0 8 1 * ?": "0 8 1 * *",
    "*/5 * * * *": "*/5 * * * *",
    "5/15 * * * *": "5/15 * * * *",
    "0-30/10 * * * *": "0-30/10 * * * *",
    "0,30 9-17 * * *": "0,30 9-17 * * *",
    "0 0 1,15 * *": "0 0 1,15 * *",
    "0 0 1 JAN *": "0 0 1 JAN *",
    "0 0 1 january-march *": "0 0 1 jan-mar *",
    "0 0 L * *": "0 0 L * *",
    "0 0 LW * *": "0 0 LW * *",
    "0 0 * * 5L": "0 0 * * 5L",
    "0 0 * * MON#1": "0 0 * * MON#1",
    "  0   8 * * *": "0 8 * * *",
    "0 08 * * *": "0 08 * * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    " @Daily ": "0 0 * * *",
}
_NEAREST = {
    "@every 5m": "EVERY '5 minutes'",
    "@dayly": '"@daily"',
    "@reboot": "@hourly",
    "rate(1 hour)": "EVERY '1 hour'",
    "cron(0 8 ? * MON *)": "'0 8 * * MON'",
    "0 0 8 * * MON": "'0 8 * * MON', without seconds",
    "0 0 8 ? * MON 2026": "'0 8 * * MON', without seconds",
    "H 8 * * *": "'0 8 * * *'",
    "0 24 * * *": "'0 0 * * *'",
    "0 22-2 * * *": "'0 22-23,0-2 * * *'",
    "0 8 * * FRI-MON": "'0 8 * * FRI-SAT,SUN-MON'",
    "0 8 * * SAT-SUN": "'0 8 * * SAT,SUN'",
    "0 0 1 11-2 *": "'0 0 1 11-12,1-2 *'",
    "0 8 * * Mo": '"MON"',
    "0 8 * * lunes": "The names of the day of week are SUN",
    "0 0 1 janvier *": '"JAN"',
    "60 * * * *": "every Monday at eight",
    "* * * *": "every Monday at eight",
    "0 0 31 4 *": "every Monday at eight",
    "0 0 15W * *": "every Monday at eight",
    "@every 1h30m": "EVERY '90 minutes'",
    "@every 24h": "EVERY '24 hours'",
    "every 5 minutes": "EVERY '5 minutes'",
    "PT5M": "EVERY 'PT5M'",
    "*/30 * * * * *": "EVERY '30 seconds'",
    "* * * * * *": "EVERY '1 second'",
    "*/90 * * * *": "EVERY '90 minutes'",
    "0 */36 * * *": "EVERY '36 hours'",
    "0 15 10 ? * 6#3": "'15 10 * * FRI#3', without seconds",
    "0 15 10 ? * 2-6": "'15 10 * * MON-FRI', without seconds",
    "0 15 10 ? * 6L 2026": "'15 10 * * 5L', without seconds and year",
    "0 0 8 ? * 1,7": "'0 8 * * SUN,SAT', without seconds",
    "0 0 8 * * 1-5": "'0 8 * * 1-5', without seconds",
    "cron(0 8 ? * 2 *)": "'0 8 * * MON'",
    "0 0 * * FRIL": "'0 0 * * 5L'",
    "H/15 * * * *": "'*/15 * * * *'",
    "H H(0-7) * * *": "'0 0 * * *'",
    "0 8 * * MON, WED": "'0 8 * * MON,WED'",
    "CRON_TZ=Europe/Madrid 0 8 * * *": "'0 8 * * *' AT TIME ZONE 'Europe/Madrid'",
    "0 8 * * MON europe/madrid": "'0 8 * * MON' AT TIME ZONE 'Europe/Madrid'",
}
_ZONES = {
    "Europe/Madrid": "Europe/Madrid",
    "europe/madrid": "Europe/Madrid",
    "+02:00": "+02:00",
    "-03:30": "-03:30",
    "+0530": "+05:30",
    "+2": "+02:00",
    "UTC+2": "+02:00",
    "gmt-03:00": "-03:00",
    "+00:00": "UTC",
    "z": "UTC",
    "utc": "UTC",
    "Etc/GMT+5": "Etc/GMT+5",
}


@pytest.mark.parametrize(("written", "read"), _RIGHT.items())
def test_an_expression_is_read(written: str, read: str) -> None:
    """The expression is kept in its five fields, so equal ones share a destination."""
    trigger = parse_cron(written)
    assert trigger.cron == read
    assert next_tick(TriggerSpec(cron=trigger.cron, zone=trigger.zone), 0) is not None


@pytest.mark.parametrize(("written", "hint"), _NEAREST.items())
def test_another_form_is_refused_with_the_nearest(written: str, hint: str) -> None:
    """A form of another scheduler, and a slip in one field, have a hint with what to write."""
    with pytest.raises(InputError) as raised:
        parse_cron(written)
    assert raised.value.code == "bad-interval"
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(("written", "read"), _ZONES.items())
def test_a_zone_may_be_an_offset(written: str, read: str) -> None:
    """An offset has one form, whatever its spelling; a name of the database stays a name."""
    assert parse_cron("0 8 * * *", written).zone == read


def test_an_abbreviation_is_no_neighbouring_zone() -> None:
    """PST is not MST: the hint names a zone with this abbreviation."""
    with pytest.raises(InputError) as raised:
        parse_cron("0 8 * * *", "PST")
    assert "America/Los_Angeles" in str(raised.value.hint)


@pytest.mark.parametrize("zone", ["+19:00", "+01:60", "++1", "02:00", "+", "UTC+", "+1:2:3"])
def test_no_offset_is_no_zone(zone: str) -> None:
    """An offset beyond 18 hours or of an odd form is refused."""
    with pytest.raises(InputError, match="is not known"):
        parse_cron("0 8 * * *", zone)


def test_ticks_of_a_fixed_offset() -> None:
    """Eight o'clock two hours east of UTC is six o'clock in UTC, the whole year, forwards and backwards."""
    six = 6 * 3_600_000
    trigger = TriggerSpec(cron="0 8 * * *", zone="+02:00")
    assert next_tick(trigger, 0) == six
    assert next_tick(trigger, six) == six + 86_400_000
    assert previous_tick(trigger, six + 1) == six
    assert next_tick(TriggerSpec(cron="*/30 * * * *", zone="-03:30"), 0) == 1_800_000


def test_the_clause_takes_these_forms() -> None:
    """EVERY CRON reads a short form and an offset."""
    clauses = read_clauses(Tokens("EVERY CRON '@daily' AT TIME ZONE '+02:00'"))
    assert (clauses.trigger.cron, clauses.trigger.zone) == ("0 0 * * *", "+02:00")  # type: ignore[union-attr]
    assert len(_RIGHT) + len(_NEAREST) >= 45
