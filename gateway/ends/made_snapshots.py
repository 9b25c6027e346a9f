"""Snapshots that the evaluator has written: the catalog must record that their CQs need no snapshot any more."""

from __future__ import annotations

from gateway.model.unit import CqKey
from gateway.state.catalog_records import cq_record
from gateway.state.work import CatalogChange, Change
from gateway.state.working_copy import WorkingCopy
from grouping.model.ids import DestinationId

__all__ = ["MadeSnapshots"]


class MadeSnapshots:
    """Copies the evaluator's notes into the records of CQs, so that no snapshot is written twice if Redis is lost."""

    def __init__(self, working: WorkingCopy) -> None:
        self._working = working

    def step(self) -> Change:
        """Copy the notes within the unit of work, and return the change.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        made = self._working.evaluator.made_snapshots()
        if not made:
            return Change()
        keys = {name: CqKey.of(note.subscriber, note.name) for name, note in made.items()}
        loaded = self._working.load(keys.values())
        catalog: list[CatalogChange] = []
        gone: list[DestinationId] = []
        for name, key in keys.items():
            cq = loaded.cq(key)
            moved = None
            if cq is not None and cq.destination_id == name:
                moved = self._working.unit.move_edges(name, settled=True)
            if cq is None or moved is None:
                gone.append(name)  # the CQ was dropped or replaced, or its record already has the note
            else:
                catalog.append(cq_record(key, cq, moved))
        if gone:
            self._working.evaluator.forget_snapshots(gone)
        return Change(catalog=tuple(catalog))
