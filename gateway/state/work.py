"""The records of a unit of work: each act returns a `Change`, `Work` gathers them, and `Commits` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.model.end_notice import EndNotice
from gateway.model.records import Cq
from gateway.state.commands_read import CommandsRead

__all__ = ["CatalogChange", "Change", "Work", "joined"]

CatalogChange = tuple[bytes, bytes | None]
"""Key and value of a record of `cq.catalog`; the value None makes a tombstone."""


class Change(msgspec.Struct, frozen=True):
    """The effects of one act, such as a command or an end, apart from its changes in memory."""

    cq: Cq | None = None
    """The CQ that a command was about; for a DROP, the CQ as it was."""
    catalog: tuple[CatalogChange, ...] = ()
    """Records for `cq.catalog`."""
    notices: tuple[EndNotice, ...] = ()
    """Notices of destinations that end, and of members that leave destinations to others."""
    records: tuple[OutgoingRecord, ...] = ()
    """Records for other topics: digests, ends, dead letters."""


def joined(changes: Sequence[Change]) -> Change:
    """Return several changes as one change, without a CQ."""
    return Change(
        catalog=tuple(record for change in changes for record in change.catalog),
        notices=tuple(notice for change in changes for notice in change.notices),
        records=tuple(record for change in changes for record in change.records),
    )


class Work:
    """The records and notices of a unit of work. A unit that begins again gets an empty `Work`."""

    __slots__ = ("_leaves", "_notices", "catalog", "commands_read", "records", "remembered")

    def __init__(self) -> None:
        self.catalog: list[CatalogChange] = []
        """Records for `cq.catalog`, in order."""
        self.records: list[OutgoingRecord] = []
        """Records for other topics: replies, dead letters, digests, ends."""
        self.commands_read: CommandsRead | None = None
        """The position on `cq.commands` after this unit; None if the unit has no command."""
        self.remembered: dict[int, bytes] = {}
        """Index of each record that is a first reply → key of its command's id."""
        self._notices: list[EndNotice] = []
        self._leaves: dict[EndNotice, list[str]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is anything to write."""
        return bool(self.catalog or self.records or self.commands_read or self._notices or self._leaves)

    def take(self, change: Change) -> None:
        """Add the change of an act."""
        self.catalog += change.catalog
        self.records += change.records
        for notice in change.notices:
            if notice.members:
                self._leaves.setdefault(msgspec.structs.replace(notice, members=()), []).extend(notice.members)
            else:
                self._notices.append(notice)

    def answer(
        self, commands_read: CommandsRead, records: Sequence[OutgoingRecord], remembered: Mapping[int, bytes]
    ) -> None:
        """Add the answers to commands, and the position on `cq.commands` after them; call this before `take`.

        Args:
            commands_read: The position, from the queue of commands.
            records: Replies and dead letters.
            remembered: Index of each first reply among these records → key of its command's id.
        """
        assert not self.records, "answers come before all other records, by the numbers in `remembered`"
        self.commands_read = commands_read
        self.records += records
        self.remembered |= remembered

    @property
    def notices(self) -> list[EndNotice]:
        """The notices of all acts; members that leave a destination together share a notice."""
        leaves = (msgspec.structs.replace(notice, members=tuple(some)) for notice, some in self._leaves.items())
        return [*self._notices, *leaves]
