"""Packages that a subscriber has to install."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import pytest

from gateway import sdk
from gateway.sdk import errors
from grouping.model.errors import CODES

HEAVY = ("duckdb", "grouping", "numpy", "pandas", "polars", "pydantic", "pyspark", "redis", "rich", "sqlglot", "typer")


def test_sdk_imports_no_server_libraries() -> None:
    """Importing the SDK, both twins, loads no Spark, Redis, SQL parser, or anything of the gateway's own."""
    code = "import gateway.sdk, gateway.sdk.aio, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert [] == [name for name in loaded if name.split(".")[0] in HEAVY]
    assert [] == [name for name in loaded if name.startswith("gateway.") and not name.startswith("gateway.sdk")]


@pytest.mark.parametrize("package", ["gateway", "grouping", "schemas", "spark_jobs"])
def test_types_are_told_to_users(package: str) -> None:
    """A program that uses the SDK is checked against its types (PEP 561)."""
    assert resources.files(package).joinpath("py.typed").is_file()


@pytest.mark.parametrize("module", [sdk, errors])
def test_exported_names_exist_and_are_sorted(module: object) -> None:
    """`__all__` lists the names that are there, in order."""
    names = module.__all__  # type: ignore[attr-defined]
    assert names == sorted(names)
    assert all(hasattr(module, name) for name in names)


def test_every_error_is_in_the_drawn_tree() -> None:
    """The tree at the head of the errors names each of them, and the package exports them."""
    classes = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)]
    tree = [line.strip("│├└─ ").split(" ")[0] for line in (errors.__doc__ or "").splitlines()]
    assert [] == [name for name in classes if name not in tree]
    assert [] == [name for name in classes if name not in sdk.__all__]


def test_every_code_of_the_contract_has_its_exception() -> None:
    """Codes that cross the wire become a class of their own kind; unknown ones stay readable."""
    kinds = {code: type(errors.rejection(code, "no", command_id="1", detail=None, hint=None)) for code in CODES}
    assert [] == [code for code, kind in kinds.items() if kind is errors.CommandRejection]
    later = errors.rejection("later-code", "no", command_id="1", detail="A.", hint="B.")
    assert "later-code: no. A. B." == str(later)
