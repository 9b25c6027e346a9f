"""Trials of commands: finds a command that kills the gateway again and again, so that it can be refused.

If a command takes all memory, or never ends, the kernel or the supervisor kills the gateway, and the next gateway reads
the same command again. So the gateway notes the commands of a unit of work before the unit begins. If the gateway dies
during a unit, the next gateway takes fewer of these commands at a time. After some deaths, each of these commands has a
unit of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from gateway.kafka import Record
from gateway.state.commands_read import CommandsInHand
from grouping.model.errors import InputError

__all__ = ["TRIES", "CommandTrials", "deadly"]

log = logging.getLogger(__name__)

TRIES = 3
"""If the gateway died this number of times in a row at units with suspected commands, and the last unit had a single
command, this command is refused."""
_SHARE = 32
"""After the first death, the next unit has the number of suspected commands divided by this number; after the second
death, divided by its square. So units stay large if a gateway was killed once for another reason. If the first unit had
at most 32,000 commands, the third death is at a unit with only the guilty command."""
_PLACE = attrgetter("partition", "offset")
_MOST_REFUSED = 100
"""The largest number of refused commands whose ids are kept. The ids are kept because a client that got no reply sends
its command again and again."""


class CommandTrials:
    """Finds the command at which gateways died. For use by a single thread."""

    def __init__(self, note: Callable[[CommandsInHand], None]) -> None:
        """Begin without suspected commands.

        Args:
            note: Writes to Redis which commands are being carried out.
        """
        self._note = note
        self._suspects = CommandsInHand()
        self._refused: tuple[bytes, ...] = ()

    def begin(self, last: CommandsInHand) -> None:
        """Suspect the commands that the last gateway was carrying out when it died."""
        self._suspects = msgspec.structs.replace(last, deaths=last.deaths + 1)
        self._refused = last.refused

    def fitting(self, records: Sequence[Record]) -> int:
        """Return how many of these records, from the first on, the next unit may have."""
        if not self._has_suspect(records):
            return len(records)
        return max(int(self._suspects.count / _SHARE**self._suspects.deaths), 1)

    def take(self, records: Sequence[Record], ids: Sequence[bytes | None]) -> set[int]:
        """Note the records of a new unit, and return the indexes of records that must be refused.

        Args:
            records: The records to carry out.
            ids: For each record, the key of its command id; None for a record that is not a command.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        deaths = self._suspects.deaths if self._has_suspect(records) else 0
        refused: set[int] = set()
        if deaths >= TRIES and self._suspects.count == 1:
            place = f"{records[0].partition}/{records[0].offset}"
            log.error(
                "a command is refused, since gateways died while they carried it out",
                extra={"command": place, "deaths": deaths},
            )
            refused.add(0)
            if (first := ids[0]) is not None:
                self._refused = (*self._refused, first)[-_MOST_REFUSED:]
        self._note(CommandsInHand.of(map(_PLACE, records), deaths, self._refused))
        if self._refused:
            refused |= {number for number, key in enumerate(ids) if key in self._refused}
        return refused

    def _has_suspect(self, records: Sequence[Record]) -> bool:
        return bool(self._suspects.spans) and any(place in self._suspects for place in map(_PLACE, records))


def deadly() -> InputError:
    """Return the refusal of a command at which gateways died."""
    return InputError(
        "the gateway ended each time that it carried out the command",
        code="unsupported-query",
        detail=f"The gateway ended {TRIES} times in succession, for too much time or memory. Nothing was changed.",
        hint="Divide the statement into several, or report it.",
    )
