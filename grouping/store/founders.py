"""Founders: the subscribers whose CQs were the first to need a group or a SELECT list, and who answer for its harm."""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.ids import Subscriber

__all__ = ["Founder"]

_ALONE, _OF_TWO, _AMONG_OTHERS = "=", "&", "+"
_BETWEEN = "\0"
"""Two subscribers, who have no control characters in their names."""


class Founder(NamedTuple):
    """The founder of a group or a SELECT list; it stays so as long as the definition lives, whoever else joins."""

    subscriber: Subscriber
    alone: bool = True
    """Whether no other subscriber has had a CQ that needs it."""
    other: Subscriber = Subscriber("")
    """The only other one who has had one; empty where there is none, or where there are several."""

    def joined(self, subscriber: Subscriber) -> Founder:
        """Return the founder once a subscriber has one more CQ there.

        Example:
            >>> Founder("alice").joined("alice").alone, Founder("alice").joined("bob").alone
            (True, False)
            >>> Founder("alice").joined("bob").other, Founder("alice").joined("bob").joined("carol").other
            ('bob', '')
        """
        if subscriber in (self.subscriber, self.other):
            return self
        return Founder(self.subscriber, alone=False, other=subscriber if self.alone else Subscriber(""))

    def pack(self) -> str:
        """Return the form in Redis.

        Example:
            >>> Founder.unpack(Founder("alice", alone=False, other="bob").pack().encode())
            Founder(subscriber='alice', alone=False, other='bob')
        """
        if self.other:
            return _OF_TWO + self.subscriber + _BETWEEN + self.other
        return (_ALONE if self.alone else _AMONG_OTHERS) + self.subscriber

    @classmethod
    def unpack(cls, body: bytes) -> Founder:
        """Read that form."""
        text = body.decode()
        subscriber, _, other = text[1:].partition(_BETWEEN)
        return cls(Subscriber(subscriber), text[0] == _ALONE, Subscriber(other))
