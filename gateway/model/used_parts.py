"""What a CQ has in common with others: the parts that it uses, each counted as long as one CQ uses it."""

from __future__ import annotations

from functools import lru_cache

from gateway.model.parts import PartKey, PartKind
from gateway.model.records import Cq, Destination

__all__ = ["part_keys", "used_parts"]


def used_parts(cq: Cq, destination: Destination) -> tuple[PartKey, ...]:
    """Return the keys of the parts that a CQ uses by its destination, its text and the views that it reads."""
    template_id = cq.text.template.template_id if cq.text.is_cut else None
    virtual = destination.group_id if destination.mode == "virtual" else None
    return part_keys(destination.group_id, destination.select_id, virtual, template_id, cq.views)


@lru_cache(maxsize=10_000)
def part_keys(
    group: str, select: str, virtual: str | None, template: str | None, views: tuple[str, ...]
) -> tuple[PartKey, ...]:
    """Return the keys of those parts that there are; a million CQs have some thousand of these tuples."""
    ids = {PartKind.GROUP: group, PartKind.SELECT: select, PartKind.TOPIC: virtual, PartKind.TEXT: template}
    keys = [PartKey(kind, part_id) for kind, part_id in ids.items() if part_id is not None]
    return (*keys, *(PartKey(PartKind.VIEW, name.casefold()) for name in views))
