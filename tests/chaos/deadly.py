"""Records that kill: a worker ends itself when a record meets a predicate on a column `deadly`."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from tests.chaos.planted import replace, when_imported

__all__ = ["plant"]


def plant() -> None:
    """Have workers end as a segmentation fault in a library would end them."""
    when_imported("spark_jobs.engine.match.residual", _make_deadly)


def _make_deadly(residual: ModuleType) -> None:
    holds = residual.holds

    def deadly_holds(conjuncts: Any, *rest: Any, **options: Any) -> Any:
        found = holds(conjuncts, *rest, **options)
        if found.any() and "'deadly'" in repr(conjuncts):
            os.abort()
        return found

    replace(residual, "holds", deadly_holds)
