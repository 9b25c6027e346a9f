"""Trials of commands: a command that ends the gateway again and again is refused, instead of being tried for ever.

A command that takes all memory, or never comes to an end, kills the gateway (the kernel does, or the supervisor), and
its successor reads the same command again. So the commands of each unit of work are noted before it begins. If a
gateway ends amid a unit, its successor takes fewer of that unit's commands at a time; after some deaths each command is
tried alone.
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
"""How many times in succession the gateway may end at a command; afterwards, a command that was alone is refused."""
_SHARE = 32
"""After one death, the size of a unit with suspected commands is divided by this number; after two, by its square. A
gateway killed for another reason loses little, and among 5,000 commands the guilty command is alone at the third
death."""
_PLACE = attrgetter("partition", "offset")
_MOST_REFUSED = 100
"""Most refused commands whose ids are kept: a client without a reply sends its command again and again."""


class CommandTrials:
    """Finds the command at which gateways ended; for use by a single thread."""

    def __init__(self, note: Callable[[CommandsInHand], None]) -> None:
        """Begin without suspects.

        Args:
            note: Writes to Redis which commands are in hand.
        """
        self._note = note
        self._suspects = CommandsInHand()
        self._refused: tuple[bytes, ...] = ()

    def begin(self, last: CommandsInHand) -> None:
        """Suspect the commands that the last gateway had in hand; finished commands are not read again."""
        self._suspects = msgspec.structs.replace(last, deaths=last.deaths + 1)
        self._refused = last.refused

    def fitting(self, records: Sequence[Record]) -> int:
        """Return how many of the next records a unit may take."""
        if not self._has_suspect(records):
            return len(records)
        return max(int(self._suspects.count / _SHARE**self._suspects.deaths), 1)

    def take(self, records: Sequence[Record], ids: Sequence[bytes | None]) -> set[int]:
        """Note the records of a new unit, and return the indexes of records that must not be tried again.

        Args:
            records: The commands to carry out.
            ids: The keys of their commands' ids; None for a record that is no command.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        deaths = self._suspects.deaths if self._has_suspect(records) else 0
        refused: set[int] = set()
        if deaths >= TRIES and self._suspects.count == 1:
            place = f"{records[0].partition}/{records[0].offset}"
            log.error("a command is refused, the gateway ended at it", extra={"command": place, "deaths": deaths})
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
    """Return the refusal of a command at which gateways ended."""
    return InputError(
        "the gateway ended each time that it carried out the command",
        code="unsupported-query",
        detail=f"The gateway ended {TRIES} times in succession, for too much time or memory. Nothing was changed.",
        hint="Divide the statement into several, or report it.",
    )
