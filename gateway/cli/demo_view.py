"""The output of `cq demo`: a live table on a terminal, else lines of text."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from gateway.sdk import ContinuousQuery, Digest, Match

__all__ = ["DemoTally", "latency_text", "line_view", "live_view", "print_sharing", "quantile"]

_KEPT_LATENCIES = 5_000
_KEPT_MATCHES = 8
_KEPT_DIGESTS = 3


@dataclass
class DemoTally:
    """The counts of the demo so far. The publishing and reading threads update them, and the main thread shows them."""

    subscribers: int
    cqs: int
    groups: int
    destinations: int
    events: int = 0
    matches: int = 0
    digests: int = 0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT_LATENCIES))
    """For the latest results: the seconds from the publication of the event until the result was received."""
    latest: deque[Match] = field(default_factory=lambda: deque(maxlen=_KEPT_MATCHES))
    latest_digests: deque[Digest] = field(default_factory=lambda: deque(maxlen=_KEPT_DIGESTS))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, match: Match, now: float) -> None:
        """Count a result that was received at `now` (epoch seconds)."""
        with self.lock:  # the threads of several subscribers call this
            self.matches += 1
            self.latencies.append(now - match.time.timestamp())

    def add_digest(self, digest: Digest) -> None:
        """Count a digest."""
        with self.lock:
            self.digests += 1
            self.latest_digests.append(digest)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the value below which a share of the values lies; None without values.

    Example:
        >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5)
        3.0
    """
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


def latency_text(tally: DemoTally) -> str:
    """Return the median and the 99th percentile of the latencies of the latest results."""
    with tally.lock:
        values = list(tally.latencies)
    return " / ".join(
        "–" if at is None else f"{at * 1000:.0f} ms" for at in (quantile(values, 0.5), quantile(values, 0.99))
    )


def line_view(tally: DemoTally) -> str:
    """Return the numbers and the latest results as one line."""
    text = f"{tally.events:,} events in, {tally.matches:,} matches out, latency p50 / p99 {latency_text(tally)}"
    if tally.latest:
        match = tally.latest[-1]
        text += f"; {match.cq}: {json.dumps(dict(match.row))}"
    if tally.latest_digests:
        digest = tally.latest_digests[-1]
        text += f"; digest of {digest.cq}: {_digest_text(digest)}"
    return text


def _digest_text(digest: Digest) -> str:
    """Return the number of events of a digest, and its first rows."""
    groups = [dict(row) for row in digest.rows[:2]]
    more = f" and {len(digest.rows) - 2} more" if len(digest.rows) > 2 else ""
    return f"{digest.count:,} events as {json.dumps(groups)}{more}"


def live_view(tally: DemoTally, seconds_left: float) -> Group:
    """Return a table with the numbers and, below it, the latest results of some CQs."""
    numbers = Table(box=None, pad_edge=False)
    shown = {
        "events in": f"{tally.events:,}",
        "matches out": f"{tally.matches:,}",
        "digests": f"{tally.digests:,}",
        "CQs": f"{tally.cqs:,}",
        "groups": f"{tally.groups:,}",
        "destinations": f"{tally.destinations:,}",
        "latency p50 / p99": latency_text(tally),
        "left": f"{max(0, seconds_left):.0f} s",
    }
    for name in shown:
        numbers.add_column(name, justify="right", min_width=11)
    numbers.add_row(*shown.values())
    results = Table(box=None, pad_edge=False)
    for name in ("time", "CQ", "result"):
        results.add_column(name)
    for digest in list(tally.latest_digests):
        results.add_row(f"{digest.fired_at:%H:%M:%S.%f}"[:-3], digest.cq, Text(_digest_text(digest)))
    for match in list(tally.latest):
        results.add_row(f"{match.time:%H:%M:%S.%f}"[:-3], match.cq, Text(json.dumps(dict(match.row))))
    return Group(numbers, Text(), Text("results of some CQs as they come", style="bold"), results)


def print_sharing(console: Console, groups: Sequence[Mapping[str, Any]], queries: Sequence[ContinuousQuery]) -> None:
    """Print what the CQs share: for each group, the numbers of its CQs, constants and destinations."""
    table = Table(box=None, pad_edge=False)
    for name in ("CQs", "constants", "destinations", "index", "group's signature"):
        table.add_column(name, justify="right" if name[0] in "Ccd" else "left", overflow="fold")
    destinations: dict[str, set[str]] = {}
    for query in queries:
        destinations.setdefault(query.group, set()).add(query.destination.id)
    for group in sorted(groups, key=lambda each: -each["cqs"]):
        written = len(destinations.get(group["group"], ()))
        table.add_row(
            f"{group['cqs']:,}",
            f"{group['constants']:,}",
            f"{written:,}",
            str(group["index"]),
            Text(group["signature"]),
        )
    total = sum(len(each) for each in destinations.values())
    console.print("\nWhat was shared", style="bold")
    console.print(table)
    console.print(
        f"{len(queries):,} CQs were evaluated as {len(groups)} plans, each event once per group; "
        f"their results went to {total:,} destinations.",
        soft_wrap=True,
    )
