"""Founders: the subscribers whose CQs were the first to need a group or a SELECT list, and who answer for its harm."""

from __future__ import annotations

from typing import NamedTuple

from grouping.model.ids import Subscriber

__all__ = ["Founder"]

_ALONE, _AMONG_OTHERS = "=", "+"


class Founder(NamedTuple):
    """The founder of a group or a SELECT list; it stays so as long as the definition lives, whoever else joins."""

    subscriber: Subscriber
    alone: bool = True
    """Whether no other subscriber has had a CQ that needs it."""

    def joined(self, subscriber: Subscriber) -> Founder:
        """Return the founder once a subscriber has one more CQ there.

        Example:
            >>> Founder("alice").joined("alice").alone, Founder("alice").joined("bob").alone
            (True, False)
        """
        return self if subscriber == self.subscriber else self._replace(alone=False)

    def pack(self) -> str:
        """Return the form in Redis.

        Example:
            >>> Founder.unpack(Founder("alice", alone=False).pack().encode())
            Founder(subscriber='alice', alone=False)
        """
        return (_ALONE if self.alone else _AMONG_OTHERS) + self.subscriber

    @classmethod
    def unpack(cls, body: bytes) -> Founder:
        """Read that form."""
        text = body.decode()
        return cls(Subscriber(text[1:]), text[0] == _ALONE)
