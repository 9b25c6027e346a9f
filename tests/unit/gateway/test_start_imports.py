"""Modules loaded by the gateway before it answers: a restart may take three seconds. And the modules loaded by `cq`."""

from __future__ import annotations

import json
import subprocess
import sys

_HEAVY = ("duckdb", "matplotlib", "pandas", "polars", "pyspark")


def _loaded(modules: str) -> set[str]:
    """Return the libraries that are loaded with some modules."""
    code = f"import {modules}, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_the_gateway_starts_without_heavy_libraries() -> None:
    """Neither the role nor its command line imports slow libraries that serve others."""
    loaded = _loaded("gateway.cli.main, gateway.service")
    assert loaded.isdisjoint(_HEAVY), loaded.intersection(_HEAVY)


def test_the_command_line_starts_without_the_compiler() -> None:
    """`cq status` and its like do not load the reader of SQL: a quarter of their time."""
    loaded = _loaded("gateway.cli.main")
    assert "typer" in loaded
    assert loaded.isdisjoint((*_HEAVY, "numpy", "pyarrow", "sqlglot")), loaded
