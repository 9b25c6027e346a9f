"""What the gateway loads before it answers: it is to be back within three seconds of its death."""

from __future__ import annotations

import json
import subprocess
import sys

_HEAVY = ("duckdb", "matplotlib", "pandas", "polars", "pyspark")


def test_the_gateway_starts_without_heavy_libraries() -> None:
    """Neither the role nor its command line imports what takes long and serves others."""
    code = "import gateway.cli.main, gateway.service, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded.isdisjoint(_HEAVY), loaded.intersection(_HEAVY)
