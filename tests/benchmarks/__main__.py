"""Runs the benchmarks: ``python -m tests.benchmarks [name …] [options]``; all of them without a name."""

from __future__ import annotations

import argparse
import logging
import sys
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks import numbers
from tests.benchmarks.comparisons import dataflows, paper, peers
from tests.benchmarks.parts import fixed, footprint, nested, replica, residual, timers
from tests.benchmarks.rates import (
    changes,
    edges,
    executors,
    exploded,
    frames,
    greedy,
    guarded,
    joins,
    kinds,
    stays,
    stored,
    throughput,
    ticks,
)
from tests.benchmarks.result import RESULTS
from tests.benchmarks.whole import (
    at_most,
    beside_streams,
    churn,
    expiry,
    fairness,
    latency,
    many_streams,
    recovery,
    registration,
    silences,
    snapshot,
    start,
)

BENCHMARKS = {
    "throughput": throughput,
    "executors": executors,
    "guarded": guarded,
    "joins": joins,
    "edges": edges,
    "exploded": exploded,
    "stays": stays,
    "frames": frames,
    "changes": changes,
    "snapshot": snapshot,
    "at_most": at_most,
    "silences": silences,
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
    "beside_streams": beside_streams,
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
    """Run the chosen benchmarks, or write the pages that show their results."""
    parser = argument_parser()
    options = parser.parse_args()
    if options.names == ["numbers"]:
        numbers.write_pages()
        return
    if unknown := sorted(set(options.names) - BENCHMARKS.keys()):
        parser.error(f"no benchmark is named {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    logging.basicConfig(level=logging.WARNING)
    for name in options.names or BENCHMARKS:
        options.command = command_of(name, options)
        # Each in a separate process: after the end of its JVM a process starts no second JVM.
        process = get_context("spawn").Process(target=BENCHMARKS[name].main, args=(options, options.out))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"the benchmark {name} failed")
    print(f"\nkept in {options.out}")


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of all benchmarks' options."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    shown = f"of {', '.join(BENCHMARKS)}; all without one; numbers writes docs/numbers.md from bench-results"
    parser.add_argument("names", nargs="*", metavar="name", help=shown)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where results and charts go")
    for name, benchmark in BENCHMARKS.items():
        benchmark.add_options(parser.add_argument_group(name, benchmark.__doc__))
    return parser


def command_of(name: str, options: argparse.Namespace) -> str:
    """Return the command for a benchmark with these options; options with their defaults are left out."""
    group = argparse.ArgumentParser(add_help=False)
    BENCHMARKS[name].add_options(group.add_argument_group())
    words = [name]
    for action in group._actions:  # noqa: SLF001  # argparse has no public way to a parser's options
        value = getattr(options, action.dest)
        if value == action.default:
            continue
        if isinstance(value, bool):
            words.append(action.option_strings[0 if value else -1])
        else:
            values = value if isinstance(value, list) else [value]
            words += [action.option_strings[0], *(str(action.metavar or _written(each)) for each in values)]
    return " ".join(words)


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
