"""Chaos of a cluster: ``python -m tests.cluster.chaos [--seed N] [--faults N] [--minutes M] [--of NAME,…]``."""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.result import write_result
from tests.chaos.rounds import Chaos, Tally
from tests.cluster.chaos.faults import CUTS, FAULTS, faults_of
from tests.cluster.chaos.platform import open_platform

_PAUSE = 0.4
"""Seconds between two publications of events: ten servers share this machine's cores."""


def main() -> None:
    """Run the chosen chaos; the exit code is 0 when all invariants held."""
    linked = os.geteuid() == 0 and shutil.which("ip") is not None
    possible = [name for name in FAULTS if linked or name not in CUTS]
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of the faults, queries and events; any without one")
    parser.add_argument("--faults", type=int, default=50, help="how many happen, one after the other")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no further one happens")
    parser.add_argument("--of", default=",".join(possible), help="of which are drawn; all that are possible without it")
    parser.add_argument("--keep", type=Path, help="a folder for the logs, when something does not hold")
    parser.add_argument("--out", type=Path, help="a folder for the result file of a run that held")
    options = parser.parse_args()
    names = options.of.split(",")
    if unknown := set(names) - set(possible):
        parser.error(f"there is no {', '.join(sorted(unknown))} here, but {', '.join(possible)}")
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and no started process is left
    if not linked:
        print("links cannot be cut: that takes root, and `ip`", flush=True)
    chosen = "" if names == possible else f" --of {options.of}"
    command = f"tests.cluster.chaos --seed {seed} --faults {options.faults}{chosen}"
    print(f"seed {seed}; again: python -m {command}", flush=True)
    drawn = _drawn(random.Random(seed), options.faults, names)
    tally = _run(seed, drawn, time.monotonic() + options.minutes * 60, options.keep, linked=linked)
    if options.out is not None:
        write_result(options.out / "cluster-chaos.json", command, tally.figures())


def _run(seed: int, drawn: Sequence[str], deadline: float, keep: Path | None, *, linked: bool) -> Tally:
    happened: list[str] = []
    with open_platform(keep, linked=linked) as platform:
        chaos = Chaos(platform, seed, lambda line: print(line, flush=True), faults_of(platform), _PAUSE)
        try:
            for name in drawn:
                if time.monotonic() < deadline:
                    happened.append(name)
                    chaos.round([name])
            chaos.finish()
        except Exception:
            print(f"{platform.logs()}\nFAILED, seed {seed}, after {chaos.tally.line()}", flush=True)
            raise
        done = ", ".join(f"{number} × {name}" for name, number in sorted(Counter(happened).items()))
        print(f"seed {seed}: 0 lost, 0 doubled in {len(happened)} faults of the cluster: {done}; {chaos.tally.line()}")
        return chaos.tally


def _drawn(rng: random.Random, count: int, names: Sequence[str]) -> list[str]:
    """Return `count` faults in any order, each kind as often as the others."""
    drawn = [names[number % len(names)] for number in range(count)]
    rng.shuffle(drawn)
    return drawn


if __name__ == "__main__":
    main()
