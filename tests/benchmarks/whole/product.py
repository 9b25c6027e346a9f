"""The whole product, as `cq up` starts it, on a data folder that is removed afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from gateway.sdk import Client, connect

__all__ = ["Product", "open_product"]


@dataclass(slots=True)
class Product:
    """A product on its data folder, running or not."""

    data: Path
    variables: dict[str, str]
    """Settings, as the environment has them."""
    bootstrap: str = ""
    redis_url: str = ""
    pids: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        """Start it and wait until it is ready."""
        _cq("up", self.data, self.variables, "--detach")
        where = json.loads((self.data / "endpoints.json").read_text())
        self.bootstrap, self.redis_url, self.pids = where["bootstrap"], where["redis_url"], where["pids"]

    def stop(self) -> None:
        """Stop it; its data stays."""
        _cq("down", self.data, self.variables)

    def client(self, subscriber: str) -> Client:
        """Return a client; close it."""
        return connect(self.bootstrap, subscriber)

    def workers(self) -> list[psutil.Process]:
        """Return the Python processes in which events are evaluated."""
        below = psutil.Process(self.pids["evaluator"]).children(recursive=True)
        return [each for each in below if "pyspark.worker" in _command(each)]


def _command(process: psutil.Process) -> str:
    """Return how a process was started, "" if it has ended."""
    with suppress(psutil.NoSuchProcess):  # a child may just have ended
        return " ".join(process.cmdline())
    return ""


@contextmanager
def open_product(**settings: Any) -> Iterator[Product]:
    """Start the product and wait until it is ready; stop it when the block is left.

    Args:
        settings: By path with underscores, as after ``CQ_`` in the environment.
    """
    variables = {f"CQ_{name.upper()}": str(value) for name, value in settings.items()}
    with tempfile.TemporaryDirectory(prefix="cq-bench-", ignore_cleanup_errors=True) as folder:
        product = Product(Path(folder), variables)
        try:
            product.start()
            yield product
        finally:
            product.stop()


def _cq(command: str, folder: Path, variables: dict[str, str], *more: str) -> None:
    # A file, not a pipe: processes that --detach leaves running inherit it.
    with (folder / "bench.log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "gateway.cli", command, "--data", str(folder), *more],
            env=os.environ | variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
        )  # fmt: skip
