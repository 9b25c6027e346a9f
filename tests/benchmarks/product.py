"""The whole product, as `cq up` starts it, on a data folder that is gone afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.sdk import Client, connect

__all__ = ["Product", "open_product"]


@dataclass(frozen=True, slots=True)
class Product:
    """A running product."""

    data: Path
    bootstrap: str
    redis_url: str
    pids: dict[str, int]

    def client(self, subscriber: str) -> Client:
        """Return a client; close it."""
        return connect(self.bootstrap, subscriber)


@contextmanager
def open_product(**settings: Any) -> Iterator[Product]:
    """Start the product and wait until it is ready; stop it when the block is left.

    Args:
        settings: By path with underscores, as after ``CQ_`` in the environment.
    """
    told = {f"CQ_{name.upper()}": str(value) for name, value in settings.items()}
    with tempfile.TemporaryDirectory(prefix="cq-bench-", ignore_cleanup_errors=True) as folder:
        try:
            _cq("up", folder, told, "--detach")
            where = json.loads((Path(folder) / "endpoints.json").read_text())
            yield Product(Path(folder), where["bootstrap"], where["redis_url"], where["pids"])
        finally:
            _cq("down", folder, told)


def _cq(command: str, folder: str, told: dict[str, str], *more: str) -> None:
    # A file, not a pipe: what --detach leaves running inherits it.
    with (Path(folder) / "bench.log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "gateway.cli", command, "--data", folder, *more],
            env=os.environ | told, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
        )  # fmt: skip
