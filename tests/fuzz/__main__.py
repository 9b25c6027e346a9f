"""The long run: every surface in process, then a hostile client against real servers.

Run ``python -m tests.fuzz --cases 100000 --seed 7``; the run stops at the first case without a proper refusal, and
prints how to repeat it.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tests.fuzz.corpus import COLUMNS
from tests.fuzz.hostile import Neighbour, hostile_commands, hostile_records
from tests.fuzz.surfaces import SURFACES
from tests.stack.lab import Lab
from tests.stack.server import Stack

_AT_ONCE = 500
"""Hostile commands under a single name: their effects are checked before more are sent."""


def run(
    cases: Annotated[int, typer.Option(help="Cases in all; a fifth of them against real servers.")] = 100_000,
    seed: Annotated[int, typer.Option(help="What decides all of it; 0 for any.")] = 0,
    only: Annotated[str, typer.Option(help="The one surface to run, without real servers.")] = "",
) -> None:
    """Run a number of cases."""
    seed = seed or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}")
    surfaces = {only: SURFACES[only]} if only else SURFACES
    for name, surface in surfaces.items():
        count = cases if only else cases * 4 // 5 // len(surfaces)
        for number in range(count):
            try:
                surface(random.Random(f"{seed}/{name}/{number}"))
            except BaseException:
                print(f'it fails: SURFACES["{name}"](random.Random("{seed}/{name}/{number}"))')
                raise
        print(f"{name}: {count} cases")
    if only:
        return
    with tempfile.TemporaryDirectory(prefix="cq-fuzz-") as folder:
        stack = Stack(Path(folder) / "data")
        stack.up()
        try:
            _against(stack, random.Random(seed), cases // 10)
        finally:
            stack.down()


def _against(stack: Stack, rng: random.Random, count: int) -> None:
    lab = Lab(stack.bootstrap)
    alone, beside = Neighbour(lab.client), Neighbour(lab.client)
    source = lab.stream(", ".join(f"{name} {kind}" for name, kind in COLUMNS))
    accepted = 0
    for sent in range(0, count, _AT_ONCE):
        alone.ask()
        accepted += hostile_commands(lab, source, rng, min(_AT_ONCE, count - sent), beside)
    print(f"hostile commands: {count}, of which {accepted} were accepted")
    p99 = alone.p99() * 1000, beside.p99() * 1000
    print(f"a neighbour's p99: {p99[0]:.1f} ms alone, {p99[1]:.1f} ms beside them, {p99[1] / p99[0]:.2f} times")
    letters = hostile_records(lab, rng, count)
    print(f"hostile records: {count}, of which {letters} are dead letters")
    lab.close()


if __name__ == "__main__":
    typer.run(run)
