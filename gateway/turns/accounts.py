"""All accounts: of known subscribers, of newcomers, and of records without a proven sender."""

from __future__ import annotations

from collections import OrderedDict

from gateway.turns.account import Account, size_of

__all__ = ["NEWCOMERS", "UNPROVEN", "Accounts"]

NEWCOMERS, UNPROVEN = "newcomers", "unproven"
"""Names of the shared accounts. Names of subscribers are bytes."""
_MOST_KNOWN = 20_000
"""Most subscribers with an account of their own; beyond, the longest silent subscriber becomes a newcomer again."""


class Accounts:
    """Finds the account of a subscriber, who is known once a command of it was accepted."""

    def __init__(self) -> None:
        """Begin without accounts."""
        self._known: OrderedDict[bytes, Account] = OrderedDict()
        """Accounts by subscriber, the longest silent subscriber first."""
        self.clear(0.0)

    def clear(self, now: float) -> None:
        """Begin anew with full budgets and without commands; known subscribers stay known. `now` in seconds."""
        self._known = OrderedDict((subscriber, Account(now)) for subscriber in self._known)
        self._shared = {NEWCOMERS: Account(now), UNPROVEN: Account(now)}

    def of_subscriber(self, subscriber: bytes | None) -> tuple[bytes | str, Account]:
        """Return the name and the account for commands of a subscriber; a record without a key has no subscriber."""
        if subscriber is None:
            return UNPROVEN, self._shared[UNPROVEN]
        account = self._known.get(subscriber)
        if account is None:
            return NEWCOMERS, self._shared[NEWCOMERS]
        self._known.move_to_end(subscriber)
        return subscriber, account

    def named(self, name: bytes | str) -> Account | None:
        """Return the account of a name; None if the subscriber is no longer known."""
        return self._known.get(name) if isinstance(name, bytes) else self._shared[name]

    @property
    def unproven(self) -> Account:
        """The account of records without a subscriber."""
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
