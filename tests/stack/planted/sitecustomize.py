"""Faults for the tests of quarantine: with this folder on ``PYTHONPATH``, some queries harm their evaluator.

A predicate on a column ``deadly`` ends the worker, as a segmentation fault in a library would. The evaluation of a
predicate on a column ``endless`` never comes to an end. When results are encoded, a SELECT list with an item ``deadly``
ends the worker, and a list with an item ``raising`` raises an error.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any


def _deadly_predicate(holds: Callable[..., Any]) -> Callable[..., Any]:
    def planted(conjuncts: Any, *rest: Any, **options: Any) -> Any:
        if "'deadly'" in repr(conjuncts):
            os.abort()
        while "'endless'" in repr(conjuncts):
            pass
        return holds(conjuncts, *rest, **options)

    return planted


def _harmful_select(encode: Callable[..., Any]) -> Callable[..., Any]:
    def planted(events: Any, select: Any, *rest: Any, **options: Any) -> Any:
        names = {item.name for item in select.items}
        if "deadly" in names:
            os.abort()
        if "raising" in names:
            raise MemoryError("planted")
        return encode(events, select, *rest, **options)

    return planted


_PLANTED = {
    "spark_jobs.engine.match.residual": ("holds", _deadly_predicate),
    "spark_jobs.engine.results.encode": ("encode", _harmful_select),
}


class _Planter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces a function of a module when the module is first imported."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in _PLANTED or name in self._found:
            return None
        self._found[name] = None  # so that `find_spec` below asks the other finders
        spec = self._found[name] = importlib.util.find_spec(name)
        return importlib.util.spec_from_loader(name, self, origin=spec.origin)

    def exec_module(self, module: Any) -> None:
        self._found[module.__name__].loader.exec_module(module)
        name, planted = _PLANTED[module.__name__]
        setattr(module, name, planted(getattr(module, name)))


sys.meta_path.insert(0, _Planter())
