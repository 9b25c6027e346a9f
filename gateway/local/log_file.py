"""A log that another process appends to, truncated when it has grown too large."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["renew"]


def renew(log: Path, most_bytes: int) -> bool:
    """Copy an oversized log to ``NAME.log.1``, in place of an earlier copy, and empty the log.

    The file keeps its inode, since processes that write or follow the log have it open; writers append. A line written
    during the copy may be lost, as with logrotate's ``copytruncate``.

    Returns:
        Whether the log was emptied.
    """
    if not log.exists() or log.stat().st_size <= most_bytes:
        return False
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)
    return True
