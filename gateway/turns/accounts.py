"""All accounts: one for each known subscriber, one for newcomers, and one for records without a proven sender."""

from __future__ import annotations

from collections import OrderedDict

from gateway.turns.account import Account, size_of

__all__ = ["NEWCOMERS", "UNPROVEN", "Accounts"]

NEWCOMERS, UNPROVEN = "newcomers", "unproven"
"""The names of the shared accounts. The type is str, so that no subscriber, whose name is bytes, has an equal name."""
_MOST_KNOWN = 20_000
"""The largest number of subscribers with an account of their own. If there are more, the subscriber that has sent no
command for the longest time becomes a newcomer again, unless some of its commands still wait."""


class Accounts:
    """Finds the account of a subscriber. A subscriber is known after one of its commands was accepted."""

    def __init__(self) -> None:
        """Begin without accounts."""
        self._known: OrderedDict[bytes, Account] = OrderedDict()
        """Subscriber → account; the subscriber that has sent no command for the longest time comes first."""
        self.clear(0.0)

    def clear(self, now: float) -> None:
        """Begin again with full budgets and without commands, at `now` (in seconds). Known subscribers stay known."""
        self._known = OrderedDict((subscriber, Account(now)) for subscriber in self._known)
        self._shared = {NEWCOMERS: Account(now), UNPROVEN: Account(now)}

    def of_subscriber(self, subscriber: bytes | None) -> tuple[bytes | str, Account]:
        """Return the name and the account of a subscriber; None is for records without a proven subscriber."""
        if subscriber is None:
            return UNPROVEN, self._shared[UNPROVEN]
        account = self._known.get(subscriber)
        if account is None:
            return NEWCOMERS, self._shared[NEWCOMERS]
        self._known.move_to_end(subscriber)
        return subscriber, account

    def named(self, name: bytes | str) -> Account | None:
        """Return the account with a name; None if the subscriber is no longer known."""
        return self._known.get(name) if isinstance(name, bytes) else self._shared[name]

    @property
    def unproven(self) -> Account:
        """The account of records without a proven subscriber."""
        return self._shared[UNPROVEN]

    def promote(self, subscriber: bytes, now: float) -> None:
        """Give a newcomer an account of its own, and move its waiting commands there.

        Args:
            subscriber: A subscriber with an accepted command.
            now: The present, in seconds.
        """
        if subscriber in self._known:
            return
        newcomers, account = self._shared[NEWCOMERS], Account(now)
        account.command_seconds = newcomers.command_seconds
        for record in newcomers.queues.pop(subscriber, ()):
            newcomers.bytes -= size_of(record)
            account.append(subscriber, record)
        self._known[subscriber] = account
        if len(self._known) > _MOST_KNOWN:
            oldest, idle = next(iter(self._known.items()))
            if idle.queues:
                self._known.move_to_end(oldest)
            else:
                del self._known[oldest]
