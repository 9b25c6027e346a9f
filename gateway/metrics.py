"""What the gateway counts, for Prometheus: by code and by stream, never by subscriber or CQ."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

__all__ = ["BEHIND", "COMMANDS", "COMMIT_SECONDS", "DEAD_LETTERS", "LIVE_CQS"]

COMMANDS = Counter("cq_commands", "commands answered, by the code of their reply", ["code"])
DEAD_LETTERS = Counter("cq_dead_letters", "records that the gateway could not decode, by code", ["code"])
COMMIT_SECONDS = Histogram("cq_commit_seconds", "time to carry out and commit one batch of commands")
LIVE_CQS = Gauge("cq_live_cqs", "live CQs, by stream", ["stream"])
BEHIND = Gauge("cq_events_behind", "events published and not yet evaluated, by stream", ["stream"])
