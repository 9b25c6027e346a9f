"""Some hundred broken commands and records against the real servers; `make fuzz` runs ten thousand of each."""

from __future__ import annotations

import random

from tests.fuzz.corpus import COLUMNS
from tests.fuzz.hostile import hostile_commands, hostile_records
from tests.stack.lab import Lab


def test_hostile_commands_are_answered(lab: Lab) -> None:
    """Each record has exactly one reply, some are accepted, and no message tells anything of the machine."""
    source = lab.stream(", ".join(f"{name} {kind}" for name, kind in COLUMNS))
    assert 0 < hostile_commands(lab, source, random.Random(12), 400) < 400


def test_hostile_records_are_matches_or_dead_letters(lab: Lab) -> None:
    """Each record is a match or exactly one dead letter, and the stream goes on."""
    assert 0 < hostile_records(lab, random.Random(12), 400) < 400
