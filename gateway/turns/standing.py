"""How the last commands of each subscriber fared: who sends broken ones, and whether newcomers are to be trusted."""

from __future__ import annotations

from collections import OrderedDict

__all__ = ["GOOD", "Standing"]

GOOD = 8
"""Sound commands in a row after a broken one that a subscriber is in good standing with."""
_MOST_KNOWN = 20_000
"""Subscribers that are remembered; whoever is forgotten is a newcomer."""
_RECENT = 32
"""Commands over which the share of broken ones is averaged."""
_DOUBT_SECONDS = 60.0
"""After the last broken command of those who are not in good standing, nobody is doubted."""


class Standing:
    """Counts sound and broken commands.

    A subscriber is in good standing from a first sound command on. After a broken one it takes `GOOD` sound ones in a
    row, since some of all hostile commands are sound by chance. All who are not in good standing share one record: who
    sends broken commands under ever new names is doubted under the next one.
    """

    def __init__(self) -> None:
        """Begin without knowing anybody, and without doubt."""
        self._in_a_row: OrderedDict[bytes | None, int] = OrderedDict()
        """By subscriber, the one longest unheard of first: sound commands since the last broken one, at most `GOOD`."""
        self._share = 0.0
        """Of broken commands among the last ones of those who were not in good standing."""
        self._broken_at = float("-inf")
        """When the last of them was carried out."""

    def note(self, subscriber: bytes | None, commands: int, broken: int, now: float) -> None:
        """Take in commands that were carried out.

        Args:
            subscriber: Whose.
            commands: How many they were.
            broken: How many of them never could be carried out.
            now: When, in seconds.

        Example:
            >>> standing = Standing()
            >>> standing.note(b"a", 1, 0, 0), standing.is_good(b"a")
            (None, True)
            >>> standing.note(b"a", 1, 1, 0), standing.note(b"a", 7, 0, 0), standing.is_good(b"a")
            (None, None, False)
            >>> standing.note(b"a", 1, 0, 0), standing.is_good(b"a")
            (None, True)
        """
        in_a_row = self._in_a_row.pop(subscriber, GOOD - 1)
        if in_a_row < GOOD:
            self._share += min(commands / _RECENT, 1.0) * (broken / commands - self._share)
            self._broken_at = now if broken else self._broken_at
        self._in_a_row[subscriber] = 0 if broken else min(in_a_row + commands, GOOD)
        if len(self._in_a_row) > _MOST_KNOWN:
            self._in_a_row.popitem(last=False)

    def is_good(self, subscriber: bytes | None) -> bool:
        """Tell whether the last commands of a subscriber were sound."""
        return self._in_a_row.get(subscriber, 0) >= GOOD

    def is_doubted(self, subscriber: bytes | None, now: float) -> bool:
        """Tell whether more than half of what those like the subscriber sent lately was broken."""
        return self._share > 0.5 and now < self._broken_at + _DOUBT_SECONDS and not self.is_good(subscriber)
