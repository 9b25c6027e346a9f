"""Truncates a log file that has grown too large, while another process may append to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["renew"]


def renew(log: Path, most_bytes: int) -> bool:
    """Copy a log that is too large to ``NAME.log.1``, which replaces an earlier copy, and empty the log.

    The file keeps its inode, since the processes that write or follow the log have it open. A line that is written
    during the copy may be lost, as with logrotate's ``copytruncate``.

    Returns:
        Whether the log was emptied.
    """
    if not log.exists() or log.stat().st_size <= most_bytes:
        return False
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)
    return True
