"""The dependencies of each CQ (group, SELECT list, template, topic, views), and their changes in a unit of work."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gateway.model.dependencies import RECORDED, Definition, Dependency, DependencyCounts, DependencyKind
from gateway.model.inventory import Inventory
from gateway.model.records import Cq, Destination
from grouping.model.ids import StreamId, Subscriber
from grouping.store.quarantine import SEVERAL

__all__ = ["DependencyChanges", "dependencies", "dependencies_of"]


def dependencies_of(cq: Cq, destination: Destination) -> tuple[Dependency, ...]:
    """Return the dependencies of a CQ, from its destination, its text and its views."""
    template_id = cq.text.template.template_id if cq.text.is_cut else None
    virtual = destination.group_id if destination.mode == "virtual" else None
    return dependencies(destination.group_id, destination.select_id, virtual, template_id, cq.views)


@lru_cache(maxsize=10_000)
def dependencies(
    group: str, select: str, virtual: str | None, template: str | None, views: tuple[str, ...]
) -> tuple[Dependency, ...]:
    """Return the dependencies whose ids are not None.

    The results are cached, because a million CQs have only a few thousand different combinations of arguments.
    """
    ids = {
        DependencyKind.GROUP: group,
        DependencyKind.SELECT: select,
        DependencyKind.TOPIC: virtual,
        DependencyKind.TEXT: template,
    }
    shared = [Dependency(kind, item_id) for kind, item_id in ids.items() if item_id is not None]
    return (*shared, *(Dependency(DependencyKind.VIEW, name.casefold()) for name in views))


class DependencyChanges:
    """The changes of a unit of work to CQs' dependencies; each change is made in the inventory immediately."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.definitions: dict[tuple[StreamId, Dependency], Definition] = {}
        """Definitions of dependencies that are new in this unit, by stream and dependency."""
        self.changed: set[tuple[StreamId, Dependency]] = set()
        """Dependencies whose number of CQs this unit has changed. `Unit` also adds dependencies that no micro-batch
        needs any more, so that their definitions may be removed."""
        self.sole_users: dict[tuple[StreamId, str], Subscriber] = {}
        """Stream and id of a group or SELECT list → the sole user (`Inventory.sole_users`) that this unit has noted."""
        self._counts: dict[tuple[StreamId, Subscriber, tuple[Dependency, ...]], list[tuple[dict[str, int], str]]] = {}
        """Stream, subscriber and dependencies that were counted in this unit → the counters of these dependencies, each
        as a dict and a key. Thousands of CQs have the same dependencies."""
        self._removed: tuple[StreamId, tuple[Dependency, ...]] | None = None
        """The stream and the dependencies of the last removed CQ."""
        self._counted: list[tuple[dict[str, int], str]] = []
        """The counters of the dependencies in `_removed`."""

    def add(
        self,
        stream_id: StreamId,
        subscriber: Subscriber,
        dependencies: tuple[Dependency, ...],
        definitions: Iterable[Definition],
    ) -> None:
        """Count one more CQ for each of its dependencies.

        Args:
            stream_id: The stream that the CQ reads.
            subscriber: The owner of the CQ.
            dependencies: The CQ's dependencies.
            definitions: Definitions of dependencies that may be new.
        """
        counted = (stream_id, subscriber, dependencies)
        known = self._counts.get(counted)
        if known is None:
            self._counts[counted] = self._added(stream_id, subscriber, dependencies, definitions)
        else:
            for counts, item_id in known:
                counts[item_id] += 1

    def _added(
        self,
        stream_id: StreamId,
        subscriber: Subscriber,
        dependencies: tuple[Dependency, ...],
        definitions: Iterable[Definition],
    ) -> list[tuple[dict[str, int], str]]:
        """Count one more CQ for each dependency, and return the counters."""
        if stream_id not in self._inventory.dependencies:
            self._inventory.dependencies[stream_id] = DependencyCounts()
        by_kind = self._inventory.dependencies[stream_id]
        for used in dependencies:
            counts, item_id = by_kind[used.kind], used.item_id
            counts[item_id] = counts.get(item_id, 0) + 1
            first = counts[item_id] == 1
            if first:
                known = {Dependency.on(each): each for each in definitions}
                if used in known:
                    self.definitions[stream_id, used] = known[used]
            self.changed.add((stream_id, used))
            if used.kind in RECORDED:
                self._note_user(stream_id, item_id, subscriber, first=first)
        return [(by_kind[used.kind], used.item_id) for used in dependencies]

    def _note_user(self, stream_id: StreamId, item_id: str, subscriber: Subscriber, *, first: bool) -> None:
        """Note the sole user of a group or SELECT list.

        With a second user, the note becomes `SEVERAL`. The note stays `SEVERAL` until no CQ needs the group or SELECT
        list any more, even if all remaining CQs are of one user.
        """
        known = self._inventory.sole_users.setdefault(stream_id, {})
        user = subscriber if first or known.get(item_id) == subscriber else SEVERAL
        if known.get(item_id) != user:
            known[item_id] = self.sole_users[stream_id, item_id] = user

    def remove(self, stream_id: StreamId, dependencies: tuple[Dependency, ...]) -> None:
        """Count one CQ less for each dependency of a removed CQ."""
        self._counts.clear()  # the next CQ with the same dependencies may have to store their definitions again
        removed = (stream_id, dependencies)
        if removed != self._removed:  # often thousands of CQs with the same dependencies are dropped in a row
            self._removed = removed
            self.changed.update((stream_id, used) for used in dependencies)
            by_kind = self._inventory.dependencies[stream_id]
            self._counted = [(by_kind[used.kind], used.item_id) for used in dependencies]
        for counts, item_id in self._counted:
            left = counts[item_id] - 1
            if left:
                counts[item_id] = left
            else:
                del counts[item_id]

    def unused(self) -> list[tuple[StreamId, str]]:
        """Return the plans and SELECT lists, with their streams, that this unit leaves without a CQ."""
        return [
            (stream_id, item_id)
            for stream_id, (kind, item_id) in self.changed
            if kind in RECORDED and item_id not in self._inventory.users(stream_id, kind)
        ]
