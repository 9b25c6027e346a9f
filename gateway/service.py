"""The gateway's process: a loop reads commands, carries them out, fires timers, and does the upkeep."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from gateway.commands.commands import Commands
from gateway.commands.statements import Statements
from gateway.commands.stored_queries import StoredQueries
from gateway.ends.ends import Ends
from gateway.ends.last_digests import LastDigests
from gateway.ends.lifetimes import Lifetimes
from gateway.ends.made_snapshots import MadeSnapshots
from gateway.kafka import CommandConsumer, Topics
from gateway.local.status_file import StatusFile
from gateway.metrics import COMMIT_SECONDS
from gateway.registry.stream_gauges import StreamGauges
from gateway.registry.visibility import shorten_visibility
from gateway.sources.stream_figures import StreamFigures
from gateway.start import TakenOver, keep_lease, refuse_eviction, retried, take_lease
from gateway.state.commit import Commits
from gateway.state.recovery.audit import Audit
from gateway.state.recovery.recovery import Recovery
from gateway.state.recovery.rivals import GatewaySign
from gateway.state.stream_evaluators import StreamEvaluators
from gateway.state.table_upkeep import TableUpkeep
from gateway.state.work import Work
from gateway.state.working_copy import WorkingCopy
from gateway.throttling.throttles import Throttles
from gateway.timers.timers import Timers
from gateway.topics.own_topics import ensure_own_topics
from gateway.topics.positions import TopicEnds
from gateway.topics.result_topics import ResultTopics
from gateway.topics.source_watch import SourceWatch
from grouping.model.errors import OperationalError
from grouping.process.metrics_server import MetricsServer
from grouping.process.pacing import look_seconds
from grouping.process.without_pandas import spare_pandas
from grouping.settings.settings import Settings
from grouping.store.connection import StoreLost
from grouping.store.lease import Lease
from grouping.store.role_notes import RoleNotes
from grouping.store.table_store import TableStore

__all__ = ["collect_seldom", "run_gateway"]

log = logging.getLogger(__name__)

_LISTEN_SECONDS = 0.05
_STALLED_SECONDS = 0.002
"""The time between two checks of waiting commands, if none of them could have its turn."""
_UPKEEP_SECONDS = 0.25
_BUSY_UPKEEP_SECONDS = 1.0
"""The time between two rounds of upkeep while commands come. The time is longer than `_UPKEEP_SECONDS`, because a round
costs about as much as a commit, even if only a few ends and merges of segments are due."""
_REFRESH_MS = 3_600_000
"""The time between two commits of unchanged offsets. Kafka deletes offsets that were not committed for some days."""
_SELDOM = (500_000, 20, 20)
"""The thresholds of `gc` while one subscriber sends. A unit makes tens of thousands of objects, none of them in a
cycle. A frequent search for cycles would take 3.5% of the time for parsing, and up to a sixth of the time of a unit."""
_OFTEN = (2_000, 20, 1_000)
"""The thresholds of `gc` while several subscribers send. Syntax trees have cycles, so only `gc` can free them. With
these thresholds, collections are frequent and short. With `_SELDOM`, a single collection would free the trees of all
statements that were refused within a second. This collection would stop the gateway for a fifth of a second."""
_SWITCH_SECONDS = 0.001
"""How long a thread may run while another thread waits for Python's interpreter lock. The commit thread makes a dozen
round trips in each unit. While another thread computes, a round trip takes 6 ms with Python's default (5 ms), and 1 ms
with this value."""
_UNITS_READ = 2
"""The number of units of work whose commands a read may return. The Kafka driver fetches further commands once its
buffer is empty. While the gateway carries out the two units of a read, the driver fills the buffer, so the next units
are full too."""
_APART_SECONDS = 0.25
"""The time between two units of commands while a single subscriber keeps sending, so that many commands gather."""


def now_ms() -> int:
    """Return the present, epoch milliseconds. The whole gateway uses this clock."""
    return time.time_ns() // 1_000_000


def collect_seldom() -> None:
    """Let Python collect garbage seldom, and never search the objects that exist now."""
    gc.freeze()
    gc.set_threshold(*_SELDOM)


def run_gateway(settings: Settings) -> None:
    """Run the gateway until SIGTERM or SIGINT. A standby first waits until no other gateway holds the lease.

    Raises:
        OperationalError: Another gateway runs on the prefix, or the servers cannot be used.
    """
    spare_pandas()  # otherwise the first CREATE would wait until pyarrow has imported pandas
    sys.setswitchinterval(_SWITCH_SECONDS)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    refuse_eviction(settings, stop)
    status = StatusFile(Path(path) if (path := os.environ.get("CQ_STATUS_FILE")) else None)
    server = MetricsServer(settings.metrics.address, settings.metrics.port, status.role_state, role="gateway")
    lease = Lease(settings, "gateway")
    with status.repeated("standby" if settings.standby else "starting", lambda: {"metrics_url": server.url}):
        taken = take_lease(lease, settings, stop)
    if not taken:
        return
    keeper = threading.Thread(target=keep_lease, args=(lease, stop), daemon=True)
    keeper.start()
    try:
        with status.repeated("starting"):
            sign = GatewaySign(settings, lease.token, stop)
            retried(sign.refuse_rival, stop)
            service = _Service(settings, stop, status, lease, server.url)
        with sign.shown():
            service.run()
    finally:
        stop.set()
        keeper.join()
        lease.release()


class _Service:
    def __init__(
        self, settings: Settings, stop: threading.Event, status: StatusFile, lease: Lease, metrics_url: str
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._lease = lease
        self._status = status
        self._topics = Topics(settings)
        partitions = retried(lambda: ensure_own_topics(settings, self._topics), stop)
        commands = settings.topics.commands
        self._working = working = WorkingCopy(settings, lease)
        self._consumer = CommandConsumer(settings, commands, partitions[commands])
        self._commits = Commits(settings, working, self._consumer)
        self._recovery = Recovery(settings, working, self._topics, self._consumer, self._commits)
        self._upkeep = TableUpkeep(settings, working)
        self._audit = Audit(working)
        self._timers = Timers(settings, working, self._topics, self._commits, now_ms)
        self._throttles = Throttles(settings, working, self._topics, self._commits, now_ms)
        last_digests = LastDigests(settings, working, self._timers, self._commits)
        result_topics = ResultTopics(settings, self._topics, self._commits)
        self._ends = Ends(settings, working, result_topics, self._commits, last_digests, self._throttles)
        shared = partitions[settings.topics.results]
        positions = TopicEnds(settings, self._topics, result_topics, working, shared)
        self._commits.source_ends = positions.present_source_ends
        counts = self._commits.counts
        self._evaluators = StreamEvaluators(settings, working.evaluator, time.monotonic)
        self._figures = StreamFigures(working, self._evaluators, self._topics.offsets, time.monotonic)
        self._statements = Statements(
            settings, working, self._topics, positions, self._upkeep, counts, self._figures.of
        )
        self._stored_queries = StoredQueries(working, self._statements, positions)
        self._commands = Commands(
            settings,
            working,
            self._topics,
            positions,
            self._statements,
            self._commits,
            now_ms,
        )
        self._read_at = 0.0
        self._sources = SourceWatch(settings, working, self._topics)
        self._lifetimes = Lifetimes(settings.evaluator, working, self._statements.registry, self._timers, self._topics)
        self._made_snapshots = MadeSnapshots(working)
        self._store = TableStore(settings)
        self._notes = RoleNotes(settings)
        self._epoch = 0
        self._refreshed_ms = now_ms()
        self._metrics_url = metrics_url
        self._streams: dict[str, dict[str, object]] = {}
        self._gauges = StreamGauges(working, self._statements.registry.admission)
        self._tables: dict[str, dict[str, object]] = {}
        """Name of a table → its part of the status."""

    def run(self) -> None:
        """Recover, and then serve until the process must stop."""
        try:
            with self._status.repeated("starting", self._recovery.progress.fields):
                self._recover()
            self._commands.trials.begin(self._commits.in_hand())
            self._serve()
        except OperationalError:
            raise
        except Exception:
            with suppress(OperationalError):
                # The content of Redis may be the cause of the error. `doubt` makes the next start rebuild this content.
                self._recovery.doubt()
            raise

    def _serve(self) -> None:
        collect_seldom()
        upkeep_at = status_at = 0.0
        more = False
        while not self._stop.is_set():
            try:
                self._read(patient=not (more or self._timers.busy or self._throttles.busy))
                busy = self._carry_out_some()
                self._timers.step()
                self._throttles.step()
                if time.monotonic() >= upkeep_at:
                    more = self._do_upkeep()
                    rest = _BUSY_UPKEEP_SECONDS if busy else _UPKEEP_SECONDS
                    upkeep_at = time.monotonic() + (0.0 if more else rest)
                if time.monotonic() >= status_at:
                    self._report()
                    status_at = time.monotonic() + look_seconds(len(self._streams))
            except OperationalError as error:
                log.warning("a server failed, recovering", extra={"error": str(error), "detail": error.detail})
                with self._status.repeated("waiting", self._status_fields):
                    self._recover(rebuild=isinstance(error, StoreLost))
        with suppress(OperationalError):
            self._commits.finish()
            self._commits.counts.save(all_blocks=True)
        self._consumer.close()

    def _read(self, patient: bool) -> None:
        """Read commands into the queue.

        Args:
            patient: Whether no other work is left, so that the read may wait for commands.
        """
        queue, most = self._commands.queue, _UNITS_READ * self._settings.commands.batch
        listen = _STALLED_SECONDS if queue.stalled else 0.0
        if queue.full:
            self._stop.wait(listen)
            return
        began = time.monotonic()
        patient = patient and not queue
        gather: float | None = max(self._read_at + _APART_SECONDS - began, 0.0) if patient else 0.0
        if queue.together:
            gather = None
        records = self._consumer.read(most, _LISTEN_SECONDS if patient else listen, gather)
        self._read_at = time.monotonic()
        queue.add(records)

    def _carry_out_some(self) -> bool:
        """Carry out the commands whose turn has come, at most one unit of work; return whether there were any."""
        began = time.monotonic()
        gc.set_threshold(*(_OFTEN if self._commands.queue.together else _SELDOM))
        count = self._commands.take_turns(self._settings.commands.batch)
        if count:
            COMMIT_SECONDS.observe(time.monotonic() - began)
        return count > 0

    def _recover(self, *, rebuild: bool = False) -> None:
        """Wait until Redis and Kafka answer, and bring both to the same state.

        Raises:
            TakenOver: Another gateway holds the lease.
        """

        def recover() -> None:
            if not self._lease.acquire():
                raise TakenOver(
                    "another gateway has taken over", detail=f"The lease is held by {self._lease.holder()}."
                )
            self._upkeep.forget()
            self._epoch = self._recovery.run(now_ms(), rebuild=rebuild)
            if not self._audit.whole():
                self._epoch = self._recovery.run(now_ms(), rebuild=True)
            self._commands.queue.begin(self._commits.commands_read.ahead)
            self._statements.reload()
            self._stored_queries.reload()
            self._timers.recover()
            self._throttles.recover()
            self._ends.reload()

        retried(recover, self._stop)

    def _do_upkeep(self) -> bool:
        """Do the periodic work that is due, and return whether more work is due already."""
        working = self._working
        if self._store.epoch() != self._epoch:
            raise OperationalError("redis was restarted or wiped")
        self._commits.counts.step()
        if now_ms() >= self._refreshed_ms + _REFRESH_MS:
            self._refreshed_ms = now_ms()
            self._commits.refresh(self._refreshed_ms)
        working.begin()
        work = Work()
        work.take(shorten_visibility(working, self._timers.shortened()))
        work.take(self._stored_queries.step(now_ms()))
        work.take(self._made_snapshots.step())
        work.take(self._lifetimes.step(now_ms()))
        work.take(self._ends.step(now_ms(), self._epoch))
        sources = self._sources.step(now_ms())
        work.take(sources)
        if work:
            self._commits.write_unit(work, now_ms())
            if sources.catalog:
                self._statements.reload()
        else:
            self._commits.check()
        self._upkeep.step()
        self._audit.step()
        return self._lifetimes.busy or self._ends.busy or self._stored_queries.busy

    def _report(self) -> None:
        """Report the gateway's state for the supervisor, Prometheus and the next gateway."""
        self._commits.counts.save()
        quarantines = self._statements.quarantines
        quarantines.refresh(now_ms())
        streams, waiting = list(self._statements.catalog), self._timers.waiting
        self._gauges.look(now_ms())
        self._figures.look(streams)
        self._streams = {}
        for stream in streams:
            figures = self._figures.of(stream.name) | {"quarantined": quarantines.of_stream(stream.stream_id)}
            if warning := self._gauges.warning(stream.stream_id):
                figures["warnings"] = [warning]
            if count := waiting.get(stream.stream_id):
                figures["digests_waiting"] = count
            self._streams[stream.name] = figures
        self._tables = self._statements.table_states.of(self._statements.catalog.tables(), now_ms())
        self._status.write("ready", **self._status_fields())
        self._notes.tell("gateway", "ready", self._status_fields())

    def _status_fields(self) -> dict[str, object]:
        """Return the fields that are reported in addition to the role's state."""
        own = {"metrics_url": self._metrics_url, "streams": self._streams, "tables": self._tables}
        return {**own, "evaluators": self._evaluators.names, **self._recovery.progress.fields()}
