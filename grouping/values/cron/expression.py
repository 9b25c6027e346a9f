"""Cron expressions: five fields, with the names and short forms of other schedulers, and a zone."""

from __future__ import annotations

from grouping.model.errors import InputError
from grouping.model.trigger import CronBased
from grouping.values.cron.fields import LONGEST, MACROS, check_fields, plain_fields
from grouping.values.cron.other_forms import nearest_expression
from grouping.values.cron.zones import read_zone

__all__ = ["parse_cron"]

_FIELDS_ARE = "A cron expression has the fields minute, hour, day of month, month and day of week."


def parse_cron(expression: str, zone: str = "UTC") -> CronBased:
    """Read the expression of EVERY CRON (five fields, or a short form such as ``@daily``) and its zone.

    Names of days and months may be written out, and ``?`` stands for any day, as in Quartz. Letters may be upper or
    lower case.

    Raises:
        InputError: ``bad-interval`` for an invalid expression, with the nearest valid form, for an expression that
            matches no day, and for an unknown zone.

    Example:
        >>> parse_cron("0 8 * * MON", "europe/madrid")
        CronBased(cron='0 8 * * MON', zone='Europe/Madrid')
        >>> parse_cron("@daily", "UTC+2")
        CronBased(cron='0 0 * * *', zone='+02:00')
    """
    shown = expression if len(expression) <= LONGEST else f"{expression[:LONGEST]}…"
    known = plain_fields(MACROS.get(expression.strip().lower(), expression).split())
    try:
        if len(expression) > LONGEST:
            raise ValueError(f"An expression has at most {LONGEST} characters")
        check_fields(known)
    except ValueError as error:
        raise InputError(
            f'cron expression "{shown}" is not valid',
            code="bad-interval",
            detail=f"{error}. {_FIELDS_ARE}",
            hint=nearest_expression(expression) or "'0 8 * * MON' is every Monday at eight.",
        ) from None
    except StopIteration:
        raise InputError(
            f'cron expression "{shown}" never fires',
            code="bad-interval",
            detail="No day matches all its fields.",
            hint=nearest_expression(expression),
        ) from None
    return CronBased(" ".join(known), read_zone(zone))
