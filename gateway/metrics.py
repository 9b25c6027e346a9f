"""The gateway's Prometheus metrics.

A label is a code, or the name or id of a stream, column, group or computation. No label names a subscriber.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from grouping.model.errors import CODES

__all__ = [
    "BEHIND",
    "COMMANDS",
    "COMMIT_SECONDS",
    "COMPUTATION_BYTES",
    "COMPUTATION_KEYS",
    "COMPUTATION_ROWS",
    "DEAD_LETTERS",
    "DIGESTS",
    "EVALUATORS",
    "EVALUATOR_DEAD_LETTERS",
    "FORGOTTEN_INTERVALS",
    "FUTURE_EVENTS",
    "GROUPS",
    "GROUP_CORES",
    "LATE_EVENTS",
    "LATE_MATCHES",
    "LATE_TICKS",
    "LIVE_CQS",
    "MATCHES",
    "MISFITS",
    "QUARANTINED",
    "REBUILDS",
    "REPEATED_MATCHES",
    "RESTORE_SECONDS",
    "RESULTS",
    "RESULT_BYTES",
    "SECONDS_BEHIND",
    "SPLIT_KEYS",
    "SUPPRESSED",
    "TABLE_AGE",
    "TABLE_BYTES",
    "TABLE_MEMORY",
    "TABLE_MEMORY_LIMIT",
    "TABLE_ROWS",
    "TABLE_VERSION",
    "TICK_SECONDS",
    "UNCOPIED_RESULTS",
    "WAITING_DIGESTS",
    "forget_streams",
]

COMMANDS = Counter("cq_commands", "commands answered, by the code of their reply", ["code"])
DEAD_LETTERS = Counter("cq_dead_letters", "records that the gateway could not decode, by code", ["code"])
EVALUATOR_DEAD_LETTERS = Gauge("cq_evaluator_dead_letters", "dead letters of source records, by code", ["code"])
COMMIT_SECONDS = Histogram("cq_commit_seconds", "time to carry out one batch of commands and write it to Redis")
COMPUTATION_KEYS = Gauge(
    "cq_computation_keys", "keys in the state of a computation, over all partitions", ["stream", "computation"]
)
COMPUTATION_ROWS = Gauge(
    "cq_computation_rows", "rows in the state of a computation, over all partitions", ["stream", "computation"]
)
COMPUTATION_BYTES = Gauge(
    "cq_computation_bytes", "memory of the state of a computation in all workers together", ["stream", "computation"]
)
RESTORE_SECONDS = Gauge(
    "cq_computation_restore_seconds",
    "longest time in which a worker restored the state of a computation in a partition",
    ["stream", "computation"],
)
SPLIT_KEYS = Gauge(
    "cq_split_keys",
    "keys, among a sample, that occurred in two or more partitions although the stream has a PARTITION KEY, by stream",
    ["stream"],
)
LIVE_CQS = Gauge("cq_live_cqs", "live CQs, by stream", ["stream"])
BEHIND = Gauge("cq_events_behind", "events published and not yet evaluated, by stream", ["stream"])
SECONDS_BEHIND = Gauge(
    "cq_seconds_behind", "seconds for which the oldest event not evaluated has waited, by stream", ["stream"]
)
EVALUATORS = Gauge("cq_stream_evaluators", "1 if a running evaluator has the stream, else 0", ["stream"])
GROUPS = Gauge("cq_groups", "groups of live CQs, by stream", ["stream"])
TABLE_ROWS = Gauge("cq_table_rows", "rows of the constant tables, by stream", ["stream"])
TABLE_VERSION = Gauge("cq_table_version", "version of the constant tables, by stream", ["stream"])
TABLE_AGE = Gauge(
    "cq_table_age_seconds",
    "seconds since the constant tables changed, or else since the gateway's start, by stream",
    ["stream"],
)
TABLE_BYTES = Gauge(
    "cq_table_bytes", "memory of the constant tables in the worker with the largest tables, by stream", ["stream"]
)
TABLE_MEMORY = Gauge(
    "cq_table_memory_bytes",
    "memory that constant tables and joined tables take in one worker, of the evaluator that is nearest to its limit",
)
TABLE_MEMORY_LIMIT = Gauge(
    "cq_table_memory_limit_bytes", "the limit of cq_table_memory_bytes, above which CREATE is refused"
)
GROUP_CORES = Gauge("cq_group_cores", "cores that each of the ten costliest groups takes", ["stream", "group"])
MATCHES = Counter("cq_matches", "matches found, without those of virtual CQs, by stream", ["stream"])
RESULTS = Counter("cq_results", "results written by tasks, without digests, by stream", ["stream"])
RESULT_BYTES = Counter("cq_result_bytes", "bytes of cq_results: keys, values and headers, by stream", ["stream"])
LATE_EVENTS = Counter(
    "cq_late_events", "events that event-time queries left out: late, or without event time; by stream", ["stream"]
)
FUTURE_EVENTS = Counter(
    "cq_future_events",
    "events that event-time queries left out because their time was too far ahead, by stream",
    ["stream"],
)
MISFITS = Gauge(
    "cq_misfits",
    "values of a lenient stream that did not fit and are NULL, by stream and column; all columns but the ten with the "
    "most misfits are counted together as column *",
    ["stream", "column"],
)
REBUILDS = Counter("cq_rebuilds", "how often Redis was filled again from the catalog")
QUARANTINED = Gauge("cq_quarantined_groups", "groups that are quarantined as a whole or in part, by stream", ["stream"])
DIGESTS = Counter("cq_digests", "digests written")
LATE_MATCHES = Counter(
    "cq_late_matches", "matches that came too late for the digest of their record time, and are in a later digest"
)
REPEATED_MATCHES = Counter(
    "cq_repeated_matches", "matches that were stored once more by a replayed batch, and left out of a digest"
)
SUPPRESSED = Counter("cq_suppressed_results", "results that were left out because of AT MOST")
UNCOPIED_RESULTS = Gauge("cq_uncopied_results", "results of CQs with AT MOST that wait to be copied or left out")
FORGOTTEN_INTERVALS = Counter(
    "cq_forgotten_intervals", "intervals of AT MOST that were forgotten before their time, because there were too many"
)
LATE_TICKS = Counter("cq_late_ticks", "probes of a stream that the evaluator did not reach in time")
WAITING_DIGESTS = Gauge(
    "cq_waiting_digests", "digests that are not written yet although their cut is, because of a full disk or a crash"
)
TICK_SECONDS = Histogram(
    "cq_tick_lateness_seconds",
    "seconds from a tick until its digests are written",
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 300),
)

SOURCE_LETTER_CODES = ("events-deleted", "not-evaluated", "result-too-large", "too-many-rows", "undecodable")

# Each counter begins with the value 0, since Prometheus sees no increase in a series whose first value is 1.
for code in ("ok", *CODES):
    COMMANDS.labels(code)
for code in SOURCE_LETTER_CODES:
    EVALUATOR_DEAD_LETTERS.labels(code)
DEAD_LETTERS.labels("malformed-command")

_OF_STREAMS = (
    BEHIND,
    EVALUATORS,
    FUTURE_EVENTS,
    GROUPS,
    LATE_EVENTS,
    LIVE_CQS,
    MATCHES,
    QUARANTINED,
    RESULTS,
    RESULT_BYTES,
    SECONDS_BEHIND,
    SPLIT_KEYS,
    TABLE_AGE,
    TABLE_BYTES,
    TABLE_ROWS,
    TABLE_VERSION,
)


def forget_streams(names: Iterable[str]) -> None:
    """Remove the series of dropped streams."""
    for name in names:
        for metric in _OF_STREAMS:
            metric.remove(name)
