"""Runs the benchmarks: ``python -m tests.benchmarks [name …] [options]``; without a name all of them."""

from __future__ import annotations

import argparse
import logging
import sys
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.comparisons import dataflows, paper, peers
from tests.benchmarks.parts import fixed, footprint, nested, replica, residual, timers
from tests.benchmarks.rates import executors, greedy, guarded, joins, kinds, stored, throughput, ticks
from tests.benchmarks.whole import churn, expiry, fairness, latency, many_streams, recovery, registration, start

BENCHMARKS = {
    "throughput": throughput,
    "executors": executors,
    "guarded": guarded,
    "joins": joins,
    "kinds": kinds,
    "paper": paper,
    "peers": peers,
    "dataflows": dataflows,
    "residual": residual,
    "fixed": fixed,
    "nested": nested,
    "greedy": greedy,
    "fairness": fairness,
    "latency": latency,
    "many_streams": many_streams,
    "registration": registration,
    "start": start,
    "recovery": recovery,
    "churn": churn,
    "footprint": footprint,
    "replica": replica,
    "timers": timers,
    "expiry": expiry,
    "stored": stored,
    "ticks": ticks,
}


def main() -> None:
    """Run the chosen benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all without one")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="where tables and charts go")
    for name, benchmark in BENCHMARKS.items():
        benchmark.add_options(parser.add_argument_group(name, benchmark.__doc__))
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - BENCHMARKS.keys()):
        parser.error(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    logging.basicConfig(level=logging.WARNING)
    for name in options.names or BENCHMARKS:
        # Each in a separate process: after the end of its JVM a process starts no second JVM.
        process = get_context("spawn").Process(target=BENCHMARKS[name].main, args=(options, options.out))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"the benchmark {name} failed")
    print(f"\nkept in {options.out}")


if __name__ == "__main__":
    main()
