"""Notices of ends that are under way, kept in sheaves: those of one unit of work are one record, however many.

A sheaf lies on `cq.catalog` (key ``end/<sheaf>``) and in Redis until all its notices are done with; it is written anew
when some of them are, and gone with the last. So a million ends at one EXPIRE cost hundreds of records, not millions.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from gateway.records import EndNotice
from gateway.registry import CatalogChange
from gateway.timers.cuts import life_of
from gateway.working_copy import WorkingCopy
from grouping.redis_store import mapped

__all__ = ["EndNotices"]

_SHEAF = 8000
"""Notices in one record, at most: a few megabytes."""

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(list[EndNotice]).decode


class EndNotices:
    """All notices; what changes is written with the unit of work."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working
        self.open: dict[str, EndNotice] = {}
        """Those whose `cq.end` is still to be written; those that were looked at longest ago come first."""
        self.lingering: dict[str, EndNotice] = {}
        """Those whose `cq.end` is out, so that only the topic is left to delete."""
        self._sheaves: dict[str, set[str]] = {}
        self._sheaf_of: dict[str, str] = {}
        self._changed: set[str] = set()

    def reload(self) -> None:
        """Read the notices from the working copy."""
        self.open, self.lingering, self._sheaves, self._sheaf_of, self._changed = {}, {}, {}, {}, set()
        with mapped():
            bodies = self._working.redis.hgetall(self._working.key("ends"))
        for sheaf, body in bodies.items():
            self._bind(sheaf.decode(), _decode(body))
        self._changed.clear()

    def add(self, notices: Iterable[EndNotice]) -> list[CatalogChange]:
        """Take up the ends that a unit of work brings, and return what the catalog is told."""
        left = iter(notices)
        while some := list(islice(left, _SHEAF)):
            self._bind(secrets.token_hex(8), some)
        return self.changes()

    def _bind(self, sheaf: str, notices: list[EndNotice]) -> None:
        keys = self._sheaves[sheaf] = set()
        for notice in notices:
            key = _key(notice)
            if key in self._sheaf_of:
                self._forget(key)  # of an earlier life, which was taken over before it came to its end
            (self.lingering if notice.written else self.open)[key] = notice
            self._sheaf_of[key] = sheaf
            keys.add(key)
        self._changed.add(sheaf)

    def next(self, most: int) -> Iterator[EndNotice]:
        """Return open notices to look at; they come last the next time, so that those that wait hold up no others."""
        for key in list(islice(self.open, most)):
            notice = self.open[key] = self.open.pop(key)
            yield notice

    def replace(self, notice: EndNotice) -> None:
        """Change what is known of an end."""
        key = _key(notice)
        self.open.pop(key, None)
        self.lingering.pop(key, None)
        (self.lingering if notice.written else self.open)[key] = notice
        self._changed.add(self._sheaf_of[key])

    def remove(self, notice: EndNotice) -> None:
        """Forget an end that is done with; nothing happens where there is none."""
        self._forget(_key(notice))

    def _forget(self, key: str) -> None:
        sheaf = self._sheaf_of.pop(key, None)
        if sheaf is not None:
            if self.open.pop(key, None) is None:
                del self.lingering[key]
            self._sheaves[sheaf].discard(key)
            self._changed.add(sheaf)

    def changes(self) -> list[CatalogChange]:
        """Put the sheaves that changed into the unit of work, and return what the catalog is told."""
        changes: list[CatalogChange] = []
        for sheaf in self._changed:
            keys = self._sheaves[sheaf]
            body = _encode([self.open.get(key) or self.lingering[key] for key in keys]) if keys else None
            if not keys:
                del self._sheaves[sheaf]
            self._working.set_field("ends", sheaf, body)
            changes.append((f"end/{sheaf}".encode(), body))
        self._changed.clear()
        return changes


def _key(notice: EndNotice) -> str:
    """Return what a notice is kept under: one for each destination, and each life that may have a last digest."""
    name = notice.destination.destination_id
    return life_of(name, notice.timed) if notice.destination.trigger.timed else name
