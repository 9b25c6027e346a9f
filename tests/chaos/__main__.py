"""Chaos: ``python -m tests.chaos [--seed N] [--minutes M] [--faults NAME,…]``; ``--planted`` tests chaos itself."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.result import write_result
from tests.chaos.faults import FAULTS, STREAM_FAULTS
from tests.chaos.host import open_host
from tests.chaos.planted import PLANTED
from tests.chaos.rounds import Chaos

_IDLE_SECONDS = (12.0, 0.0, 65.0, 0.0)
"""The times without events after the rounds, in turns: Spark tells of an idle query after ten seconds, and after a
minute some clients and servers give up connections and waits."""
_PLANTED_ROUNDS = 5
"""Within which a planted fault must be found."""


def main() -> None:
    """Run the wanted play; the exit code is 0 when all held, or each planted fault was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of the faults, queries and events; any without one")
    parser.add_argument("--minutes", type=float, default=5.0, help="after which no further round begins")
    parser.add_argument("--faults", help="of which each round draws; all without it")
    parser.add_argument("--streams", type=int, default=0, help="beside the one of the queries: 0, or 4 and more")
    parser.add_argument("--planted", nargs="?", const=",".join(PLANTED), help="builds with a fault: all, or those")
    parser.add_argument("--out", type=Path, help="a folder for the result file of a run that held")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    possible = [name for name in FAULTS if options.streams or name not in STREAM_FAULTS]
    faults = options.faults.split(",") if options.faults else possible
    planted = options.planted.split(",") if options.planted else []
    if unknown := {*faults, *planted} - FAULTS.keys() - PLANTED.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join((*FAULTS, *PLANTED))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and no started process is left
    if planted:
        sys.exit(0 if all([_caught(name, seed) for name in planted]) else 1)
    sys.exit(0 if _holds(seed, faults, options) else 1)


def _holds(seed: int, faults: Sequence[str], options: argparse.Namespace) -> bool:
    chosen = "".join(f" --{name} {getattr(options, name)}" for name in ("streams", "faults") if getattr(options, name))
    command = f"tests.chaos --seed {seed} --minutes {options.minutes:g}{chosen}"
    again = f"python -m {command}"
    print(f"seed {seed}; again: {again}", flush=True)
    with open_host(small_disk=os.geteuid() == 0 and "fill-disk" in faults) as host:
        deadline = time.monotonic() + options.minutes * 60
        chaos = Chaos(host, seed, lambda line: print(line, flush=True), logs=[host.data], streams=options.streams)
        found = _found(chaos, seed, faults, lambda: time.monotonic() < deadline, idle=True)
        if found is None:
            print(f"seed {seed}: 0 lost, 0 doubled; {chaos.tally.line()}")
            if options.out is not None:
                write_result(options.out / "chaos.json", command, chaos.tally.figures())
        else:
            print(f"{host.stack.logs()}\n{found}\nFAILED, seed {seed}, after {chaos.tally.line()}\nagain: {again}")
        return found is None


def _caught(planted: str, seed: int) -> bool:
    """Return whether a planted fault is found within a few rounds."""
    with open_host(small_disk=False, planted=planted) as host:
        chaos = Chaos(host, seed, lambda line: None)
        found = _found(chaos, seed, [PLANTED[planted]], lambda: chaos.tally.rounds < _PLANTED_ROUNDS)
    verdict = "NOT CAUGHT" if found is None else f"caught in round {chaos.tally.rounds}: {found.splitlines()[0][:200]}"
    print(f"{planted}, {PLANTED[planted]}: {verdict}", flush=True)
    return found is not None


def _found(
    chaos: Chaos, seed: int, faults: Sequence[str], more: Callable[[], bool], *, idle: bool = False
) -> str | None:
    """Play rounds as long as there are to be more, with idle times between if wanted; return a broken promise."""
    rng = random.Random(seed)
    try:
        while more():
            chaos.round([rng.choice(faults) for _ in range(rng.choice((1, 1, 1, 2, 3)))])
            if idle and (seconds := _IDLE_SECONDS[(chaos.tally.rounds - 1) % len(_IDLE_SECONDS)]):
                chaos.idle(seconds)
        chaos.finish()
    except Exception as error:  # an error of the SDK is a finding too
        line = f"{type(error).__name__}: {error} {getattr(error, 'detail', '')}".strip()
        return f"{line}\n{''.join(traceback.format_exception(error))}"
    return None


if __name__ == "__main__":
    main()
