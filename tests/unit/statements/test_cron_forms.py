"""Cron expressions as people write them for cron, Quartz, AWS and Jenkins: each is right, or has the nearest form."""

from __future__ import annotations

import re
from random import Random

import pytest

from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick, previous_tick
from grouping.model.errors import InputError
from grouping.statements.clauses import read_clauses
from grouping.statements.tokens import Tokens
from grouping.values.cron.every import read_every
from grouping.values.cron.expression import parse_cron

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
    "rate(1 hour)": "EVERY '1 hour'",
    "cron(0 8 ? * MON *)": "'0 8 * * MON'",
    "0 0 8 * * MON": "'0 8 * * MON', without seconds",
    "0 0 8 ? * MON 2026": "'0 8 * * MON', without seconds and year",
    "H 8 * * *": "'0 8 * * *'",
    "0 24 * * *": "'0 0 * * *'",
    "0 22-2 * * *": "'0 22-23,0-2 * * *'",
    "0 8 * * FRI-MON": "'0 8 * * FRI-SAT,SUN-MON'",
    "0 8 * * SAT-SUN": "'0 8 * * SAT,SUN'",
    "0 0 1 11-2 *": "'0 0 1 11-12,1-2 *'",
    "0 8 * * Mo": "'0 8 * * MON'",
    "0 0 1 janvier *": "'0 0 1 JAN *'",
    "60 * * * *": "'0 * * * *'",
    "* * * *": "'* * * * *'",
    "0 0 31 4 *": "'0 0 L 4 *'",
    "0 0 15W * *": "'0 0 15 * *', as W, the nearest weekday, is only read in LW",
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
    "0 0 12 15W * ?": "'0 12 15 * *', without seconds, as W, the nearest weekday, is only read in LW",
    "0 15 10 L-2 * ?": "'15 10 L * *', without seconds, as days before the last day are not counted",
    "0 0 0 ? * L": "'0 0 * * SAT', without seconds",
    "0 0 0 ? * FRIL": "'0 0 * * 5L', without seconds",
    "0/10 * * * * ?": "EVERY '10 seconds'",
    "0,30 * * * * *": "EVERY '30 seconds'",
    "0 0 12 ? * MON,WED,FRI *": "'0 12 * * MON,WED,FRI', without seconds",
    "0 0 12 L-3W * ?": "'0 12 LW * *', without seconds",
    "0 0 0 * * THUL": "'0 0 * * 4L', without seconds",
    "0 0 9 ? * 2/2": "'0 9 * * MON-SAT/2', without seconds",
    "0 0 9 ? * 2-6/2": "'0 9 * * MON-FRI/2', without seconds",
    "0 15 10 * * ? 2005": "'15 10 * * *', without seconds and year",
    "30 0 8 * * ?": "'0 8 * * *', without seconds",
    "0~30 * * * *": "'0 * * * *'",
    "~ * * * *": "'0 * * * *'",
    "0 8 * * 8": "'0 8 * * 7'",
    "0 8 31 4,6,9,11 *": "'0 8 L 4,6,9,11 *'",
    "0 8 0 * *": "'0 8 1 * *'",
    "0 8 * 13 *": "'0 8 * 12 *'",
    "0 0-24 * * *": "'0 0-23 * * *'",
    "*/0 * * * *": "'* * * * *'",
    "*/61 * * * *": "EVERY '61 minutes'",
    "0 0 */45 * *": "EVERY '45 days'",
    "0 0 * */13 *": "'0 0 * 1 *'",
    "0 0 * * */8": "'0 0 * * 0'",
    "0-59/90 * * * *": "'0 * * * *'",
    "5-1 * * * *": "'5-59,0-1 * * * *'",
    "0 18-6/2 * * *": "'0 18,20,22,0,2,4,6 * * *'",
    "0 22-2,12 * * *": "'0 22-23,0-2,12 * * *'",
    "0 8 28-3 * *": "'0 8 28-31,1-3 * *'",
    "0 8 * * 6-1": "'0 8 * * 6,0-1'",
    "0 8 * * 7-2": "'0 8 * * 0-2'",
    "root 0 8 * * *": "'0 8 * * *', without root",
    "0 8 * * * /usr/bin/backup.sh >/dev/null 2>&1": "'0 8 * * *', without the command",
    '"0 8 * * *"': "'0 8 * * *'",
    "0 8 * * *;": "'0 8 * * *'",
    "0 8 * * * # comment": "'0 8 * * *'",
    "0 8 * * MON,": "'0 8 * * MON'",
    "0 8 * * MON;WED": "'0 8 * * MON,WED'",
    "0 8 * * MON TUE": "'0 8 * * MON,TUE'",
    "0 8 * * mondays": "'0 8 * * MON'",
    "0 8 * * weekdays": "'0 8 * * MON-FRI'",
    "0 8 * * WEEKEND": "'0 8 * * SAT,SUN'",
    "0 8 * * Mon-Fr": "'0 8 * * MON-FRI'",
    "0 8 * * Thurs": "'0 8 * * THU'",
    "0 8 1 Sept *": "'0 8 1 SEP *'",
    "0 8 1st * *": "'0 8 1 * *'",
    "0 8 last * *": "'0 8 L * *'",
    "0 8 * * L": "'0 8 * * SAT'",
    "0 8 * * 1#6": "'0 8 * * 1L'",
    "0 8 * * MON#LAST": "'0 8 * * 1L'",
    "08:30": "'30 8 * * *'",
    "8am": "'0 8 * * *'",
    "noon": "'0 12 * * *'",
    "weekly": "'0 0 * * 0'",
    "quarterly": "'0 0 1 */3 *'",
    "@minutely": "'* * * * *'",
    "@every_minute": "EVERY '1 minute'",
    "@every 1.5h": "EVERY '90 minutes'",
    "@every 5min": "EVERY '5 minutes'",
    "@weekdays": "'0 0 * * MON-FRI'",
    "@noon": "'0 12 * * *'",
    "@biweekly": "EVERY '2 weeks'",
    "rate(5 MINUTES)": "EVERY '5 minutes'",
    "rate(1 month)": "'0 0 1 * *'",
    "cron(0 9 ? * 2#1 *)": "'0 9 * * MON#1'",
    "cron(0 9 3W * ? *)": "'0 9 3 * *', as W, the nearest weekday, is only read in LW",
    "cron(0 0 1 * ? 2026)": "'0 0 1 * *', without year",
    "at(2026-11-30T08:00:00)": "'0 8 30 11 *', without year",
    "0 10 * * ? *": "'0 10 * * *'",
    "0 18 ? * 2-6 *": "'0 18 * * MON-FRI'",
    "0 8 1 * ? 2026": "'0 8 1 * *', without year",
    "0 8 * * MON *": "'0 8 * * MON'",
    "Mon..Fri *-*-* 08:00:00": "'0 8 * * mon-fri'",
    "*:0/15": "'0/15 * * * *'",
    "Sat,Sun 20:00": "'0 20 * * sat,sun'",
    "*-01-01 00:00:00": "'0 0 1 1 *'",
    "OnCalendar=daily": "'0 0 * * *'",
    "TZ=Asia/Tokyo 0 0 8 * * *": "'0 8 * * *' AT TIME ZONE 'Asia/Tokyo', without seconds",
    "CRON_TZ=Asia/Tokyo @daily": "'0 0 * * *' AT TIME ZONE 'Asia/Tokyo'",
    "0 8 * * * +02:00": "'0 8 * * *' AT TIME ZONE '+02:00'",
    "0 8 * * * PST": "'0 8 * * *' AT TIME ZONE 'America/Los_Angeles'",
    "0 8 * * * America/New York": "'0 8 * * *' AT TIME ZONE 'America/New_York'",
    "0 8 * * MON [Europe/Madrid]": "'0 8 * * MON' AT TIME ZONE 'Europe/Madrid'",
    "UTC 0 8 * * *": "'0 8 * * *' AT TIME ZONE 'UTC'",
    "H(0-29)/10 * * * *": "'0-29/10 * * * *'",
    "H H(9-16)/2 * * 1-5": "'0 9-16/2 * * 1-5'",
    "H,30 * * * *": "'0,30 * * * *'",
    "day_of_week='0-4', hour=8": "'0 8 * * 1-5'",
    "day='3rd fri', hour=17, minute=30": "'30 17 * * fri#3'",
    "*/5": "'*/5 * * * *'",
    "every monday 09:00": "'0 9 * * mon'",
    "every mon,wed 10:00": "'0 10 * * mon,wed'",
    "1st monday of month 04:00": "'0 4 * * mon#1'",
    "last friday of month 17:00": "'0 17 * * 5L'",
    "every weekday at 9:30pm": "'30 21 * * MON-FRI'",
    "every hour": "EVERY '1 hour'",
    "5m": "EVERY '5 minutes'",
    "P1M": "'0 0 1 * *'",
    "*/5 * * * * * *": "EVERY '5 seconds'",
    "0 8 * MON": "'0 8 * * MON'",
    "0 8 ? ? ?": "'0 8 * * *'",
    "0 8 * * mon - fri": "'0 8 * * mon-fri'",
    "0 8 * * Mon–Fri": "'0 8 * * Mon-Fri'",
    "0 8 * * “MON”": "'0 8 * * MON'",
    "５ 8 * * *": "'5 8 * * *'",
    "/5 * * * *": "'*/5 * * * *'",
    "5-* * * * *": "'5-59 * * * *'",
    "0 8 * * Mon to Fri": "'0 8 * * Mon-Fri'",
    "1..5 8 * * *": "'1-5 8 * * *'",
    "0 8AM * * *": "'0 8 * * *'",
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


