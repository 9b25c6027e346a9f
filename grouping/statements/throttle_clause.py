"""AT MOST n EVERY 'interval' [BY columns]: the last clause of a CREATE CQ's query."""

from __future__ import annotations

from grouping.model.errors import InputError
from grouping.model.query import Publish
from grouping.model.refusals import unsupported
from grouping.model.trigger import ChangeBased, Throttle, Trigger
from grouping.statements.tokens import Tokens
from grouping.values.times import parse_interval

__all__ = ["beside_every", "check_throttle", "read_throttle"]

_MOST_RESULTS = 2**31 - 1
"""The largest number of results."""


def read_throttle(tokens: Tokens) -> Throttle | None:
    """Read AT MOST, which stands between a CREATE CQ's query and its other clauses; None if another word follows.

    Raises:
        InputError: ``syntax-error`` or ``bad-interval``.

    Example:
        >>> read_throttle(Tokens("AT MOST 2 EVERY '10 minutes' BY symbol DO PUBLISH"))
        Throttle(most=2, every=datetime.timedelta(seconds=600), columns=('symbol',))
    """
    if not tokens.accept("AT", "MOST"):
        return None
    most = tokens.number("the number of results", highest=_MOST_RESULTS)
    tokens.expect("EVERY")
    every = parse_interval(tokens.string("the interval of AT MOST", "minutes"))
    return Throttle(most, every, tokens.names("a column of the SELECT list") if tokens.accept("BY") else ())


def check_throttle(publish: Publish, trigger: Trigger) -> None:
    """Refuse AT MOST beside a trigger or a word after PUBLISH that excludes it.

    Raises:
        InputError: ``unsupported-query``.
    """
    if not isinstance(trigger, ChangeBased):
        raise beside_every()
    if publish.mode == "virtual":
        raise unsupported(
            "AT MOST with VIRTUAL",
            "A virtual destination has each event once, for all CQs of the group.",
            "Publish SHARED or DEDICATED, or leave AT MOST out.",
        )


def beside_every() -> InputError:
    """Return the refusal of AT MOST in a statement with EVERY."""
    return unsupported(
        "AT MOST with EVERY or CRON",
        "A digest comes once for each tick, with all its matches.",
        "Leave AT MOST out; DIGEST LATEST BY or DIGEST TOP chooses rows.",
    )
