"""The dependencies of a CQ: its group, SELECT list, template, topic and views."""

from __future__ import annotations

from functools import lru_cache

from gateway.model.dependencies import Dependency, DependencyKind
from gateway.model.records import Cq, Destination

__all__ = ["dependencies", "dependencies_of"]


def dependencies_of(cq: Cq, destination: Destination) -> tuple[Dependency, ...]:
    """Return what a CQ depends on by its destination, its text and the views that it reads."""
    template_id = cq.text.template.template_id if cq.text.is_cut else None
    virtual = destination.group_id if destination.mode == "virtual" else None
    return dependencies(destination.group_id, destination.select_id, virtual, template_id, cq.views)


@lru_cache(maxsize=10_000)
def dependencies(
    group: str, select: str, virtual: str | None, template: str | None, views: tuple[str, ...]
) -> tuple[Dependency, ...]:
    """Return the dependencies that are not None; a million CQs share some thousand of these tuples."""
    ids = {
        DependencyKind.GROUP: group,
        DependencyKind.SELECT: select,
        DependencyKind.TOPIC: virtual,
        DependencyKind.TEXT: template,
    }
    shared = [Dependency(kind, item_id) for kind, item_id in ids.items() if item_id is not None]
    return (*shared, *(Dependency(DependencyKind.VIEW, name.casefold()) for name in views))