def _hint(written: str) -> str:
    with pytest.raises(InputError) as raised:
        parse_cron(written)
    assert raised.value.code == "bad-interval"
    return str(raised.value.hint)


@pytest.mark.parametrize(("written", "nearest"), _NEAREST.items())
def test_another_form_is_refused_with_the_nearest(written: str, nearest: str) -> None:
    """A form of another scheduler, and a slip in one field, have a hint with the form to write, which is accepted."""
    assert _hint(written) == f"Write {nearest}{', without CRON' * nearest.startswith('EVERY')}."
    form = re.match(r"(?:EVERY )?'[^']*'(?: AT TIME ZONE '[^']*')?", nearest)
    assert form is not None
    clauses = read_clauses(Tokens(form[0] if nearest.startswith("EVERY") else f"EVERY CRON {form[0]}"))
    assert clauses.trigger is not None


@pytest.mark.parametrize(
    ("written", "hint"),
    {
        "@dayly": 'Did you mean "@daily"?',
        "@reboot": "The short forms are @yearly, @annually, @monthly",
        "0 8 * * lunes": "The names of the day of week are SUN, MON",
        "0 8 1 okt *": "The names of the month are JAN, FEB",
        "eight o'clock": "every Monday at eight",
        "rate(0 minutes)": "every Monday at eight",
        "300": "every Monday at eight",
        "0 8 * * 1" * 30: "every Monday at eight",
    }.items(),
)
def test_a_form_without_a_meaning_has_the_names_or_an_example(written: str, hint: str) -> None:
    """Where no form is near, the hint has the short forms, the names of the days, or an example."""
    assert hint in _hint(written)


