"""A log that another process appends to: begun anew when it has grown."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["renew"]


def renew(log: Path, most_bytes: int) -> bool:
    """Keep a log that has grown beyond a size as ``NAME.log.1``, in place of an earlier one, and empty it.

    The file stays the same, since processes that write to it or follow it have it open; writers append. A line
    that is written at that instant may be lost: logrotate's ``copytruncate`` does the same.

    Returns:
        Whether the log was begun anew.
    """
    if not log.exists() or log.stat().st_size <= most_bytes:
        return False
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)
    return True
