"""Scenarios, `tests/scenarios/*.scenario`: `$` acts, `>` expects, `!` must fail.

$ stream name=quotes                columns in the body, as CREATE STREAM writes them
$ create query=q [owner=bob]        the SELECT and its clauses in the body
$ drop query=q [owner=bob]
$ send [owner=bob]                  any other statement; @bob is the subscriber of that name
$ publish stream=quotes             one record per line of the body
> matches query=q                   exactly these results since the beginning, in order, a JSON object per line
> ids query=q                       the same for CQs that select `id`: the ids alone
> same query=q as=p part=group      part is group, constants, signature or destination
> other query=q than=p part=group
> groups stream=quotes              lines `groups: n`, `constants: n` (in all groups) of the stream
! create query=q                    the body ends with a line code:<code>
! drop query=q
! send [owner=bob]
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SCENARIOS", "Step", "steps"]

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.scenario"))


@dataclass(frozen=True, slots=True)
class Step:
    """An act or expectation."""

    line: int
    sign: str
    verb: str
    options: dict[str, str]
    body: tuple[str, ...]


def steps(text: str) -> list[Step]:
    """Return the steps of a scenario; lines that begin with `#` and empty ones separate, and mean nothing."""
    found: list[Step] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line[:2] in ("$ ", "> ", "! "):
            verb, *options = shlex.split(line[2:])
            found.append(Step(number, line[0], verb, dict(option.split("=", 1) for option in options), ()))
        elif line.strip() and not line.startswith("#"):
            last = found[-1]
            found[-1] = Step(last.line, last.sign, last.verb, last.options, (*last.body, line))
    return found
