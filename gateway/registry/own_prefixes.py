"""The prefixes with which the ids of private destinations begin: 40 bits of a hash of the subscriber's name.

An ACL of Kafka with this prefix lets the subscriber read its own topics. Two subscribers may have the same prefix, and
an attacker can compute a name with a given prefix. So only the first subscriber with a prefix gets destinations of its
own.
"""

from __future__ import annotations

from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError
from grouping.model.group import owner_prefix
from grouping.model.ids import Subscriber
from grouping.settings.settings import Settings

__all__ = ["OwnPrefixes"]


class OwnPrefixes:
    """The prefixes in use: of subscribers that have or had CQs, or that took a prefix since the gateway's start."""

    def __init__(self, settings: Settings, working: WorkingCopy) -> None:
        """Create without I/O: the first check reads the owners from Redis.

        Args:
            settings: The settings.
            working: The gateway's state.
        """
        self._topics = settings.topics
        self._working = working
        self._owners: dict[str, Subscriber] | None = None

    def check(self, subscriber: Subscriber) -> None:
        """Check that no other subscriber has this subscriber's prefix; a subscriber with CQs always passes.

        Raises:
            InputError: ``not-allowed``.
        """
        prefix = owner_prefix(subscriber)
        if self._stored().get(prefix, subscriber) == subscriber or self._working.subscribed(subscriber):
            return
        raise InputError(
            f'subscriber "{subscriber}" cannot have destinations of its own',
            code="not-allowed",
            detail=f'The topics of another subscriber begin with the same prefix "{self._topics.own_results(prefix)}".',
            hint="Use another subscriber name.",
        )

    def take(self, subscriber: Subscriber) -> None:
        """Reserve a subscriber's prefix.

        Raises:
            InputError: Another subscriber has the prefix.
        """
        self.check(subscriber)
        self._stored().setdefault(owner_prefix(subscriber), subscriber)

    def _stored(self) -> dict[str, Subscriber]:
        if self._owners is None:
            self._owners = {}
            for subscriber in self._working.subscribers():
                self._owners.setdefault(owner_prefix(subscriber), subscriber)
        return self._owners
