"""Builds with a fault, to prove that chaos finds faults: a module each, with a `plant` called in every role."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["PLANTED", "replace", "when_imported"]

PLANTED = {
    "replay_skipped": "kill-driver",
    "journal_dropped": "kill-gateway",
    "reply_doubled": "kill-gateway",
    "cursors_dropped": "kill-gateway",
    "cqs_forgotten": "wipe-redis",
}
"""Each fault, and the events needed to reveal the fault."""


def when_imported(name: str, change: Callable[[ModuleType], None]) -> None:
    """Change a module as soon as it is imported: a role imports only needed modules."""
    sys.meta_path.insert(0, _Finder(name, change))


def replace(owner: object, name: str, other: object) -> None:
    """Replace an existing attribute of a module or class; a missing attribute would make the fault do nothing."""
    assert hasattr(owner, name), f"{owner} has no {name}"
    setattr(owner, name, other)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a module through the other finders, and changes the module after its execution."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._change = change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None and spec.loader is not None, fullname
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            self._change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec
