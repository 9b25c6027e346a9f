"""Who holds a connection to Redis: `gateway.state` and `grouping`, and no other room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gateway
import spark_jobs

_OWN = "gateway/state"
_FOLDERS = [Path(package.__path__[0]) for package in (gateway, spark_jobs)]
_MODULES = {
    path.relative_to(folder.parent).as_posix(): path
    for folder in _FOLDERS
    for path in sorted(folder.rglob("*.py"))
    if not path.relative_to(folder.parent).as_posix().startswith(_OWN)
}


@pytest.mark.parametrize("name", _MODULES)
def test_no_other_room_holds_a_connection(name: str) -> None:
    """A module outside of the room `state` neither makes a connection to Redis nor takes the working copy's."""
    tree = ast.parse(_MODULES[name].read_text())
    found = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and (node.attr == "connection" or _is_driver(node))
    ]
    found += [
        f"line {node.lineno}: imports {alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("grouping.store", "gateway.state"))
        for alias in node.names
        if alias.name in ("connect", "Connection")
    ]
    assert [] == found


def _is_driver(node: ast.Attribute) -> bool:
    """Tell whether an attribute is a connection: a program's own, and attributes of settings, are addresses."""
    return node.attr in ("redis", "_redis") and ast.unparse(node.value) not in ("self", "settings", "self.settings")