def test_a_hint_is_accepted_for_any_slip() -> None:
    """The form in a hint is valid, whatever characters the expression has."""
    source = Random(43)
    parts = "* * * ? 0 8 24 60 31 7 H H(0-7) L 15W L-2 22-2 18-6/5 */90 /5 5- ** 0~9 fri- weekend Sept 1st 5#6".split()
    found = 0
    for _ in range(2_000):
        fields = [source.choice(parts) + source.choice(("", "", "", ",5", "/3")) for _ in range(source.randrange(3, 8))]
        written = " ".join(fields)
        try:
            parse_cron(written)
        except InputError as error:
            hint = re.match(r"Write ((?:EVERY )?'[^']*'(?: AT TIME ZONE '[^']*')?)", str(error.hint))
            if hint:
                found += 1
                read_clauses(Tokens(hint[1] if hint[1].startswith("EVERY") else f"EVERY CRON {hint[1]}"))
    assert found > 200


@pytest.mark.parametrize(
    ("written", "hint"),
    {
        "5m": "Did you mean '5 minutes'?",
        "1 day, 2 hours": "Did you mean '26 hours'?",
        "60000ms": "Did you mean '1 minute'?",
        "INTERVAL '5' MINUTES": "Did you mean '5 minutes'?",
        "1 month": "Write EVERY CRON '0 0 1 * *'.",
        "P3M": "Write EVERY CRON '0 0 1 */3 *'.",
        "@daily": "Write EVERY CRON '@daily'.",
        "0 8 * * MON": "Write EVERY CRON '0 8 * * MON'.",
        "0 0 8 * * ?": "Write EVERY CRON '0 8 * * *', without seconds.",
        "monday 08:00": "Write EVERY CRON '0 8 * * mon'.",
        "0 8 * * MON Europe/Madrid": "Write EVERY CRON '0 8 * * MON' AT TIME ZONE 'Europe/Madrid'.",
    }.items(),
)
def test_an_interval_that_is_a_calendar_time(written: str, hint: str) -> None:
    """EVERY takes intervals; a cron expression, a month or a day of the week has the hint of EVERY CRON."""
    with pytest.raises(InputError) as raised:
        read_every(written)
    assert raised.value.hint == hint


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
