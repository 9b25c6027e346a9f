"""A chaos run: rounds of a storm, with faults, and of a quiet moment, at which everything must hold."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from tests import strategies
from tests.chaos.checks import Comparison
from tests.chaos.companies import Companies
from tests.chaos.faults import FAULTS, STREAM_FAULTS, TRACES, Fault, Ground
from tests.chaos.host import Deployment
from tests.chaos.lives import Cq
from tests.chaos.loop import Loop
from tests.chaos.many_streams import ManyStreams
from tests.chaos.probes import served_within
from tests.chaos.readers import Readers
from tests.chaos.recovery import Recovery
from tests.chaos.workload import Commands, Events
from tests.kafka_client import wait_until
from tests.stack.lab import Lab, Source
from tests.stack.lab_table import LabTable
from tests.stack.tracebacks import LogWatch

__all__ = ["Chaos", "Tally"]

_QUIET_SECONDS = 45.0
"""When all is evaluated, readers get the next result within it: some ticks, and a re-read by a resumed cursor."""

_QUIET_STEPS = 10
"""And each of them was asked so often, which takes a busy machine longer; at most `_QUIET_MOST` seconds are waited."""
_QUIET_MOST = 300.0

_BUSY_FACTOR = 3.0
"""How many times as long as before a fault of one stream the others may wait, on a machine that does other work."""

_REDIS_LOST = ("wipe-redis", "set-back-redis", "kill-primary", "stop-primary", "cut-primary")
"""Faults after which Redis lacks dropped CQs with unevaluated events."""
_KEPT = ("rounds", "events", "commands", "results")
"""The counts that a result file has."""
_LOST_AT_ONCE = ("kill", "wipe", "set-back")
"""Name prefixes of instantaneous faults, with only the recovery taking time."""


@dataclass(slots=True)
class Tally:
    """The outcome of a run."""

    rounds: int = 0
    events: int = 0
    commands: int = 0
    cqs: int = 0
    results: int = 0
    repeats: int = 0
    recovered: dict[str, list[float]] = field(default_factory=dict)
    """Per killed role, the seconds until it worked again."""

    def line(self) -> str:
        """Return the outcome as one line."""
        counts = ", ".join(
            f"{getattr(self, name)} {name}" for name in ("rounds", "events", "commands", "cqs", "results", "repeats")
        )
        times = [
            f"{role} back after {sorted(seconds)[len(seconds) // 2]:.1f} s (at most {max(seconds):.1f} s)"
            for role, seconds in sorted(self.recovered.items())
        ]
        return "; ".join((counts, *times))

    def figures(self) -> dict[str, tuple[float, str]]:
        """Return the outcome of a run that held, for its result file."""
        counts = {"lost": 0, "doubled": 0} | {name: getattr(self, name) for name in _KEPT}
        slowest = max((seconds for times in self.recovered.values() for seconds in times), default=0.0)
        return {name: (count, "") for name, count in counts.items()} | {"slowest recovery": (slowest, "s")}


class Chaos:
    """A run on a deployment."""

    def __init__(
        self,
        host: Deployment,
        seed: int,
        tell: Callable[[str], None],
        faults: Mapping[str, Fault] = FAULTS,
        pause: float = 0.1,
        logs: Sequence[Path] = (),
        streams: int = 0,
    ) -> None:
        """Begin.

        Args:
            host: The deployment: the target of the faults.
            seed: The seed of queries and events.
            tell: Is given the events of the play, line by line.
            faults: The possible faults by name.
            pause: Seconds between two publications of events; results are read five times as often.
            logs: Data folders of roles, whose logs may get no stack trace except traces caused by faults.
            streams: How many streams there are beside the one of the queries: 0, or 4 and more.
        """
        self.tally = Tally()
        self._pause = pause
        self._faults = faults
        self._host = host
        self._logs, self._log_watch = logs, LogWatch()
        self._rng = random.Random(seed)
        self._tell = tell
        self._begun_at = time.monotonic()
        self._many = ManyStreams(host.bootstrap, streams, random.Random(f"{seed} streams")) if streams else None
        self._lab = lab = Lab(host.bootstrap)
        self._topics_before = lab.client.topics()
        self._keys_before, self._checkpoints_before = _stream_keys(host), _checkpoints(host)
        self._declared = strategies.stream(random.Random(seed), f"chaos_{lab.token}")
        topic = f"{self._declared.name}-topic"
        lab.client.result(self._declared.ddl(topic, partitions=2), lab.subscriber("owner"))
        self._source = lab.adopt(Source(lab, self._declared.name, topic, 2, b"{}"))
        table = LabTable(lab, "listed STRING PRIMARY KEY, industry STRING, written BIGINT")
        self._companies = companies = Companies(table, random.Random(f"{seed} companies"))
        self._events = Events(self._source, self._declared, companies, random.Random(f"{seed} events"))
        self._commands = Commands(lab, self._declared, companies.name, self._events, random.Random(f"{seed} commands"))
        self._readers = Readers(lab, host.bootstrap, random.Random(f"{seed} readers"))
        self._commands.accepted = self._readers.accepted
        self._recovery = Recovery(self._source, self._events, self._commands, lab)
        self._source.fence()

    def round(self, faults: Sequence[str]) -> None:
        """Let these faults happen in sequence, while all goes on; then check.

        Raises:
            AssertionError: Something was lost, doubled or left over, or a role has logged a stack trace that no fault
                causes.
        """
        self.tally.rounds += 1
        with (
            Loop("events", self._events.step, self._pause) as events,
            Loop("commands", self._commands.step, 0.1) as commands,
            Loop("readers", self._read, self._pause / 5) as readers,
            self._many.flowing() if self._many is not None else nullcontext(()) as others,
        ):
            loops = (events, commands, readers, *others)
            self._sleep(loops, self._rng.uniform(1.0, 3.0))
            for name in faults:
                self._break(name)
                self._sleep(loops, self._rng.choice((0.2, 1.0, 3.0)))
            self._host.await_ready()
            self._sleep(loops, 2.0)
            if len(faults) == 1 and faults[0].startswith(_LOST_AT_ONCE):
                self._measure(faults[0], loops)
            if self._many is not None:
                self._measure_others(self._many, faults)
        self._commands.finish()
        if any(name in _REDIS_LOST for name in faults):
            for cq in self._commands.cqs:
                cq.redis_lost |= cq.gone and not cq.retired
        self._settle()
        if self._many is not None:
            self._say(f"all holds: {self._many.settle()}")
        self._log_watch.check(self._logs, TRACES)

    def idle(self, seconds: float) -> None:
        """Publish no event for a while; then each query goes on where it was.

        Raises:
            AssertionError: A role has logged a stack trace.
        """
        self._say(f"nothing happens for {seconds:g} s")
        with Loop("readers", self._readers.step, 0.02) as readers:
            self._sleep([readers], seconds)
        with Loop("readers", self._readers.follow, 0.02):
            self._source.fence()
        if self._many is not None:
            with self._many.flowing():
                self._many.probe()
                self._await_served(self._many, "idle")
            self._many.settle()
        self._log_watch.check(self._logs)

    def finish(self) -> None:
        """Drop everything; nothing may be left.

        Raises:
            AssertionError: Something is, or a role has logged a stack trace.
        """
        for cq in self._commands.live:
            self._commands.drop(cq)
        self._commands.finish()
        self._source.unwatch()
        self._readers.close()
        if self._many is not None:
            self._many.close()
        owner = self._lab.subscriber("owner")
        self._lab.client.result(f'DROP STREAM "{self._declared.name}"', owner)
        self._companies.drop()
        self._log_watch.check(self._logs)
        self._lab.sources.clear()
        self._await_topics(set())
        wait_until(lambda: time.sleep(0.5) or not self._left(), f"end of the last key: {self._left()}", 240.0)
        wait_until(
            lambda: time.sleep(0.5) or not _checkpoints(self._host) - self._checkpoints_before,
            f"end of {_checkpoints(self._host) - self._checkpoints_before}",
            240.0,
        )
        self._lab.close()

    def _break(self, name: str) -> None:
        self._say(name)
        self._recovery.begin(name)
        self._faults[name](Ground(self._host, self._lab, self._source, self._rng, self._say, self._many))

    def _measure_others(self, many: ManyStreams, faults: Sequence[str]) -> None:
        """Measure how late the streams are after the faults of a round, and then the others after one of a stream."""
        many.probe()
        usual = self._await_served(many, faults[-1])
        fault = self._rng.choice(STREAM_FAULTS)
        within = max(served_within(), _BUSY_FACTOR * usual)
        self._break(fault)
        slowest = self._await_served(many, fault)
        assert slowest <= within, f"a stream waited for {slowest:.1f} s after {fault}, allowed were {within:.1f} s"

    def _await_served(self, many: ManyStreams, fault: str) -> float:
        """Return the longest wait for a result since the last probe began, in seconds."""
        waits = many.await_served(_QUIET_MOST)
        name, slowest = max(waits.items(), key=lambda wait: wait[1])
        self.tally.recovered.setdefault(f"others ({fault})", []).append(slowest)
        self._say(f"{len(waits)} streams served within {slowest:.1f} s, the slowest is {name}")
        return slowest

    def _measure(self, fault: str, loops: Sequence[Loop]) -> None:
        deadline = time.monotonic() + 60
        while not self._recovery.done and time.monotonic() < deadline:
            self._sleep(loops, 0.2)
        for role, seconds in self._recovery.seconds().items():
            self.tally.recovered.setdefault(f"{role} ({fault})", []).append(seconds)

    def _read(self) -> None:
        self._readers.step()
        self._recovery.note()

    def _settle(self) -> None:
        """Wait until all is evaluated and read, and compare."""
        with Loop("readers", self._readers.follow, 0.02):  # topics go some seconds after their ends, read or not
            self._source.fence()
        count = len(self._source.events)
        comparison = Comparison(self._declared, self._source.events, self._events.written, self._accepted())
        with Loop("readers", self._readers.step, 0.02) as readers:
            self._await_results(comparison, readers)
        self._lab.results.drain()
        found = comparison.lost(self._lab) + comparison.wrong() + comparison.wrong_records(self._lab)
        assert not found, "\n".join(found[:20])
        self._commands.evaluated = count
        self._check_lives()
        self._check_leftovers()
        for cq in self._commands.cqs:
            cq.retired = cq.gone
        tally = self.tally
        tally.events, tally.commands = count, self._commands.due.total()
        tally.cqs, tally.repeats = len(self._commands.cqs), self._lab.results.repeats
        tally.results = sum(cq.got.total() + cq.digested.total() for cq in self._commands.cqs)
        self._say(f"all holds: {count} events, {len(self._commands.live)} CQs live, {tally.results} results so far")

    def _await_results(self, comparison: Comparison, readers: Loop) -> None:
        """Return when nothing is missing, or nothing that is has come for long."""
        missing = comparison.missing()  # the comparison may take as long as the wait, on a machine with other work
        since, steps = time.monotonic(), readers.steps
        while missing:
            waited = time.monotonic() - since
            if waited > _QUIET_MOST or (waited > _QUIET_SECONDS and readers.steps > steps + _QUIET_STEPS):
                break
            self._sleep([readers], 0.5)
            before, missing = missing, comparison.missing()
            if missing != before:
                since, steps = time.monotonic(), readers.steps

    def _accepted(self) -> list[Cq]:
        return [cq for cq in self._commands.cqs if cq.created is not None]

    def _check_lives(self) -> None:
        """Every accepted CQ exists, and no further CQ."""
        for who in ("alice", "bob"):
            subscriber = self._lab.subscriber(who)
            listed = {item["cq"] for item in self._lab.client.result("SHOW CQS LIMIT 1000", subscriber)["cqs"]}
            assert {cq.name for cq in self._commands.live if cq.subscriber == subscriber} == listed, who

    def _check_leftovers(self) -> None:
        """The topics belong to live or recently ended CQs, and every process has its role."""
        self._await_topics(_topics(self._commands.live), _topics(cq for cq in self._accepted() if cq.gone))
        wait_until(lambda: time.sleep(0.3) or not self._host.strays(), f"end of {self._host.strays()}", 120.0)

    def _await_topics(self, wanted: set[str], lingering: Set[str] = frozenset()) -> None:
        """Return when the topics are the wanted ones, the sources', earlier ones, and at most the lingering."""
        kept = self._topics_before | {self._source.topic, self._companies.topic}

        def wrong() -> set[str]:
            return (self._lab.client.topics() - kept - (lingering - wanted)) ^ (wanted - kept)

        wait_until(lambda: time.sleep(0.3) or not wrong(), f"topics as they must be, but {wrong()}", 300.0)

    def _left(self) -> set[bytes]:
        """Return the keys of Redis that are of a stream, and of none of before: there is none any more."""
        return _stream_keys(self._host) - self._keys_before

    def _sleep(self, loops: Sequence[Loop], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for loop in loops:
                loop.check()
            time.sleep(0.05)

    def _say(self, what: str) -> None:
        self._tell(f"{time.monotonic() - self._begun_at:7.1f} s  {what}")


def _topics(cqs: Iterable[Cq]) -> set[str]:
    return {cq.created["destination"]["topic"] for cq in cqs}


def _stream_keys(host: Deployment) -> set[bytes]:
    with redis.Redis.from_url(host.redis_url) as client:
        return set(client.scan_iter(match="*:s_*", count=1000))


def _checkpoints(host: Deployment) -> set[Path]:
    """Return the folders of checkpoints that hold something."""
    with suppress(FileNotFoundError):  # a file may vanish during the look
        return {path for path in host.data.rglob("checkpoints/*") if path.is_dir() and any(path.iterdir())}
    return _checkpoints(host)
