"""Quotas: limits of a single subscriber, which replace limits of the settings."""

from __future__ import annotations

import msgspec

from grouping.settings.limit_settings import LimitSettings

__all__ = ["QUOTA_NAMES", "Quota"]

QUOTA_NAMES = {
    "cqs": "cqs_per_subscriber",
    "streams": "streams_per_subscriber",
    "partitions": "partitions_per_subscriber",
    "tables": "tables_per_subscriber",
    "views": "views_per_subscriber",
    "commands_per_second": "commands_per_second",
    "quarantined": "quarantined_per_subscriber",
    "dedicated": "dedicated_per_subscriber",
    "virtual": "virtual_per_subscriber",
}
"""Name in SET QUOTA → the setting that applies to subscribers without a quota of their own."""


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscriber's own limits; for a limit that is None, the setting applies.

    The record on `cq.catalog` has the key `quota/<subscriber>`.
    """

    cqs: int | None = None
    streams: int | None = None
    partitions: int | None = None
    tables: int | None = None
    views: int | None = None
    commands_per_second: int | None = None
    quarantined: int | None = None
    dedicated: int | None = None
    virtual: int | None = None

    def limit(self, name: str, limits: LimitSettings) -> int:
        """Return a limit by its name in SET QUOTA: the subscriber's own limit, else the limit in the settings.

        Example:
            >>> limits = LimitSettings(streams_per_subscriber=7)
            >>> Quota(cqs=5).limit("cqs", limits), Quota(cqs=5).limit("streams", limits)
            (5, 7)
        """
        own: int | None = getattr(self, name)
        standard: int = getattr(limits, QUOTA_NAMES[name])
        return standard if own is None else own
