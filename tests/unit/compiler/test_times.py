from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.model.errors import InputError
from grouping.model.trigger import CronBased, TimerBased
from grouping.values.cron.expression import parse_cron
from grouping.values.times import (
    LONGEST_INTERVAL,
    format_instant,
    format_interval,
    parse_every,
    parse_instant,
    parse_interval,
)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T10:00:00Z",
        "2026-11-21T10:00Z",
        "20261121T100000Z",
        "2026-11-21T11:00:00+01:00",
        "2026-11-21T05:30:00-0430",
        "2026-W47-6T10:00:00Z",
        " 2026-11-21T10:00:00.000Z ",
    ],
)
def test_iso_forms_are_one_instant(text: str) -> None:
    """Every ISO 8601 form of an instant is read as that instant, in UTC."""
    assert parse_instant(text) == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-21",
        "2026-11-21T10:00:00",
        "2026-13-21T10:00:00Z",
        "2026-11-21T10:00:60Z",
        "2026-11-21T10:00:00+25:00",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "٢٠٢٦-11-21T10:00:00Z",
        "2026-11-21T10:00:00Z" + " " * 300 + "x",
        "\0",
    ],
)
def test_other_text_is_no_instant(text: str) -> None:
    """A text that is not an instant, has no zone or lies beyond the calendar is bad-time."""
    with pytest.raises(InputError) as raised:
        parse_instant(text)
    assert raised.value.code == "bad-time"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 second", 1),
        ("10 MINUTES", 600),
        ("1 hours", 3600),
        ("2\tdays", 172_800),
        (" 1 week ", 604_800),
        ("PT1M", 60),
        ("P1DT2H", 93_600),
        ("P2W", 1_209_600),
        ("PT1.5S", 1.5),
        ("PT1,5M", 90),
    ],
)
def test_interval_is_read(text: str, seconds: float) -> None:
    """Counts of units, in any case and number, and ISO 8601 durations are intervals."""
    assert parse_interval(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "10",
        "10minutes",
        "1.5 hours",
        "-1 day",
        "0 days",
        "1 month",
        "P1M",
        "P1Y",
        "-PT1M",
        "PT0.0001S",
        "365001 days",
        "999999999999999 weeks",
        "P99999999999D",
        "١ day",
        "1 second 1 second",
        "1 second\0",
    ],
)
def test_other_text_is_no_interval(text: str) -> None:
    """A text that is not a fixed, positive length of whole milliseconds up to a thousand years is bad-interval."""
    with pytest.raises(InputError) as raised:
        parse_interval(text)
    assert raised.value.code == "bad-interval"


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text raises anything but InputError, whichever it is read as."""
    for read in (parse_instant, parse_interval, parse_every, parse_cron, lambda zone: parse_cron("* * * * *", zone)):
        try:
            read(text)
        except InputError as error:
            assert error.code in ("bad-time", "bad-interval")


def test_shortest_every_is_a_second() -> None:
    """EVERY can be a second, but not a millisecond less."""
    assert parse_every("1 second") == TimerBased(timedelta(seconds=1))
    with pytest.raises(InputError, match="is not valid") as raised:
        parse_every("PT0.999S")
    assert raised.value.code == "bad-interval"


@pytest.mark.parametrize("zone", ["Europe/Madrid", "EUROPE/madrid", " Europe/Madrid "])
def test_zone_is_known_in_any_case(zone: str) -> None:
    """A zone's name is taken in any case and kept as the database spells it."""
    assert parse_cron(" 0  8 * * mon ", zone) == CronBased("0 8 * * mon", "Europe/Madrid")


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "0 24 * * *", "0 0 31 4 *", "a b c d e", "*/0 * * * *", "@reboot"],
)
def test_bad_cron_is_refused(expression: str) -> None:
    """An expression with other than five fields, with a value out of range or with a day that never is is refused."""
    with pytest.raises(InputError) as raised:
        parse_cron(expression)
    assert raised.value.code == "bad-interval"


@pytest.mark.parametrize("zone", ["", "Europe", "Mars/Phobos", "../etc/passwd", "/etc/localtime", "+19:00", "\0"])
def test_bad_zone_is_refused(zone: str) -> None:
    """Only names of the time zone database are zones; no folder and no path is one."""
    with pytest.raises(InputError) as raised:
        parse_cron("0 8 * * *", zone)
    assert raised.value.code == "bad-interval"


@given(st.datetimes(timezones=st.just(UTC)))
def test_instant_is_read_back(instant: datetime) -> None:
    """An instant as text ends in Z and is the same instant when read."""
    text = format_instant(instant)
    assert text.endswith("Z")
    assert parse_instant(text) == instant


@given(st.integers(1, LONGEST_INTERVAL // timedelta(milliseconds=1)).map(lambda ms: timedelta(milliseconds=ms)))
def test_interval_is_read_back(interval: timedelta) -> None:
    """An interval as ISO 8601 duration is the same interval when read."""
    assert parse_interval(format_interval(interval)) == interval
