"""The name of a worker process among all that share a Redis."""

from __future__ import annotations

import os
import socket

__all__ = ["worker_id"]


def worker_id() -> str:
    """Return the name of this process: to be asked for after the fork, as modules are imported before it."""
    return f"{socket.gethostname()}/{os.getpid()}"
