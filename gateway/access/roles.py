"""The roles of subscribers, and the topics that a subscriber may use in CREATE STREAM and CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from grouping.settings.settings import Settings

__all__ = ["OPERATOR", "in_role", "is_operator", "readable_topics"]


OPERATOR = "operator"
"""The role of subscribers who may see and change objects of others. The statements of operators are recorded for
audits."""


def in_role(settings: Settings, subscriber: str, role: str) -> bool:
    """Tell whether a subscriber has a role.

    Example:
        >>> settings = Settings(auth={"roles": {"operator": "root, ops-*"}})
        >>> [in_role(settings, name, "operator") for name in ("root", "ops-1", "alice")]
        [True, True, False]
    """
    return _is_like(subscriber, _patterns(settings.auth.roles.get(role, "")))


def is_operator(settings: Settings, subscriber: str) -> bool:
    """Tell whether a subscriber is an operator.

    In the mode ``key``, everybody who can write a command can use the name of any subscriber. Therefore a subscriber is
    an operator in this mode only if the setting `auth.operators_by_key` allows this.

    Example:
        >>> auth = {"roles": {"operator": "root"}}
        >>> is_operator(Settings(auth=auth), "root")
        False
        >>> is_operator(Settings(auth=auth | {"operators_by_key": True}), "root")
        True
    """
    auth = settings.auth
    return (auth.mode == "token" or auth.operators_by_key) and in_role(settings, subscriber, OPERATOR)


def readable_topics(settings: Settings, subscriber: str) -> list[str] | None:
    """Return patterns of the topics that a subscriber may read.

    None means that the settings have no grants, so that any subscriber may read all topics.

    Example:
        >>> grants = {"alice": "quotes", "@desk": "orders.*,trades", "*": "public.*"}
        >>> settings = Settings(auth={"roles": {"desk": "alice,bob"}}, streams={"grants": grants})
        >>> [readable_topics(settings, name) for name in ("alice", "bob", "carol")]
        [['quotes', 'orders.*', 'trades', 'public.*'], ['orders.*', 'trades', 'public.*'], ['public.*']]
        >>> readable_topics(Settings(), "alice") is None
        True
    """
    grants = settings.streams.grants
    if not grants:
        return None
    return [
        pattern for who, topics in grants.items() if _is(settings, subscriber, who) for pattern in _patterns(topics)
    ]


def _is(settings: Settings, subscriber: str, who: str) -> bool:
    if who.startswith("@"):
        return in_role(settings, subscriber, who[1:])
    return fnmatchcase(subscriber, who)


def _is_like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _patterns(text: str) -> list[str]:
    return [pattern for each in text.split(",") if (pattern := each.strip())]
