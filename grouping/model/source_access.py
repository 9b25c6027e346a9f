"""Access to a stream, table or view: the subscribers besides its owner and operators that may read it."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Access", "AccessKind"]

AccessKind = Literal["open", "granted"]
"""``open``: every subscriber may read the source. ``granted``: only subscribers that a GRANT names."""


class Access(msgspec.Struct, frozen=True, omit_defaults=True):
    """The access of one source, part of its record on `cq.catalog`."""

    kind: AccessKind | None = None
    """The option `access`; None if the statement had no such option, so that the setting applies."""
    readers: tuple[str, ...] = ()
    """The subscribers that GRANT named, in order."""
    everybody: bool = False
    """Whether GRANT … TO ALL was given."""

    def admits(self, subscriber: str, default: AccessKind) -> bool:
        """Tell whether a subscriber who is neither the owner nor an operator may read the source.

        Example:
            >>> [Access("granted", ("bob",)).admits(name, "open") for name in ("bob", "carol")]
            [True, False]
            >>> Access().admits("carol", "open"), Access().admits("carol", "granted")
            (True, False)
        """
        return (self.kind or default) == "open" or self.everybody or subscriber in self.readers
