"""What the gateway counts, for Prometheus: by code and by stream, never by subscriber or CQ."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

__all__ = [
    "BEHIND",
    "COMMANDS",
    "COMMIT_SECONDS",
    "DEAD_LETTERS",
    "DIGESTS",
    "EVALUATOR_DEAD_LETTERS",
    "LATE_MATCHES",
    "LATE_TICKS",
    "LIVE_CQS",
    "QUARANTINED",
    "REPEATED_MATCHES",
    "SECONDS_BEHIND",
    "TICK_SECONDS",
    "WAITING_DIGESTS",
    "forget_streams",
]

COMMANDS = Counter("cq_commands", "commands answered, by the code of their reply", ["code"])
DEAD_LETTERS = Counter("cq_dead_letters", "records that the gateway could not decode, by code", ["code"])
EVALUATOR_DEAD_LETTERS = Gauge("cq_evaluator_dead_letters", "dead letters of source records, by code", ["code"])
COMMIT_SECONDS = Histogram("cq_commit_seconds", "time to carry out one batch of commands and write it to Redis")
LIVE_CQS = Gauge("cq_live_cqs", "live CQs, by stream", ["stream"])
BEHIND = Gauge("cq_events_behind", "events published and not yet evaluated, by stream", ["stream"])
SECONDS_BEHIND = Gauge(
    "cq_seconds_behind", "seconds since which the oldest event not evaluated has been there, by stream", ["stream"]
)
QUARANTINED = Gauge("cq_quarantined_groups", "groups of which something is not evaluated, by stream", ["stream"])
DIGESTS = Counter("cq_digests", "digests written")
LATE_MATCHES = Counter("cq_late_matches", "matches in a digest that begins after their record time")
REPEATED_MATCHES = Counter(
    "cq_repeated_matches", "matches that were stored once more by a replayed batch, and left out of a digest"
)
LATE_TICKS = Counter("cq_late_ticks", "probes of a stream that waited in vain for the evaluator")
WAITING_DIGESTS = Gauge("cq_waiting_digests", "digests that are still to be made out of a cut, for want of room")
TICK_SECONDS = Histogram(
    "cq_tick_lateness_seconds",
    "from a tick to its digests being written",
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 300),
)


def forget_streams(names: Iterable[str]) -> None:
    """Tell nothing more of streams that were dropped."""
    for name in names:
        for gauge in (LIVE_CQS, BEHIND, SECONDS_BEHIND, QUARANTINED):
            gauge.remove(name)
